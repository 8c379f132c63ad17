#!/usr/bin/env bats
# Passwords: every source, their order, and that none is ever shown.

load ../lib/common

SECRET=s3cr3t-open-sesame
OTHER=an0ther-wr0ng-one

setup_file() {
  redis_start srv --unixsocketperm 777
  redis srv config set requirepass "$SECRET" >/dev/null
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true # for as_nobody
}
setup() {
  URL=$(redis_url srv)
  unset RLOCK_URL RLOCK_PASSWORD REDISCLI_AUTH
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  [[ ! -d $BATS_TEST_TMPDIR/l ]] || "$RLOCK" --url "local:$BATS_TEST_TMPDIR/l" local stop --yes >/dev/null 2>&1 || true
  end_mine_wholly "${odd_pid:-}"
  redis_stop deaf
  redis_stop turn
  REDISCLI_AUTH=$SECRET assert_clean srv
}
teardown_file() { redis_stop srv; }

with_secret() { printf '%s%s%s' "${1%%//*}//" "$2@" "${1#*//}"; }
secret_file() {
  printf '%s\n' "$1" >pass
  chmod 600 pass
}

# unseen SECRET...: the last run wrote none of them.
unseen() {
  local secret
  for secret; do
    [[ $output${stderr:-} != *"$secret"* ]] || {
      show
      return 1
    }
  done
}

tree_of() {
  local pid
  for pid in $(pgrep -P "$1"); do
    echo "$pid"
    tree_of "$pid"
  done
}

# watched [VARIABLE=VALUE ...] -- OPTION...: while such a job runs, no secret is visible in its processes or their
# output.
watched() {
  local variables=() frontend pid what
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  rm -f held child go
  (
    for what in "${variables[@]}"; do export "${what?}"; done
    exec "$RLOCK" run -v --log-format json "$@" x -- \
      bash -c 'env >child.new; mv child.new child; while [ ! -e go ]; do sleep 0.02; done' >job.out 2>job.err 3>&-
  ) &
  frontend=$!
  wait_until test -e child || {
    : >go
    cat job.err
    return 1
  }
  for pid in "$frontend" $(tree_of "$frontend"); do
    for what in cmdline environ; do
      # An ordinary user cannot read a guard's environment.
      [[ $what == cmdline || -r /proc/$pid/environ ]] || continue
      : >"seen.$what"
      tr '\0' '\n' <"/proc/$pid/$what" >"seen.$what" 2>/dev/null || true
      # The command's nap may be over by now.
      [[ -s seen.$what ]] || {
        gone "$pid"
        continue
      }
      not grep -F -e "$SECRET" -e "$OTHER" "seen.$what" || {
        echo "in $what of $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        : >go
        return 1
      } >&2
    done
  done
  not grep -F -e "$SECRET" -e "$OTHER" child || {
    : >go
    return 1
  }
  : >go
  wait "$frontend"
  not grep -F -e "$SECRET" -e "$OTHER" job.out job.err
}

@test "a password in --url works, with a warning" {
  run -0 --separate-stderr rlock run --url "$(with_secret "$URL" ":$SECRET")" x -- echo ran
  [[ $output == ran && $stderr == *warning*password* ]]
  unseen "$SECRET"
}

@test "a password in RLOCK_URL works, without a warning" {
  RLOCK_URL=$(with_secret "$URL" ":$SECRET") run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
}

@test "RLOCK_PASSWORD, REDISCLI_AUTH and a file work, without a warning" {
  export RLOCK_URL=$URL
  RLOCK_PASSWORD=$SECRET run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  REDISCLI_AUTH=$SECRET run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  secret_file "$SECRET"
  run -0 --separate-stderr rlock run --password-file pass x -- echo ran
  [[ $output == ran && -z $stderr ]]
  RLOCK_PASSWORD_FILE=pass run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  printf %s "$SECRET" >pass
  run -0 --separate-stderr rlock run --password-file pass x -- echo ran
  [[ $output == ran && -z $stderr ]]
}

