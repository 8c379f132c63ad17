# Passwords: every source, their order, and that none is ever shown.

load ../lib/server
load ../lib/odd

SECRET=s3cr3t-open-sesame
OTHER=an0ther-wr0ng-one

setup_file() {
  open_server
  redis srv config set requirepass "$SECRET" >/dev/null
}
setup() {
  URL=$(redis_url srv)
  unset RLOCK_URL RLOCK_PASSWORD REDISCLI_AUTH
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  end_odd
  redis_stop deaf
  redis_stop turn
  REDISCLI_AUTH=$SECRET assert_clean srv
}

with_secret() { printf '%s%s%s' "${1%%//*}//" "$2@" "${1#*//}"; }
secret_file() {
  printf '%s\n' "$1" >pass
  chmod 600 pass
}
# config LINE...: the configuration file c.toml.
config() {
  printf '%s\n' "$@" >c.toml
  chmod 600 c.toml
}

# unseen: the last run wrote neither password.
unseen() { [[ $output${stderr:-} != *"$SECRET"* && $output${stderr:-} != *"$OTHER"* ]]; }
# hidden STATUS ARG...: rlock ends with this status, a pattern, and shows neither.
hidden() {
  run --separate-stderr rlock "${@:2}"
  [[ $status =~ ^($1)$ ]] && unseen
}
works() { prints ran rlock run "$@" x -- echo ran; }
# refused STATUS TEXT OPTION...: a job is not started.
refused() {
  tells $1 "$2" rlock run "${@:3}" x -- touch ran
  [[ ! -e ran ]] && unseen
}

tree_of() {
  local pid
  for pid in $(children_of "$1"); do
    echo "$pid"
    tree_of "$pid"
  done
}

# with_job COMMAND [VARIABLE=VALUE ...] -- OPTION...: such a job, which ends when the file go exists; $frontend is its
# pid. COMMAND creates the file child.
with_job() {
  local variables=() text=$1
  shift
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  rm -f held child hook go*
  env "${variables[@]}" "$RLOCK" run "${@:2}" x -- bash -c "$text; until [[ -e go ]]; do sleep 0.1; done" >job.out 2>job.err 3>&- &
  frontend=$!
}

# watched [VARIABLE=VALUE ...] -- OPTION...: while such a job runs, no secret is visible in its processes or their
# output.
watched() {
  with_job 'env >child.new; mv child.new child' "$@" -v --log-format json
  wait_until test -e child && none_seen || {
    : >go
    cat job.err
    return 1
  }
  : >go
  wait "$frontend"
  not grep -F -e "$SECRET" -e "$OTHER" job.out job.err
}
none_seen() {
  local pid what
  for pid in "$frontend" $(tree_of "$frontend"); do
    for what in cmdline environ; do
      # An ordinary user cannot read a guard's environment.
      [[ $what == cmdline || -r /proc/$pid/environ ]] || continue
      : >"seen.$what"
      tr '\0' '\n' <"/proc/$pid/$what" >"seen.$what" 2>/dev/null || true
      # The command's nap may be over by now.
      [[ -s seen.$what ]] || gone "$pid" || return
      not grep -F -e "$SECRET" -e "$OTHER" "seen.$what" || {
        echo "in $what of $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        return 1
      }
    done
  done
  not grep -F -e "$SECRET" -e "$OTHER" child
}

# The table of credentials has the other sources, and their order.
@test "a password in --url works, with a warning; a file needs no line break at its end" {
  run -0 --separate-stderr rlock run --url "$(with_secret "$URL" ":$SECRET")" x -- echo ran
  [[ $output == ran && $stderr == *warning*password* ]]
  unseen
  (umask 077 && printf %s "$SECRET" >pass)
  RLOCK_URL=$URL works --password-file pass
}

