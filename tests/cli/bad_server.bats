# Servers that flood, change or close connections. bad_server.table has wrong addresses and answers.
# shellcheck disable=SC2154 # srv_sock and other_sock: set by redis_start, url and odd_pid by odd

load ../lib/server
load ../lib/odd

setup() {
  unset RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  end_odd
  redis_stop other
  assert_clean srv
}

# refused TEXT OPTION...: rlock run OPTION... exits with 69, says TEXT, and starts nothing.
refused() {
  run -69 --separate-stderr rlock run "${@:2}" x -- touch ran
  [[ $stderr == *rlock:*"$1"* && -z $output && ! -e ran ]]
}

@test "a server that says unasked why it closes the connection: rlock says it" {
  for said in '-DENIED Redis is running in protected mode' '-ERR max number of clients reached' '-BACKEND is gone' \
    'HTTP/1.1 408 Request Timeout' '220 mail.example ESMTP'; do
    for mode in greets unasked; do
      odd "$mode" "$said"
      words='not a Redis server'
      [[ $said != -* ]] || words=${said#-}
      refused "$words" -n --url "$url" --server-timeout 5s
      RLOCK_PASSWORD=s3cret run -69 --separate-stderr rlock status --url "$url" --server-timeout 5s
      [[ $stderr == *"$words"* || $stderr == *"answered: ${words%% *};"* || $stderr == *'does not show the reply'* ]]
      [[ $stderr != *s3cret* ]]
      refused "$words" -n --url "redis+sentinel://${url#redis://}/m" --server-timeout 5s
    done
  done
}

@test "what never ends, or announces impossible lengths, is refused soon, in little memory and with a short message" {
  for mode in line bulk array nest huge negative; do
    odd "$mode"
    run -0 python3 - "$RLOCK" run --url "$url" --server-timeout 1s x -- touch ran <<'PYTHON'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], timeout=60, stderr=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, peak, len(done.stderr), done.stderr[:500])
assert done.returncode == 69 and peak < 256 and 0 < len(done.stderr) < 8192
PYTHON
    [[ ! -e ran ]]
  done
}

# The address is a link, which leads elsewhere after a failover, like a name.
@test "after a failover, the next attempt looks for the server again" {
  not_over cluster 'a server of a cluster is no replica of another one by its configuration'
  for stale in yes no; do # READONLY, MASTERDOWN
    redis_start other --replicaof 127.0.0.1 1
    redis other config set replica-serve-stale-data "$stale" >/dev/null
    ln -sfn "$other_sock" link
    rlock run --url "unix://$PWD/link" --server-timeout 30s x -- touch ran 3>&- &
    local pid=$!
    wait_until_it_evals other
    ln -sfn "$srv_sock" link
    wait "$pid"
    [[ -e ran ]]
    rm ran
    redis_stop other
  done
  redis srv del redisson_lock_token:{x} >/dev/null
}
wait_until_it_evals() { wait_until has_evals "$1"; }
has_evals() { redis "$1" info commandstats | grep -q '^cmdstat_eval:'; }

# floods COMMAND...: runs it with each kind of flood.
floods() {
  local mode text
  while read -r mode text; do
    odd "$mode" "$text"
    "$@"
  done <<'MODES'
confirm
refuse NOPERM this user has no permissions to access one of the channels
message first 9223372036854775807
message 0
message granted
MODES
}