@test "the order: file, RLOCK_PASSWORD, REDISCLI_AUTH, address" {
  local wrong right
  wrong=$(with_secret "$URL" ":$OTHER")
  right=$(with_secret "$URL" ":$SECRET")
  RLOCK_URL=$wrong REDISCLI_AUTH=$SECRET run -0 --separate-stderr rlock status
  RLOCK_URL=$right REDISCLI_AUTH=$OTHER run -77 --separate-stderr rlock status
  unseen "$SECRET" "$OTHER"
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET REDISCLI_AUTH=$OTHER run -0 --separate-stderr rlock status
  RLOCK_URL=$URL RLOCK_PASSWORD=$OTHER REDISCLI_AUTH=$SECRET run -77 --separate-stderr rlock status
  unseen "$SECRET" "$OTHER"
  secret_file "$SECRET"
  RLOCK_URL=$wrong RLOCK_PASSWORD=$OTHER REDISCLI_AUTH=$OTHER run -0 --separate-stderr rlock status --password-file pass
  secret_file "$OTHER"
  RLOCK_URL=$right RLOCK_PASSWORD=$SECRET REDISCLI_AUTH=$SECRET run -77 --separate-stderr rlock status --password-file pass
  unseen "$SECRET" "$OTHER"
}

@test "processes: RLOCK_PASSWORD" { watched "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" --; }
@test "processes: REDISCLI_AUTH" { watched "REDISCLI_AUTH=$SECRET" "RLOCK_URL=$URL" --; }
@test "processes: both, one of them unused" {
  watched "RLOCK_PASSWORD=$SECRET" "REDISCLI_AUTH=$OTHER" "RLOCK_URL=$URL" --
}
@test "processes: RLOCK_URL" {
  watched "RLOCK_URL=$(with_secret "$URL" ":$SECRET")" --
  grep -qxF "RLOCK_URL=$URL" child
}
@test "processes: RLOCK_URL, while --url takes precedence" {
  watched "RLOCK_URL=$(with_secret "$URL" ":$OTHER")" "RLOCK_PASSWORD=$SECRET" -- --url "$URL"
}
@test "processes: --password-file" {
  secret_file "$SECRET"
  watched "RLOCK_URL=$URL" -- --password-file pass
}
@test "processes: --password-command" {
  secret_file "$SECRET"
  watched "RLOCK_URL=$URL" -- --password-command 'cat pass'
}
@test "processes: --url" { watched -- --url "$(with_secret "$URL" ":$SECRET")"; }
@test "processes: --url=" { watched -- "--url=$(with_secret "$URL" ":$SECRET")"; }
@test "processes: a password that is percent-encoded in the address" {
  watched -- --url "$(with_secret "$URL" ":${SECRET/-/%2D}")"
  not grep -F "${SECRET/-/%2D}" job.err seen.environ seen.cmdline child
}
@test "processes: the address in a configuration file" {
  echo "url = \"$(with_secret "$URL" ":$SECRET")\"" >c.toml
  chmod 600 c.toml
  watched -- --config c.toml
}

# redis-cli takes a word alone before the @ for the password; rlock takes it for a user, and may be wrong.
@test "a word alone before the @: no output shows it, and a message says how to write a password" {
  local url line
  url=$(with_secret "$URL" "$SECRET")
  for line in 'run x -- touch ran' 'acquire x --lease 5s' 'renew x --owner a:1 --lease 5s' 'release x --owner a:1' 'force-unlock --yes --now x' status \
    'status x' 'status --json x' 'history x' doctor 'doctor --json'; do
    run -77 --separate-stderr rlock -v --log-format json --url "$url" $line
    [[ $output$stderr == *'write redis://:PASSWORD@host'* && ! -e ran ]]
    unseen "$SECRET"
    RLOCK_URL=$url run -77 --separate-stderr rlock -v $line
    unseen "$SECRET"
  done
  echo "url = \"$url\"" >c.toml
  run -0 --separate-stderr rlock config --config c.toml
  [[ $output == *'***@'* ]]
  unseen "$SECRET"
  # A command line without --.
  run -64 --separate-stderr rlock run x --url "$url" true --no-such
  unseen "$SECRET"
}