@test "no process of a job shows a password, from whatever source" {
  url=$(with_secret "$URL" ":$SECRET")
  secret_file "$SECRET"
  watched "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" --
  watched "REDISCLI_AUTH=$SECRET" "RLOCK_URL=$URL" --
  watched "RLOCK_PASSWORD=$SECRET" "REDISCLI_AUTH=$OTHER" "RLOCK_URL=$URL" --
  watched "RLOCK_URL=$url" --
  grep -qxF "RLOCK_URL=$URL" child
  watched "RLOCK_URL=$(with_secret "$URL" ":$OTHER")" "RLOCK_PASSWORD=$SECRET" -- --url "$URL"
  watched "RLOCK_URL=$URL" -- --password-file pass
  watched "RLOCK_URL=$URL" -- --password-command 'cat pass'
  watched -- --url "$url"
  watched -- "--url=$url"
  watched -- --url "$(with_secret "$URL" ":${SECRET/-/%2D}")"
  not grep -F "${SECRET/-/%2D}" job.err seen.environ seen.cmdline child
  config "url = \"$url\""
  watched -- --config c.toml
}

# redis-cli takes a word alone before the @ for the password; rlock takes it for a user, and may be wrong.
@test "a word alone before the @: no output and no process shows it, and a message says how to write a password" {
  url=$(with_secret "$URL" "$SECRET")
  for line in 'run x -- touch ran' 'acquire x --lease 5s' 'renew x --owner a:1 --lease 5s' 'release x --owner a:1' 'force-unlock --yes --now x' status \
    'status x' 'status --json x' 'history x' doctor 'doctor --json'; do
    hidden 77 -v --log-format json --url "$url" $line
    [[ $output$stderr == *'write redis://:PASSWORD@host'* && ! -e ran ]]
    RLOCK_URL=$url hidden 77 -v $line
  done
  config "url = \"$url\""
  hidden 0 config --config c.toml
  [[ $output == *'***@'* ]]
  # A command line without --.
  hidden 64 run x --url "$url" true --no-such
  # The unit tests of addresses have all the other errors.
  for address in "redis://$SECRET@127.0.0.1:0" "redis+sentinel://$SECRET@127.0.0.1:1,$SECRET@127.0.0.1:2/m"; do
    hidden '64|69' run -v --server-timeout 1s --url "$address" x -- true
    RLOCK_URL=$address hidden '78|69' status -v --server-timeout 1s
  done
  [[ ${TEST_OVER:-} != @(sentinel|acl) ]] || return 0 # they need a password
  redis_start turn
  url=$(redis_url turn)
  watched "RLOCK_URL=$(with_secret "$url" "$SECRET")" --
  grep -qxF "RLOCK_URL=$url" child
  watched -- --url "$(with_secret "$url" "$SECRET")"
}

@test "a user in the address and a password from elsewhere: it works, the command gets the user, and no output shows it" {
  REDISCLI_AUTH=$SECRET redis srv acl setuser "$OTHER" on '>sesame' '~*' '&*' +@all >/dev/null
  url=$(with_secret "$URL" "$OTHER")
  secret_file sesame
  hidden 0 run -v --url "$url" --password-file pass x -- "$RLOCK" status -v x
  [[ $output == *'***@'* ]]
  prints "$url" rlock run --url "$url" --password-file pass x -- printenv RLOCK_URL
  REDISCLI_AUTH=$SECRET redis srv acl deluser "$OTHER" >/dev/null
}

@test "no message shows it: a wrong password, no server, no such path, a mistake on the command line, what was done" {
  url=$(with_secret "$URL" ":$OTHER")
  for format in text json; do
    RLOCK_URL=$url hidden 77 run -v --log-format $format x -- true
    hidden 77 run -v --log-format $format --url "$url" x -- true
    RLOCK_URL=$URL RLOCK_PASSWORD=$OTHER hidden 77 run -v --log-format $format x -- true
  done
  for address in "redis://:$SECRET@127.0.0.1:$(redis_free_port)" "redis://user:$SECRET@rlock-test.invalid" "unix://:$SECRET@$PWD/none"; do
    RLOCK_URL=$address hidden 69 run -v x -- true
    hidden 69 status -v --log-format json --url "$address"
  done
  export RLOCK_URL
  RLOCK_URL=$(with_secret "$URL" ":$SECRET")
  hidden 64 run --url "$RLOCK_URL" x true
  hidden 64 run "--ulr=$RLOCK_URL" x -- true
  hidden 0 acquire -v --lease 30s --export x
  hidden 0 status -v x
  hidden 0 status -v --json x
  hidden 0 force-unlock -v --yes x
  # What others see of a command.
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET run -0 --separate-stderr rlock run x -- \
    bash -c 'REDISCLI_AUTH='"$SECRET"' redis-cli -s "$srv_sock" hgetall "rlock:holder:{x}"'
  not grep -qxF "$SECRET" <<<"$output"
}