# The flood comes as soon as it listens, and takes a moment of both processors.
@test "a flood of messages does not defeat -w" {
  w_ends() {
    run -75 --separate-stderr timeout -k 1 30 "$RLOCK" run --url "$url" -w 300ms x -- touch ran
    ((${#stderr} < 4096))
  }
  floods w_ends
  [[ ! -e ran ]]
}

# The server has a second connection, which listens.
flooded() { (($(ls /proc/"$odd_pid"/task | wc -l) >= 3)); }

@test "a flood of messages does not defeat INT and TERM" {
  local signal mode text pid
  while read -r signal mode text; do
    odd "$mode" "$text"
    env --default-signal=INT "$RLOCK" run -v --url "$url" x -- touch ran 2>said 3>&- &
    pid=$! status=0
    wait_until grep -q 'waiting for x' said
    wait_until flooded
    kill "-$signal" "$pid"
    WAIT_SECONDS=30 wait_until gone "$pid"
    wait "$pid" || status=$?
    ((status == 128 + $(kill -l "$signal") && $(stat -c %s said) < 16384)) || {
      echo "$mode: status $status, $(stat -c %s said) bytes on standard error: $(head -c 500 said)"
      return 1
    }
  done <<'MODES'
INT confirm
INT message granted
TERM refuse ERR what
TERM message first 5000
MODES
  [[ ! -e ran ]]
}

@test "a SCAN that never ends is ended, and one that finds endless names takes little memory" {
  local mode most=256
  [[ $RLOCK != *sanitize* ]] || most=1024 # AddressSanitizer keeps what was freed for a while
  for mode in scan names; do
    odd "$mode"
    MOST=$most run -0 python3 - "$RLOCK" status --url "$url" --server-timeout 100ms <<'PYTHON'
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], timeout=60, stderr=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, peak, done.stderr[:500])
assert done.returncode == 69 and peak < int(os.environ["MOST"])
PYTHON
  done
}

@test "an unreadable message does not end listening for requests" {
  rlock run --url "$(redis_url srv)" x -- sleep 60 2>said 3>&- &
  local pid=$! before
  wait_until hears
  before=$(listener)
  head -c 5000000 /dev/zero | tr '\0' a | publish_on srv 'rlock:control:{x}' >/dev/null
  wait_until hears_again
  run -0 --separate-stderr rlock force-unlock --url "$(redis_url srv)" --yes -w 20s x
  wait "$pid" || [[ $? == 74 ]]
  [[ ! -e ran ]]
}
# listener: the number of the only connection that listens.
listener() { redis srv client list type pubsub | sed -nE 's/^id=([0-9]+) .* sub=1 .*/\1/p'; }
hears() { [[ $(listener) == +([0-9]) ]]; }
hears_again() { hears && [[ $(listener) != "$before" ]]; }

@test "a server on the network, by number and by name" {
  port=$(redis_free_port)
  redis_start other --bind 127.0.0.1 --port "$port"
  prints ran rlock run --url "redis://127.0.0.1:$port" x -- echo ran
  for number in 127.1 2130706433; do
    prints ran rlock run --url "redis://$number:$port" x -- echo ran
  done
  [[ ${TEST_OVER:-} != cluster ]] || return 0 # it has one database
  prints 1 rlock run --url "redis://localhost:$port/3" x -- redis-cli -s "$other_sock" -n 3 exists x
}

# sent_on MODE SCHEME PATH MOST [OPTION ...]: a server of that kind names more and more hosts; in a wait of 5 s, MOST of
# them get the password. Without a limit fifty would, of a thousand.
sent_on() {
  local hosts
  : >auths
  odd "$1" "$PWD/auths"
  RLOCK_PASSWORD=s3cret refused '' -w 5s --url "$2://${url#*//}$3" "${@:5}"
  # If the server is slow, the wait may end while one of them has not answered.
  case $stderr in
    *'the password is not sent to yet another server'*) told=$((told + 1)) ;;
    *) [[ $stderr == *'no answer in time'* ]] ;;
  esac
  end_odd
  hosts=$(sort -u auths | wc -l)
  echo "$1: $hosts hosts, $(wc -l <auths) times"
  ((hosts > 1 && hosts <= $4))
}

# The pauses after which one more host gets it add up to 1, 3, 7 and 15 s; the last exchange may take 5 s.
@test "a cluster server that redirects rlock to more and more hosts, or Sentinels that name them as masters: few get the password, and the wait ends" {
  not_over tls sentinel cluster acl 'each server is odd'
  local told=0
  sent_on moved redis+cluster '' 4
  sent_on ask redis+cluster '' 4
  sent_on crowd redis+cluster '' 11 -v
  sent_on masters redis+sentinel /m 5 -v
  ((told > 0))
}