@test "a word alone before the @: no error about the address shows it" {
  local address
  for address in "redis://$SECRET@127.0.0.1:0" "ftp://$SECRET@127.0.0.1" "redis://$SECRET@[::1" "redis://$SECRET@127.0.0.1/abc" \
    "unix://$SECRET@" "redis://$SECRET%zz@127.0.0.1" "redis:/$SECRET@127.0.0.1" "$SECRET@127.0.0.1" "redis:$SECRET@127.0.0.1" \
    "redis+sentinel://$SECRET@127.0.0.1" "redis+cluster://$SECRET@127.0.0.1:1,$SECRET@127.0.0.1:2" \
    "redis+sentinel://$SECRET@127.0.0.1:1,$SECRET@127.0.0.1:2/m" "redis://$SECRET@a:1,redis://$SECRET@b"; do
    run --separate-stderr rlock run -v --server-timeout 1s --url "$address" x -- true
    [[ $status == @(64|69) ]]
    unseen "$SECRET"
    RLOCK_URL=$address run --separate-stderr rlock status -v --server-timeout 1s
    [[ $status == @(78|69) ]]
    unseen "$SECRET"
  done
}

@test "processes: a word alone before the @, of a server without a password" {
  not_over sentinel acl 'the server requires a password'
  redis_start turn
  local url
  url=$(redis_url turn)
  watched "RLOCK_URL=$(with_secret "$url" "$SECRET")" --
  grep -qxF "RLOCK_URL=$url" child
  watched -- --url "$(with_secret "$url" "$SECRET")"
  redis_stop turn
}

@test "a user in the address and a password from elsewhere: it works, the command gets the user, and no output shows it" {
  REDISCLI_AUTH=$SECRET redis srv acl setuser "$OTHER" on '>sesame' '~*' '&*' +@all >/dev/null
  local url
  url=$(with_secret "$URL" "$OTHER")
  secret_file sesame
  run -0 --separate-stderr rlock run -v --url "$url" --password-file pass x -- "$RLOCK" status -v x
  [[ $output == *'***@'* ]]
  unseen "$OTHER"
  run -0 --separate-stderr rlock run --url "$url" --password-file pass x -- printenv RLOCK_URL
  [[ $output == "$url" ]]
  REDISCLI_AUTH=$SECRET redis srv acl deluser "$OTHER" >/dev/null
}

@test "no message shows it: the wrong password" {
  local format
  for format in text json; do
    RLOCK_URL=$(with_secret "$URL" ":$OTHER") run -77 --separate-stderr rlock run -v --log-format $format x -- true
    unseen "$OTHER"
    run -77 --separate-stderr rlock run -v --log-format $format --url "$(with_secret "$URL" ":$OTHER")" x -- true
    unseen "$OTHER"
    RLOCK_URL=$URL RLOCK_PASSWORD=$OTHER run -77 --separate-stderr rlock run -v --log-format $format x -- true
    unseen "$OTHER"
  done
}

@test "no message shows it: no server, no host, no such path" {
  local address
  for address in "redis://:$SECRET@127.0.0.1:$(redis_free_port)" "redis://user:$SECRET@rlock-test.invalid" \
    "unix://:$SECRET@$PWD/none" "redis://:$SECRET@127.0.0.1:$(redis_free_port)/5"; do
    RLOCK_URL=$address run -69 --separate-stderr rlock run -v x -- true
    unseen "$SECRET"
    run -69 --separate-stderr rlock run -v --log-format json --url "$address" x -- true
    unseen "$SECRET"
    run -69 --separate-stderr rlock status -v --url "$address"
    unseen "$SECRET"
  done
}

@test "no message shows it: a wrong address" {
  local address
  for address in "redis://:$SECRET@127.0.0.1:0" "redis://:$SECRET@127.0.0.1:70000" "ftp://:$SECRET@127.0.0.1" \
    "redis://:$SECRET@[::1" "redis://:$SECRET@" "redis://:$SECRET@127.0.0.1/abc" "unix://:$SECRET@" \
    "redis://:$SECRET%zz@127.0.0.1" "redis:/:$SECRET@127.0.0.1" "user:$SECRET@127.0.0.1" "rediss//:$SECRET@host" \
    "redis://a:$SECRET/x@127.0.0.1" "redis://a:$SECRET?x@127.0.0.1"; do
    run --separate-stderr rlock run -v --server-timeout 1s --url "$address" x -- true
    [[ $status == 64 || $status == 69 ]]
    unseen "$SECRET"
    RLOCK_URL=$address run --separate-stderr rlock run -v --server-timeout 1s x -- true
    [[ $status == 78 || $status == 69 ]]
    unseen "$SECRET"
  done
}

@test "no message shows it: an address that ends after the password" {
  run -64 --separate-stderr rlock status --url "redis://:$SECRET"
  unseen "$SECRET"
  RLOCK_URL=redis://user:$SECRET run -78 --separate-stderr rlock status
  unseen "$SECRET"
}