@test "a final line break in a variable, and a byte order mark in a file, are no part of the password; it may be in a pipe" {
  export RLOCK_URL=$URL
  RLOCK_PASSWORD=$SECRET$'\n' works
  REDISCLI_AUTH=$SECRET$'\r\n' works
  secret_file $'\xef\xbb\xbf'"$SECRET"$'\r'
  RLOCK_PASSWORD_FILE=$'pass\n' works
  RLOCK_PASSWORD='' hidden '7[78]' run x -- touch ran
  [[ ! -e ran ]]
  works --password-file <(sleep 0.3; echo "$SECRET")
  mkfifo -m 600 pipe
  (echo "$SECRET" >pipe) 3>&- &
  works --password-file pipe
  echo "$SECRET" | rlock run --password-file /dev/stdin x -- true
  RLOCK_PASSWORD=$'\n' tells 0 'RLOCK_PASSWORD is empty' rlock run --config <(echo "password-file = '$PWD/pass'") x -- true
}

@test "a secret of Docker or Kubernetes: root's file on a read-only tmpfs, which others may read" {
  unshare -m true 2>/dev/null || skip 'only root can mount a file system'
  mkdir mounted
  echo "$SECRET" >pass
  # in_mount MODE OPTIONS WRITABLE: a job with that file.
  in_mount() {
    timeout -k 1 60 unshare -m sh -ec 'mount -t tmpfs t mounted; cp pass mounted; chmod "$1" mounted/pass; chown "$2" mounted/pass
      mount -o "remount,$3" mounted; shift 3; exec "$@"' sh "$@" "$RLOCK" run --url "$URL" --password-file mounted/pass x -- true
  }
  run -0 --separate-stderr in_mount 444 0 ro
  run -0 --separate-stderr in_mount 644 0 ro
  tells 78 'others may read it' in_mount 444 0 rw
  tells 78 'belongs to another user' in_mount 444 65534 ro
}

@test "root's password file that its group may read works for a user in that group" {
  ((EUID == 0)) || skip 'only root can give a file away'
  local folder as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${as[@]}" test -x "$RLOCK" || skip 'nobody may not run rlock here'
  folder=$(mktemp -d)
  chmod 755 "$folder"
  echo "$SECRET" >"$folder/pass"
  chown 0:65534 "$folder/pass"
  chmod 440 "$folder/pass"
  as+=(timeout -k 1 60 "$RLOCK" run --url unix:///none --password-file "$folder/pass" x -- true)
  # No server is needed, because a refused file is reported first.
  run -69 --separate-stderr "${as[@]}"
  refused 78 'others may read it' --url "$URL" --password-file "$folder/pass"
  chmod 444 "$folder/pass"
  tells 78 'others may read it' "${as[@]}"
  assert_says RLOCK_PASSWORD
  chmod 440 "$folder/pass"
  chown 65534 "$folder/pass"
  tells 78 'others may read it' "${as[@]}"
  rm -rf "$folder"
}

# Nested runs: the inner one gets the password from the outer one's source if the command can read that; else it is told
# what to do. Both may be in any folder.
nested() { run --separate-stderr rlock run "$@" x -- sh -c 'mkdir -p elsewhere; cd elsewhere && "$RLOCK" run -n x -- "$RLOCK" status --is-held x'; }
# nests OPTION...: so it works.
nests() {
  nested "$@"
  [[ $status == 0 && -z $stderr ]]
}

@test "nested: an inner rlock reads the files with address and password that the outer one has read" {
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p config/rlock
  config "url = \"$(with_secret "$URL" ":$SECRET")\""
  mv c.toml config/rlock/rlock.toml
  nests
  # It is only for that server.
  RLOCK_URL=$URL run -0 --separate-stderr rlock status x
  case $URL in
    unix:*) another=$URL?db=3 ;;
    *cluster:*) another=${URL/127.0.0.1/localhost} ;;
    *) another=$URL/3 ;;
  esac
  RLOCK_URL=$another hidden 77 status x
  assert_says NOAUTH
  [[ $stderr != *'rlock run'* ]]
  RLOCK_URL=$URL RLOCK_PASSWORD=$OTHER hidden 77 status x
  # A file with the password, or with that and the address, by option, variable and configuration.
  unset XDG_CONFIG_HOME
  config "url = \"$(with_secret "$URL" ":$SECRET")\""
  nests --config c.toml
  RLOCK_CONFIG=c.toml nests
  secret_file "$SECRET"
  export RLOCK_URL=$URL
  nests --password-file pass
  RLOCK_PASSWORD_FILE=pass nests
  config "password-file = \"$PWD/pass\""
  nests --config c.toml
}

