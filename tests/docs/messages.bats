# The catalogue of messages: those in the source that some test produces, and those that only this file produces.

load ../lib/server
load ../lib/odd

# says STATUS TEXT ARG...: rlock exits with STATUS and one message that contains TEXT, and prints nothing to standard
# output.
says() {
  local wanted=$1 text=$2
  shift 2
  run --separate-stderr rlock "$@" </dev/null
  [[ $status == "$wanted" && $stderr == 'rlock: '*"$text"* && ${#stderr_lines[@]} == 1 && -z $output && ! -e ran ]] || {
    printf '%q ' rlock "$@"
    printf '\nis to end with %s and say: %s\n' "$wanted" "$text"
    show
    return 1
  }
}

# job STATUS TEXT OPTION...: the same for a run with these options, which starts nothing.
job() {
  local wanted=$1 text=$2
  shift 2
  says "$wanted" "$text" run "$@" x -- touch ran
}

@test "a test covers each exit status" {
  local status
  for status in $(sed -n 's/^ *k[A-Za-z]* = \([0-9]*\),.*/\1/p' "$TESTS_DIR/../src/base/error.h"); do
    ((status != 70)) || continue # a fault of rlock itself: none that a test knows of
    grep -rqE "run -$status |status == $status\b|\(\(status == $status\)\)" "$TESTS_DIR"/{cli,faults} || {
      echo "$status"
      return 1
    }
  done
}

@test "tests cover most messages of the source" {
  python3 "$TESTS_DIR/docs/messages.py" "$TESTS_DIR/.." >list
  read -r silent _ all _ < <(tail -n 1 list)
  ((all >= 230))
  # The rest is mostly about system calls that do not fail here.
  ((silent * 100 <= all * 8)) || { cat list && return 1; }
}

@test "messages: options and words, addresses and files, holds of other owners, an invalid token" {
  umask 077
  for bad in '' -5s "$(printf '9%.0s' {1..400})" 5y 366d; do
    job 64 'is not a duration of at most 365 days' --lease "$bad"
  done
  job 64 'is not a number of waiters' --max-queue 1.5
  job 64 'is not an exit status from 0 to 255' -E 256
  job 64 'is not a number of slots, from 1 to 1000000' --slots 0
  job 64 'is not a number from -1000 to 1000' --priority 1001
  job 64 'is not a number of replicas' --wait-replicas x
  job 64 '--server-timeout: 1ms is too short; use at least 10ms' --server-timeout 1ms
  job 64 '--hook-timeout: 0s is too short; use at least 1ms' --hook-timeout 0
  job 64 '--isolate and --leftovers ignore cannot be used together: no process outlives its namespace' --isolate --leftovers ignore
  job 64 'the key is longer than 512 bytes' --once "$(printf '%0513d' 0)"
  job 64 'is not text or json' --log-format xml
  job 64 'is not kill, wait or ignore' --leftovers keep
  job 64 'the name of the file is empty' --tls-ca=
  RLOCK_QUIET=maybe job 78 'is neither true nor false'
  says 64 'a subcommand is missing; see rlock --help'
  says 64 'the owner of the lock is missing: give --owner ID, which acquire printed, or set RLOCK_OWNER' renew x
  says 64 'local: say status or stop' local serve
  says 64 'it is empty' run '' -- touch ran
  says 64 "not an owner id: 'a" release --owner $'a\x01b' x
  job 64 'bad address: ' --url nowhere
  job 78 'not a file or a pipe' --config /dev/full
  echo 'url = []' >c.toml
  job 78 'this list is empty' --config c.toml
  echo 'url = [1,' >c.toml
  job 78 'c.toml:1: url: a list is strings in quotes, separated by commas' --config c.toml
  echo 'url = ["a",' >c.toml
  job 78 'c.toml:2: column 1: expected ]' --config c.toml
  printf 'lease = "5s"\n[wait]\n' >c.toml
  job 78 'c.toml:2: tables are not supported; use one file for each environment, and choose it with --config FILE' --config c.toml
  says 76 'not held: its lease has expired, or it was released or taken away' release x --owner a:1
  says 76 'not held: its lease has expired, or it was released or taken away' renew x --owner a:1 --lease 10s
  owner=$(rlock acquire x --lease 1m)
  says 76 'not released: another owner holds it' release x --owner a:1
  says 76 'not renewed: another owner holds it' renew x --owner a:1 --lease 10s
  rlock release x --owner "$owner"
  redis srv set 'redisson_lock_token:{x}' junk
  job 76 'does not contain a fencing token (a number no larger than the time in microseconds in 100 years), so no token can follow it'
  [[ $stderr == 'rlock: x: redisson_lock_token:{x} does not contain'* ]] # the name once
  redis srv del 'redisson_lock_token:{x}'
}

@test "messages: answers that Redis never gives" {
  odd wrong 'SCAN *0'
  says 69 "$url: unexpected reply to SCAN; is something between us and Redis?" status --url "$url"
  odd wrong 'TIME *0'
  says 69 "$url: unexpected reply to TIME; is something between us and Redis?" doctor --url "$url"
  for answer in ':1' '*1|*0' '*1|*3|:0|:16384|*0'; do
    odd wrong "CLUSTER $answer"
    says 69 "$url: unexpected reply to CLUSTER SLOTS" status x --url "redis+cluster://${url#*//}"
  done
  odd wrong 'SENTINEL *0'
  says 69 "$url: the answer does not name a server" status x --url "redis+sentinel://${url#*//}/main"
  odd array
  says 69 'its answer is not RESP2, is nested too deeply, or has too many elements' status x --url "$url"
  odd wrong 'PUBLISH +OK'
  tells 0 "$url: unexpected reply to PUBLISH" rlock release x -v --owner 01234567-89ab-cdef-0123-456789abcdef:1 --url "$url"
  end_odd
}
