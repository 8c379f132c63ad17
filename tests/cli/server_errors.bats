# The errors of servers, what rlock says, and what it tells the user to do: the same with each subcommand. Each error
# except LOADING comes from a real server in that state.

load ../lib/common
load ../lib/tls
load ../lib/odd

setup() {
  not_over tls sentinel cluster acl 'each server is in a state of its own'
  unset RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  redis_stop srv
  redis_stop other
}

# start [OPTION VALUE ...]: a server, and $url, its address.
start() {
  redis_start srv "$@"
  url=unix://$srv_sock
}

# says STATUS WHAT ADVICE SUBCOMMAND...: each of them exits with STATUS, and prints one line that starts with WHAT and
# ends with ADVICE; rlock has the options in $options.
says() {
  local wanted=$1 what=$2 advice=$3 subcommand line
  shift 3
  for subcommand; do
    case $subcommand in
      run) line=(run -n x -- touch ran) ;;
      acquire) line=(acquire -n x --lease 5s) ;;
      renew) line=(renew x --owner a:1 --lease 5s) ;;
      release) line=(release x --owner a:1) ;;
      force-unlock) line=(force-unlock --yes --now x) ;;
      status) line=(status x) ;;
      listing) line=(status) ;;
      *) line=("$subcommand") ;;
    esac
    run --separate-stderr rlock --server-timeout 2s "${options[@]}" "${line[@]}"
    [[ $status == "$wanted" && ${stderr_lines[-1]} == 'rlock: '*"$what"*"; $advice"* && ! -e ran ]] || {
      echo "$subcommand is to end with $wanted and say: $what … $advice"
      return 1
    }
  done
}
all=(run acquire renew release force-unlock status listing history doctor)
change=(run acquire)

@test "no password: NOAUTH, also as Redis 7 says it to an unauthenticated client with a long command" {
  start --requirepass s3cret
  options=(--url "$url")
  says 77 'the server requires a password: ' 'no password was given: give one by --password-file, --password-command, --ask-password or RLOCK_PASSWORD' "${all[@]}"
  RLOCK_HELD=1 says 77 'the server requires a password: ' 'no password was given: this runs under `rlock run`' status doctor
}

@test "a wrong password: which source it came from, but never the password" {
  start --requirepass s3cret
  umask 077
  wrong() {
    says 77 WRONGPASS "the password came from $1: correct it there" "${2:-run}" "${3:-doctor}"
    [[ $stderr$output != *not-it* ]]
  }
  options=(--url "unix://:not-it@$srv_sock")
  wrong 'the address in --url' "${all[@]}"
  options=()
  RLOCK_URL=unix://:not-it@$srv_sock wrong 'the address in RLOCK_URL'
  printf 'url = "unix://:not-it@%s"\n' "$srv_sock" >c.toml
  options=(--config c.toml)
  wrong 'the address in c.toml:1: url'
  RLOCK_URL=$url wrong 'the address in the configuration file'
  options=(--url "$url")
  RLOCK_PASSWORD=not-it wrong RLOCK_PASSWORD
  REDISCLI_AUTH=not-it wrong REDISCLI_AUTH
  # Of two, the one with the higher precedence was sent.
  RLOCK_PASSWORD=not-it REDISCLI_AUTH=s3cret wrong RLOCK_PASSWORD
  echo not-it >pass
  RLOCK_PASSWORD_FILE=pass wrong 'RLOCK_PASSWORD_FILE pass'
  options+=(--password-file pass)
  wrong '--password-file pass'
  options=(--url "$url" --password-command 'echo not-it')
  wrong --password-command
}

@test "a password for a user without one; a database that does not exist" {
  start
  options=(--url "unix://:needless@$srv_sock")
  says 77 'without any password configured' 'the server has no password for this user: leave it out, or name a user' "${all[@]}"
  options=(--url "$url?db=99")
  says 78 'DB index is out of range' 'name a database that the server has, as in redis://host/0' "${all[@]}"
}

@test "a missing right" {
  start
  redis srv acl setuser worker on '>s3cret' '~*' +@connection +info >/dev/null
  options=(--url "unix://worker:s3cret@$srv_sock")
  says 77 NOPERM 'grant the rights that rlock doctor --acl prints' run acquire renew release force-unlock status listing history
  # Without a password the user `default` lacks it.
  redis srv acl setuser default -eval >/dev/null
  options=(--url "$url")
  says 77 NOPERM 'grant the rights that rlock doctor --acl prints; no password was given' run
  redis srv acl setuser default +eval >/dev/null
}

@test "a server without free memory, or with too few replicas" {
  start --maxmemory 1 --maxmemory-policy noeviction
  options=(--url "$url")
  says 69 OOM 'the server has no memory left: raise its maxmemory, or delete keys' "${change[@]}"
  tells 78 'the server has no memory left: raise its maxmemory, or delete keys' rlock doctor --url "$url"
  redis_stop srv
  start --min-replicas-to-write 1
  says 69 NOREPLICAS 'the server needs more replicas that answer (min-replicas-to-write): check that they run' "${change[@]}"
}