@test "nested: a password from elsewhere does not reach the command, which is told what to do" {
  told() {
    nested "$@"
    [[ $status == 77 && $stderr == *'under `rlock run`, which does not pass passwords on'*RLOCK_PASSWORD_FILE* ]]
    unseen
  }
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET told
  RLOCK_URL=$URL REDISCLI_AUTH=$SECRET told
  RLOCK_URL=$(with_secret "$URL" ":$SECRET") told
  told --url "$(with_secret "$URL" ":$SECRET")" -q
  RLOCK_URL=$URL told --password-file <(echo "$SECRET")
  secret_file "$SECRET"
  RLOCK_URL=$URL told --password-file /dev/stdin <pass
  told --config <(echo "url = \"$(with_secret "$URL" ":$SECRET")\"")
  # And then it works.
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET run -0 --separate-stderr rlock run x -- env RLOCK_PASSWORD_FILE=pass "$RLOCK" run -n x -- echo in
  [[ $output == in ]]
}

# in_memory PID...: how often the password is in the memory of these processes altogether. One that has ended has no
# memory; one that is unreadable is an error.
in_memory() {
  python3 - "$SECRET" "$@" <<'PYTHON'
import sys
secret, found = sys.argv[1].encode(), 0
for pid in sys.argv[2:]:
    try:
        memory, maps = open(f"/proc/{pid}/mem", "rb", 0), open(f"/proc/{pid}/maps").readlines()
    except (FileNotFoundError, ProcessLookupError):
        continue
    with memory:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if not line.split()[1].startswith("r") or "[v" in line:
                continue
            try:
                memory.seek(begin)
                found += memory.read(end - begin).count(secret)
            except OSError:
                pass
print(found)
PYTHON
}

readable_memory() {
  ((EUID == 0)) || skip 'only root may look into the memory of guards'
  ! grep -q __asan_init "$RLOCK" || skip 'with AddressSanitizer freed memory is not overwritten'
}

# remembered [VARIABLE=VALUE ...] -- OPTION...: while such a job runs, its frontend has no copy of the password left,
# and all of its other processes have one at most. The same while a hook runs and the command waits for its end.
remembered() {
  local state
  with_job 'touch child' "$@" --on-acquire 'touch hook; until [ -e go.hook ]; do sleep 0.1; done'
  for state in hook child; do
    wait_until test -e $state
    [[ $(in_memory "$frontend") == 0 ]] && (($(in_memory $(tree_of "$frontend")) <= 1)) || {
      echo "in $state: $(in_memory "$frontend") and $(in_memory $(tree_of "$frontend"))"
      touch go.hook go
      return 1
    }
    touch go.hook
  done
  let_end go "$frontend"
}

@test "the memory of a job's processes has the password at most once, from whatever source" {
  readable_memory
  url=$(with_secret "$URL" ":$SECRET")
  secret_file "$SECRET"
  remembered "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" --
  remembered "RLOCK_URL=$url" --
  remembered -- --url "$url"
  remembered "RLOCK_URL=$URL" -- --password-file pass
  remembered "RLOCK_URL=$URL" -- --password-command 'cat pass'
  config "url = \"$url\""
  remembered -- --config c.toml
  ! pid_namespaces || remembered "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" -- --isolate
  # Another password than the one that takes precedence.
  local right=$SECRET
  local SECRET=$OTHER
  remembered "RLOCK_PASSWORD=$right" "REDISCLI_AUTH=$OTHER" "RLOCK_URL=$URL" --
  # The keeper, too.
  SECRET=$right
  sleep 100 3>&- &
  local watched=$!
  owner=$(RLOCK_PASSWORD=$SECRET RLOCK_URL=$URL rlock acquire --for-pid "$watched" x)
  keeper=$(pgrep -f -- "--for-pid $watched")
  (($(in_memory "$keeper") <= 1))
  RLOCK_PASSWORD=$SECRET RLOCK_URL=$URL rlock release --owner "$owner" x
  kill "$watched"
  wait_until gone "$keeper"
}