@test "no message shows it: the corrected command line" {
  run -64 --separate-stderr rlock run --url "$(with_secret "$URL" ":$SECRET")" x true
  unseen "$SECRET"
}

@test "no message shows it: a misspelled option" {
  run -64 --separate-stderr rlock run "--ulr=$(with_secret "$URL" ":$SECRET")" x -- true
  unseen "$SECRET"
}

@test "status, acquire and force-unlock do not show it" {
  export RLOCK_URL
  RLOCK_URL=$(with_secret "$URL" ":$SECRET")
  run -0 --separate-stderr rlock acquire -v --lease 30s --export x
  unseen "$SECRET"
  run -0 --separate-stderr rlock status -v x
  unseen "$SECRET"
  run -0 --separate-stderr rlock status -v --json x
  unseen "$SECRET"
  run -0 --separate-stderr rlock force-unlock -v --yes x
  unseen "$SECRET"
}

@test "what others see of a command has no password of rlock" {
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET run -0 --separate-stderr rlock run x -- \
    bash -c 'REDISCLI_AUTH='"$SECRET"' redis-cli -s "$srv_sock" hgetall "rlock:holder:{x}"'
  not grep -qxF "$SECRET" <<<"$output"
}

@test "a password file that others can read" {
  secret_file "$SECRET"
  chmod 644 pass
  run -78 --separate-stderr rlock run --url "$URL" --password-file pass x -- touch ran
  assert_says pass
  unseen "$SECRET"
  chmod 640 pass
  run -78 --separate-stderr rlock run --url "$URL" --password-file pass x -- touch ran
  [[ ! -e ran ]]
}

@test "a final line break in a variable, and a byte order mark in a file, are no part of the password" {
  RLOCK_PASSWORD=$SECRET$'\n' run -0 --separate-stderr rlock run --url "$URL" x -- true
  REDISCLI_AUTH=$SECRET$'\r\n' run -0 --separate-stderr rlock run --url "$URL" x -- true
  secret_file $'\xef\xbb\xbf'"$SECRET"$'\r'
  RLOCK_PASSWORD_FILE=$'pass\n' run -0 --separate-stderr rlock run --url "$URL" x -- true
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
  run -78 --separate-stderr in_mount 444 0 rw
  assert_says 'others may read it'
  run -78 --separate-stderr in_mount 444 65534 ro
  assert_says 'belongs to another user'
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
  run -78 --separate-stderr rlock run --url "$URL" --password-file "$folder/pass" x -- touch ran
  assert_says 'others may read it'
  chmod 444 "$folder/pass"
  run -78 --separate-stderr "${as[@]}"
  assert_says 'others may read it'
  assert_says RLOCK_PASSWORD
  chmod 440 "$folder/pass"
  chown 65534 "$folder/pass"
  run -78 --separate-stderr "${as[@]}"
  assert_says 'others may read it'
  rm -rf "$folder"
  [[ ! -e ran ]]
}

@test "a password file that is a folder, empty, or missing" {
  mkdir -m 700 folder
  run -78 --separate-stderr rlock run --url "$URL" --password-file folder x -- touch ran
  assert_says folder
  : >empty
  chmod 600 empty
  run -78 --separate-stderr rlock run --url "$URL" --password-file empty x -- touch ran
  assert_says empty
  RLOCK_PASSWORD=$SECRET run -78 --separate-stderr rlock run --url "$URL" --password-file none x -- touch ran
  assert_says none
  run -78 --separate-stderr env RLOCK_PASSWORD_FILE=none "$RLOCK" run --url "$URL" x -- touch ran
  [[ ! -e ran ]]
}

@test "a password file that never ends does not hang" {
  mkfifo -m 600 pipe
  run --separate-stderr rlock run --url "$URL" --password-file pipe x -- touch ran
  [[ $status == 78 && ! -e ran ]]
}

@test "a password from a pipe" {
  run -0 --separate-stderr rlock run --url "$URL" --password-file <(sleep 0.3; echo "$SECRET") x -- echo ran
  [[ $output == ran ]]
  mkfifo -m 600 pipe
  (echo "$SECRET" >pipe) 3>&- &
  run -0 --separate-stderr rlock run --url "$URL" --password-file pipe x -- true
  echo "$SECRET" | rlock run --url "$URL" --password-file /dev/stdin x -- true
}