@test "a replica, one with its data and one that has lost its master" {
  redis_start other
  redis_listen other
  start --replicaof 127.0.0.1 "$port"
  follows() { [[ $(redis srv info replication) == *master_link_status:up* ]]; }
  wait_until follows
  options=(--url "$url")
  local names='name its master, or the Sentinels that know it (redis+sentinel://host/MASTER)'
  says 69 READONLY "it is a replica: $names" "${change[@]}"
  # A message to a replica reaches no holder.
  "$RLOCK" run --url "redis://127.0.0.1:$port" held -- sleep 1000 3>&- &
  local job=$!
  held() { [[ $(redis srv exists held) == 1 && $(listeners_on other 'rlock:control:{held}') == 1 ]]; }
  wait_until held
  tells 69 "held: unchanged: the server cannot reach the holder, because it is a replica: $names" \
    rlock force-unlock --yes --url "$url" held
  end_mine_wholly "$job"
  redis srv config set replica-serve-stale-data no >/dev/null
  redis_stop other
  wait_until not follows
  says 69 MASTERDOWN "it is a replica: $names" "${change[@]}" status listing
}

@test "a server that is loading its data: doctor says nothing about rights or configuration" {
  odd loading
  options=(--url "$url")
  says 69 LOADING 'it has just started, and is loading its data: try again soon, or let run and acquire wait for it (--wait)' "${all[@]}"
  [[ -z $output ]]
  end_odd
}

@test "a server that cannot write to its disk" {
  start
  redis srv config set save '3600 1' >/dev/null
  # No snapshot can replace a folder.
  mkdir -p "$srv_dir/dump.rdb/in-the-way"
  redis srv set key value >/dev/null
  redis srv bgsave >/dev/null
  failed() { [[ $(redis srv info persistence) == *rdb_last_bgsave_status:err* ]]; }
  wait_until failed
  options=(--url "$url")
  says 69 MISCONF 'the server cannot write to its disk, so it refuses locks: see its log, and free space' "${change[@]}"
  redis srv config set save '' >/dev/null # else it does not end before it has saved
}

@test "a server in which a script never ends" {
  start --busy-reply-threshold 10
  redis srv eval 'while true do end' 0 >/dev/null 2>&1 3>&- &
  busy() { [[ $(redis srv ping) == BUSY* ]]; }
  wait_until busy
  options=(--url "$url")
  says 69 BUSY 'another client'\''s script is taking long: try again, or end it with redis-cli SCRIPT KILL' run status listing
  redis srv script kill
}

@test "a connection that is refused: the address, and what to do" {
  port=$(redis_free_port)
  options=(--url "redis://127.0.0.1:$port")
  says 69 "redis://127.0.0.1:$port: connect: Connection refused" 'no server listens there: start it, or correct the address' "${all[@]}"
  options=(--url unix:///nowhere/s)
  says 69 'unix:///nowhere/s: connect: No such file or directory' 'no server listens there: start it, or correct the address' "${all[@]}"
  # Without any named address, in a network where nobody listens.
  own_namespace -n 'NETWORK NAMESPACES ARE NOT ALLOWED HERE: the default address is not tested' ip link set lo up
  rlock() { timeout --preserve-status -k 1 120 "${namespace[@]}" sh -c 'ip link set lo up && exec "$@"' sh "$RLOCK" "$@"; }
  options=()
  says 69 'redis://127.0.0.1:6379: connect: Connection refused' 'give the address of Redis with --url or RLOCK_URL, or try --url local:' "${all[@]}"
}

@test "TLS to a plain-text port, and plain text to a TLS port" {
  tls_authority ca
  tls_certificate server ca DNS:localhost,IP:127.0.0.1
  tls_start srv
  redis_listen srv
  options=(--tls-ca "$TLS_DIR/ca.crt" --url "rediss://127.0.0.1:$port")
  says 69 'TLS: the server did not answer in time' 'if it does not use TLS on this port, write redis://' run status doctor
  options=(--url "redis://127.0.0.1:$srv_tls")
  # It closes or resets the connection.
  says 69 "redis://127.0.0.1:$srv_tls: " 'if the server uses TLS, write rediss://' run status doctor
}

@test "messages name options with their dashes" {
  names=$(for subcommand in run acquire renew release status force-unlock history doctor config local; do
    rlock "$subcommand" --help | grep -oE -- '--[a-z]+(-[a-z]+)+' | cut -c3-
  done | sort -u)
  (($(wc -l <<<"$names") >= 25))
  # In quotes, but not in an include or a comment. The line of a configuration file has none.
  run -0 python3 - "$TESTS_DIR/.." $names <<'PY'
import pathlib, re, sys
names = "|".join(sys.argv[2:])
bad = 0
for path in pathlib.Path(sys.argv[1]).glob("src/**/*.cc"):
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if re.match(r"\s*(//|#)", line):
            continue
        for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
            if literal in sys.argv[2:]:  # a table of options, not a message
                continue
            if re.search(rf"(?<![-\w])(?:{names})(?![-\w])", literal) and not re.search(r"(?:as|use) password-file", literal):
                print(f"{path}:{number}: {literal}")
                bad += 1
sys.exit(bad > 0)
PY
}