@test "memory: an ordinary user's command cannot read that of its guards, which work like others" {
  needs_nobody
  local look='import os
def read(pid):
    try:
        with open(f"/proc/{pid}/mem", "rb", 0) as memory, open(f"/proc/{pid}/maps") as maps:
            return "read"
    except PermissionError:
        return "refused"
monitor = os.getppid()
with open(f"/proc/{monitor}/stat") as stat:
    frontend = stat.read().rsplit(")", 1)[1].split()[1]
print(read(os.getpid()), read(monitor), read(frontend))'
  export RLOCK_URL=$URL
  as() { RLOCK_PASSWORD=$SECRET as_nobody timeout -k 1 60 "$RLOCK" run "$@"; }
  prints 'read refused refused' as x -- python3 -c "$look"
  # Messages go to a pipe, which is opened again.
  tells 127 'command not found' as x -- ./none
  # The command's leftovers are found and ended.
  run -0 --separate-stderr as x -- bash -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $!'
  wait_until gone "$output"
  # A signal ends both it and the command.
  run -131 --separate-stderr as x -- sh -c 'kill -s QUIT $$'
  # Locks over several steps.
  run -0 --separate-stderr as x y -- true
}

# A password may be shown in another form, so its parts are searched for.
STRANGE=$'s3cr3t\\open\'s%41"\x1bs3same'

# refused_unseen STATUS URL COMMAND...: with either password, from each source, in each way, the server's answer ends
# it, and no message contains any of the password.
refused_unseen() {
  local expected=$1 url=$2 password from
  shift 2
  for password in "$SECRET" "$STRANGE"; do
    secret_file "$password"
    for from in --password-file=pass '--password-command=cat pass'; do
      run "-$expected" --separate-stderr rlock --url "$url" "$from" "$@"
      [[ $stderr == *rlock:* && ! -e ran && $output$stderr != *@(s3cr3t|open|s3same)* ]]
    done
  done
}

worker_at() { echo "${1%%//*}//worker@${1#*//}"; }

@test "a server that does not know AUTH repeats the password, but rlock does not" {
  not_over acl 'redis-cli must log in'
  redis_start deaf --rename-command AUTH ''
  for url in "$(redis_url deaf)" "$(worker_at "$(redis_url deaf)")"; do
    refused_unseen 69 "$url" run job -- touch ran
    assert_says 'AUTH: the server answered: ERR unknown command'
  done
  refused_unseen 69 "$url" doctor
  # Neither can be part of a quorum.
  [[ ${TEST_OVER:-} == @(cluster|sentinel) ]] || refused_unseen 69 "$url unix:///nowhere/1 unix:///nowhere/2" status
}

@test "a server that is not Redis repeats the password, but rlock does not show it" {
  odd echo
  refused_unseen 69 "$(worker_at "$url")" run job -- touch ran
  assert_says 'this is not a Redis server'
  for text in 'ERR no such command' WRONGPASS 'ERR unknown command' 'MOVED 1' $'\x1b[31m'; do
    for mode in repeat behind; do
      odd $mode "$text"
      RLOCK_PASSWORD=$SECRET run --separate-stderr timeout 60 "$RLOCK" run --url "$(worker_at "$url")" job -- touch ran
      [[ $stderr == *rlock:* && $status != 0 && ! -e ran && $output$stderr != *s3cr3t* ]]
      [[ $mode == behind || $stderr == *'AUTH: '* ]]
    done
  done
}

@test "warnings show no password if the job's server no longer knows AUTH" {
  not_over sentinel acl 'neither a Sentinel nor redis-cli could log in'
  redis_start turn --requirepass "$SECRET"
  secret_file "$SECRET"
  "$RLOCK" run -v -l 5s --url "$(redis_url turn)" --password-file pass job -- sh -c 'touch began; sleep 1000' >out 2>err 3>&- &
  local job=$!
  wait_until test -e began
  redis_stop turn
  redis_start turn --rename-command AUTH ''
  wait_until grep -q 'cannot renew.*unknown command' err
  end_mine "$job" # unless it has lost its lock already
  wait_until gone "$job"
  not grep -F s3cr3t out err
  redis_stop turn
}