@test "a password file of another user, or one that others may write to" {
  secret_file "$SECRET"
  chmod 622 pass
  run -78 --separate-stderr rlock run --url "$URL" --password-file pass x -- touch ran
  assert_says 'chmod go-w'
  unseen "$SECRET"
  ((EUID == 0)) || skip 'only root can give a file away'
  chmod 600 pass
  chown 65534 pass
  run -78 --separate-stderr rlock run --url "$URL" --password-file pass x -- touch ran
  assert_says 'another user'
  [[ ! -e ran ]]
}

# Nested runs: the inner one gets the password from the outer one's source if the command can read that; else it is told
# what to do. Both may be in any folder.
nested() { run --separate-stderr rlock run "$@" x -- sh -c 'mkdir -p elsewhere; cd elsewhere && "$RLOCK" run -n x -- "$RLOCK" status --is-held x'; }

@test "nested: address and password in the user's configuration file" {
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p config/rlock
  echo "url = \"$(with_secret "$URL" ":$SECRET")\"" >config/rlock/rlock.toml
  chmod 600 config/rlock/rlock.toml
  nested
  show
  [[ $status == 0 && -z $stderr ]]
  # It is only for that server.
  RLOCK_URL=$URL run -0 --separate-stderr rlock status x
  local another
  case $URL in
    unix:*) another=$URL?db=3 ;;
    *cluster:*) another=${URL/127.0.0.1/localhost} ;;
    *) another=$URL/3 ;;
  esac
  RLOCK_URL=$another run -77 --separate-stderr rlock status x
  assert_says NOAUTH
  [[ $stderr != *'rlock run'* ]]
  RLOCK_URL=$URL RLOCK_PASSWORD=$OTHER run -77 --separate-stderr rlock status x
  unseen "$SECRET" "$OTHER"
}

@test "nested: address and password in the file of --config or RLOCK_CONFIG" {
  echo "url = \"$(with_secret "$URL" ":$SECRET")\"" >c.toml
  chmod 600 c.toml
  nested --config c.toml
  show
  [[ $status == 0 && -z $stderr ]]
  RLOCK_CONFIG=c.toml nested
  show
  [[ $status == 0 && -z $stderr ]]
}

@test "nested: address and password in a profile" {
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p config/rlock
  {
    echo "url = \"unix://:$OTHER@$PWD/none\""
    printf '[profile.ci]\nurl = "%s"\n[profile.other]\n' "$(with_secret "$URL" ":$SECRET")"
  } >c.toml
  chmod 600 c.toml
  nested --config c.toml --profile ci
  show
  [[ $status == 0 && -z $stderr ]]
  RLOCK_CONFIG=c.toml RLOCK_PROFILE=ci nested
  show
  [[ $status == 0 && -z $stderr ]]
  # A pipe cannot be read again.
  nested --config <(cat c.toml) --profile ci
  [[ $status == 77 && $stderr == *RLOCK_PASSWORD_FILE* ]]
  unseen "$SECRET" "$OTHER"
  cp c.toml config/rlock/rlock.toml
  nested --profile ci
  [[ $status == 0 && -z $stderr ]]
  # A profile that is not chosen does not matter.
  RLOCK_URL=$URL run -77 --separate-stderr rlock status --profile other x
  assert_says 'requires a password'
}

@test "nested: an address outside of profiles uses its own password, regardless of the profile's address" {
  {
    printf 'url = "%s"\n' "$(with_secret "$URL" ":$SECRET")"
    printf '[profile.ci]\nurl = "unix://:%s@%s/none"\n' "$OTHER" "$PWD"
  } >c.toml
  chmod 600 c.toml
  RLOCK_URL=$URL run -0 --separate-stderr rlock status --config c.toml --profile ci x
  RLOCK_URL=$URL nested --config c.toml --profile ci
  show
  [[ $status == 0 && -z $stderr ]]
}

@test "nested: a password file, by option, variable and configuration" {
  secret_file "$SECRET"
  export RLOCK_URL=$URL
  nested --password-file pass
  [[ $status == 0 && -z $stderr ]]
  RLOCK_PASSWORD_FILE=pass nested
  [[ $status == 0 && -z $stderr ]]
  echo 'password-file = "pass"' >c.toml
  nested --config c.toml
  [[ $status == 0 && -z $stderr ]]
}

@test "nested: a password from elsewhere does not reach the command, which is told what to do" {
  told() {
    show
    [[ $status == 77 && $stderr == *'under `rlock run`, which does not pass passwords on'*RLOCK_PASSWORD_FILE* ]]
    unseen "$SECRET"
  }
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET nested
  told
  RLOCK_URL=$URL REDISCLI_AUTH=$SECRET nested
  told
  RLOCK_URL=$(with_secret "$URL" ":$SECRET") nested
  told
  nested --url "$(with_secret "$URL" ":$SECRET")" -q
  told
  RLOCK_URL=$URL nested --password-file <(echo "$SECRET")
  told
  nested --config <(echo "url = \"$(with_secret "$URL" ":$SECRET")\"")
  told
  # And then it works.
  secret_file "$SECRET"
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET run -0 --separate-stderr rlock run x -- env RLOCK_PASSWORD_FILE=pass "$RLOCK" run -n x -- echo in
  [[ $output == in ]]
}

@test "an empty password counts as none" {
  RLOCK_PASSWORD='' run --separate-stderr rlock run --url "$URL" x -- touch ran
  [[ $status =~ ^7[78]$ && ! -e ran ]]
}

@test "local: ignores REDISCLI_AUTH" {
  REDISCLI_AUTH=$OTHER run -0 --separate-stderr rlock run --url "local:$BATS_TEST_TMPDIR/l" x -- echo ran
  [[ $output == ran ]]
  unseen "$OTHER"
  run -0 --separate-stderr rlock --url "local:$BATS_TEST_TMPDIR/l" local stop --yes
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
  readable_memory
  local variables=() frontend state
  while [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift
  rm -f hook child go.*
  (
    for what in "${variables[@]}"; do export "${what?}"; done
    exec "$RLOCK" run "$@" --on-acquire 'touch hook; until [ -e go.hook ]; do sleep 0.02; done' x -- \
      sh -c 'touch child; until [ -e go.child ]; do sleep 0.02; done' >job.out 2>job.err 3>&-
  ) &
  frontend=$!
  for state in hook child; do
    wait_until test -e $state
    [[ $(in_memory "$frontend") == 0 ]] && (($(in_memory $(tree_of "$frontend")) <= 1)) || {
      echo "in $state: $(in_memory "$frontend") and $(in_memory $(tree_of "$frontend"))"
      touch go.hook go.child
      return 1
    }
    touch go.$state
  done
  wait "$frontend"
}

@test "memory: RLOCK_PASSWORD" { remembered "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" --; }
@test "memory: REDISCLI_AUTH, while another password takes precedence" {
  local right=$SECRET
  local SECRET=$OTHER # looked for
  remembered "RLOCK_PASSWORD=$right" "REDISCLI_AUTH=$OTHER" "RLOCK_URL=$URL" --
}
@test "memory: RLOCK_URL" { remembered "RLOCK_URL=$(with_secret "$URL" ":$SECRET")" --; }
@test "memory: --url" { remembered -- --url "$(with_secret "$URL" ":$SECRET")"; }
@test "memory: --password-file" {
  secret_file "$SECRET"
  remembered "RLOCK_URL=$URL" -- --password-file pass
}
@test "memory: --password-command" {
  secret_file "$SECRET"
  remembered "RLOCK_URL=$URL" -- --password-command 'cat pass'
}
@test "memory: the address in a configuration file" {
  echo "url = \"$(with_secret "$URL" ":$SECRET")\"" >c.toml
  chmod 600 c.toml
  remembered -- --config c.toml
}
@test "memory: the address in a profile" {
  printf 'url = "unix://:%s@%s/none"\n' "$OTHER" "$PWD" >c.toml
  printf '[profile.ci]\nurl = "%s"\n' "$(with_secret "$URL" ":$SECRET")" >>c.toml
  chmod 600 c.toml
  remembered -- --config c.toml --profile ci
}
@test "memory: with --isolate" {
  unshare -p -f true 2>/dev/null || skip 'PID NAMESPACES ARE NOT ALLOWED HERE'
  remembered "RLOCK_PASSWORD=$SECRET" "RLOCK_URL=$URL" -- --isolate
}

@test "memory: the keeper has at most one copy" {
  readable_memory
  local owner keeper
  sleep 100 3>&- &
  local watched=$!
  owner=$(RLOCK_PASSWORD=$SECRET RLOCK_URL=$URL rlock acquire --for-pid "$watched" x)
  keeper=$(pgrep -f -- "--for-pid $watched")
  (($(in_memory "$keeper") <= 1))
  RLOCK_PASSWORD=$SECRET RLOCK_URL=$URL rlock release --owner "$owner" x
  kill "$watched"
  wait_until gone "$keeper"
}

@test "memory: an ordinary user's command cannot read that of its guards" {
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
  RLOCK_URL=$URL RLOCK_PASSWORD=$SECRET run -0 --separate-stderr as_nobody timeout -k 1 60 "$RLOCK" run x -- python3 -c "$look"
  show
  [[ $output == 'read refused refused' && -z $stderr ]]
}

@test "guards with unreadable memory work like others, for an ordinary user" {
  needs_nobody
  export RLOCK_URL=$URL
  as() { RLOCK_PASSWORD=$SECRET as_nobody timeout -k 1 60 "$RLOCK" run "$@"; }
  # Messages go to a pipe, which is opened again.
  run -127 --separate-stderr as x -- ./none
  assert_says 'command not found'
  # The command's leftovers are found and ended.
  run -0 --separate-stderr as x -- bash -c 'setsid sleep 1000 >/dev/null 2>&1 & echo $!'
  wait_until gone "$output"
  # A signal ends both it and the command.
  run -131 --separate-stderr as x -- sh -c 'kill -s QUIT $$'
  # Locks over several steps.
  run -0 --separate-stderr as x y -- true
  ! as_nobody unshare -U -r -p -f true 2>/dev/null || {
    run -0 --separate-stderr as --isolate x -- sh -c 'id -u; ls /proc | grep -c "^[0-9]"'
    show
    [[ ${lines[0]} == "$(as_nobody id -u)" && -z $stderr ]]
    ((lines[1] < 10))
  }
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
      [[ $stderr == *rlock:* && ! -e ran ]]
      unseen "$SECRET" s3cr3t open s3same
    done
  done
}

worker_at() { echo "${1%%//*}//worker@${1#*//}"; }

# odd MODE [TEXT]: sets $url and $odd_pid.
odd() {
  rm -f port
  python3 "$TESTS_DIR/lib/odd_server.py" "$@" >port 2>/dev/null </dev/null 3>&- &
  odd_pid=$!
  wait_until test -s port
  url=redis://worker@127.0.0.1:$(cat port)
}
odd_end() {
  kill "$odd_pid"
  wait_until gone "$odd_pid"
}

@test "a server that does not know AUTH repeats the password, but rlock does not" {
  not_over acl 'redis-cli must log in'
  redis_start deaf --rename-command AUTH ''
  local url
  for url in "$(redis_url deaf)" "$(worker_at "$(redis_url deaf)")"; do
    refused_unseen 69 "$url" run job -- touch ran
    assert_says 'AUTH: the server answered: ERR unknown command'
  done
  refused_unseen 69 "$url" doctor
  # Neither can be part of a quorum.
  [[ ${TEST_OVER:-} == @(cluster|sentinel) ]] || refused_unseen 69 "$url unix:///nowhere/1 unix:///nowhere/2" status
  redis_stop deaf
}

@test "a server that is not Redis repeats the password, but rlock does not show it" {
  local text
  odd echo
  refused_unseen 69 "$url" run job -- touch ran
  assert_says 'this is not a Redis server'
  odd_end
  for text in 'ERR no such command' WRONGPASS 'ERR unknown command' 'MOVED 1' $'\x1b[31m'; do
    odd repeat "$text"
    run -0 --separate-stderr bash -c "RLOCK_PASSWORD=$SECRET timeout 60 '$RLOCK' run --url '$url' job -- touch ran; echo \$?"
    [[ $stderr == *'AUTH: '* && $output != 0 && ! -e ran ]]
    unseen "$SECRET" s3cr3t
    odd_end
    odd behind "$text"
    run -0 --separate-stderr bash -c "RLOCK_PASSWORD=$SECRET timeout 60 '$RLOCK' run --url '$url' job -- touch ran; echo \$?"
    [[ $stderr == *rlock:* && $output != 0 && ! -e ran ]]
    unseen "$SECRET" s3cr3t
    odd_end
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
  kill -TERM "$job"
  wait_until gone "$job"
  not grep -F s3cr3t out err
  redis_stop turn
}
