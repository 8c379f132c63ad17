#!/usr/bin/env bats
# Wrong addresses, odd servers, wrong passwords: the command is never started.
# shellcheck disable=SC2154 # srv_sock and other_sock: set by redis_start

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  unset RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  local pid
  for pid in ${odd_pid:-}; do
    end_mine "$pid"
    wait_until gone "$pid"
  done
  redis_stop other
  assert_clean srv
}
teardown_file() { redis_stop srv; }

# refused STATUS TEXT OPTION...: rlock run OPTION... exits with STATUS, says TEXT, and starts nothing.
refused() {
  local expected=$1 text=$2
  shift 2
  run "-$expected" --separate-stderr rlock run "$@" x -- touch ran
  [[ $stderr == *rlock:*"$text"* && -z $output && ! -e ran ]] || {
    show
    return 1
  }
}

# odd MODE [TEXT]: sets $url to such a server.
odd() {
  rm -f port
  python3 "$TESTS_DIR/lib/odd_server.py" "$@" >port 2>/dev/null </dev/null 3>&- &
  odd_pid=$!
  wait_until test -s port
  url=redis://127.0.0.1:$(cat port)
}

# as_user USER[:PASSWORD]: the address $url with these. in_database N ADDRESS: with a database.
as_user() { echo "${url%%//*}//$1@${url#*//}"; }
in_database() {
  if [[ $2 == unix:* ]]; then echo "$2?db=$1"; else echo "$2/$1"; fi
}

# with_password PASSWORD: another server, which requires it.
with_password() {
  redis_start other --requirepass "$1"
  url=$(redis_url other)
}
as_admin() { REDISCLI_AUTH=$1 redis other "${@:2}"; }

@test "an unknown scheme" {
  local address
  for address in ftp://127.0.0.1 http://127.0.0.1:6379 127.0.0.1:6379 localhost redis: ':' ' ' unix: unix://; do
    run --separate-stderr rlock run --url "$address" --server-timeout 1s x -- touch ran
    [[ $status == 64 && $stderr == 'rlock: '* && ! -e ran ]] || {
      echo "$address"
      show
      return 1
    }
  done
}

@test "an unknown scheme is shown without what may be a password" {
  run -64 --separate-stderr rlock run --url 'user:se://cret@host' x -- true
  assert_says "bad address"
  [[ $stderr != *se:* && $stderr != *cret* ]]
}

@test "an empty address" {
  refused 64 address --url ''
  RLOCK_URL='' refused 78 RLOCK_URL
}

@test "a port out of range" {
  local port
  for port in 0 70000 65536 -1 abc 99999999999999999999 6379x; do
    refused 64 port --url "redis://127.0.0.1:$port"
    RLOCK_URL=redis://127.0.0.1:$port refused 78 port
  done
}

@test "a wrong address in the environment or a file is a configuration error" {
  RLOCK_URL=ftp://127.0.0.1 refused 78 scheme
  echo 'url = "ftp://127.0.0.1"' >c.toml
  refused 78 scheme --config c.toml
}

@test "a wrong address in the environment or a file: the message says where it is" {
  RLOCK_URL=ftp://127.0.0.1 refused 78 RLOCK_URL
  echo 'url = "ftp://127.0.0.1"' >c.toml
  refused 78 'c.toml:1: url' --config c.toml
  echo 'url = ""' >c.toml
  refused 78 c.toml --config c.toml
}

@test "a database that is not a number" {
  refused 64 database --url redis://127.0.0.1:6379/abc
  refused 64 database --url redis://127.0.0.1:6379/-1
  refused 64 database --url 'unix:///tmp/x?db=abc'
  refused 64 database --url redis://127.0.0.1:6379/99999999999999999999
}

@test "no such host" {
  refused 69 rlock-test.invalid --url redis://rlock-test.invalid --server-timeout 5s
}

@test "a connection that is refused" {
  local port
  port=$(redis_free_port)
  refused 69 'refused' --url "redis://127.0.0.1:$port"
  assert_says "127.0.0.1:$port"
  refused 69 'No such file' --url "unix://$PWD/none"
}

@test "a Unix socket whose path is too long" {
  local path
  path=/$(printf 'a%.0s' {1..200})
  RLOCK_URL=unix://$path refused 78 107
  refused 64 107 --url "unix://$path"
}

@test "other subcommands without a server" {
  local url
  url=redis://127.0.0.1:$(redis_free_port)
  run -69 --separate-stderr rlock acquire --url "$url" --lease 10s x
  [[ -z $output ]]
  run -69 --separate-stderr rlock renew --url "$url" --owner a:1 x
  run -69 --separate-stderr rlock release --url "$url" --owner a:1 x
  run -69 --separate-stderr rlock status --url "$url"
  run -69 --separate-stderr rlock status --url "$url" --is-held x
  run -69 --separate-stderr rlock force-unlock --url "$url" --yes x
}

@test "an unreachable server is not a busy lock, so -E does not apply" {
  refused 69 refused --url "redis://127.0.0.1:$(redis_free_port)" -n -E 0
}

@test "a server that answers garbage: nothing of it is shown" {
  odd garbage
  refused 69 'this is not a Redis server' --url "$url" --server-timeout 5s
  LC_ALL=C not grep -qP '[\x00-\x08\x0b-\x1f\x7f]' <<<"$stderr"
  python3 -c 'import sys; sys.argv[1].encode()' "$stderr"
}

@test "a web server" {
  odd http
  refused 69 'this is not a Redis server' --url "$url" --server-timeout 5s
}

@test "a server that says unasked why it closes the connection: rlock says it" {
  local said mode words
  for said in '-DENIED Redis is running in protected mode' '-ERR max number of clients reached' '-BACKEND is gone' \
    'HTTP/1.1 408 Request Timeout' '220 mail.example ESMTP'; do
    for mode in greets unasked; do
      odd "$mode" "$said"
      words='not a Redis server'
      [[ $said != -* ]] || words=${said#-}
      for _ in 1 2 3 4 5; do
        refused 69 "$words" -n --url "$url" --server-timeout 5s
        RLOCK_PASSWORD=s3cret run -69 --separate-stderr rlock status --url "$url" --server-timeout 5s
        [[ $stderr == *"$words"* || $stderr == *"answered: ${words%% *};"* || $stderr == *'does not show the reply'* ]] || {
          show
          return 1
        }
        [[ $stderr != *s3cret* ]]
      done
      refused 69 "$words" -n --url "redis+sentinel://${url#redis://}/m" --server-timeout 5s
      kill "$odd_pid"
      wait_until gone "$odd_pid"
    done
  done
}

@test "protected mode: rlock shows what the server says to other hosts" {
  not_over tls sentinel cluster acl 'the server has no password'
  local port here
  here=$(hostname -I | cut -d ' ' -f 1)
  [[ -n $here ]] || skip 'no address other than loopback'
  port=$(redis_free_port)
  redis_start other --bind 0.0.0.0 --port "$port" --protected-mode yes
  for _ in {1..20}; do
    refused 69 'DENIED Redis is running in protected mode' -n --url "redis://$here:$port"
    assert_says 'set one there (requirepass)'
  done
}

@test "a silent server" {
  odd silent
  local begin
  begin=$(now_ms)
  refused 69 'no answer in time (waited ' --url "$url" --server-timeout 7s
  assert_says 's); the server hangs or is busy, or the network drops packets'
  (($(now_ms) - begin >= 7000)) # the default is 5 s
}

@test "every subcommand gives up on a silent server" {
  odd silent
  run -69 --separate-stderr rlock acquire --url "$url" --server-timeout 1s --lease 10s x
  run -69 --separate-stderr rlock status --url "$url" --server-timeout 1s
  run -69 --separate-stderr rlock release --url "$url" --server-timeout 1s --owner a:1 x
}

@test "a server that closes connections at once" {
  odd close
  refused 69 "$url: " --url "$url" --server-timeout 5s
}

@test "a server that answers one byte at a time, until after the deadline" {
  odd trickle
  refused 69 'answer in time' --url "$url" --server-timeout 1s
}

# bounded: refused with 69, with a memory peak below 256 MiB.
bounded() {
  run -0 python3 - "$RLOCK" run --url "$url" --server-timeout "$1" x -- touch ran <<'PYTHON'
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], timeout=60, stderr=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, peak, len(done.stderr), done.stderr[:500])
assert done.returncode == 69 and peak < 256 and 0 < len(done.stderr) < 8192
PYTHON
  [[ ! -e ran ]]
}

@test "a line that never ends" {
  odd line
  bounded 3s
}

@test "a string of half a gigabyte" {
  odd bulk
  bounded 3s
}

@test "an array that never ends" {
  odd array
  bounded 3s
}

@test "nested arrays that never end" {
  odd nest
  bounded 3s
}

@test "impossible lengths" {
  odd huge
  bounded 1s
  kill "$odd_pid"
  wait_until gone "$odd_pid"
  rm port
  odd negative
  bounded 1s
}

@test "a grant to another owner starts nothing" {
  odd grant someone-else:77
  refused 69 someone-else:77 --url "$url"
  run -69 --separate-stderr rlock acquire --url "$url" --lease 10s x
  [[ -z $output ]]
}

@test "a fencing token that is not positive and whole starts nothing" {
  local token
  for token in 0 -5 -9223372036854775808 9223372036854775808 99999999999999999999 1.5 1e3 '' nan; do
    odd token "$token"
    refused 69 'unexpected reply' --url "$url"
    run -69 --separate-stderr rlock acquire --url "$url" --lease 10s x
    [[ -z $output ]]
    kill "$odd_pid"
    wait_until gone "$odd_pid"
  done
}

@test "an outcome that only a request of another kind has starts nothing" {
  local outcome
  for outcome in succeeded not-held in-use; do
    odd outcome "$outcome"
    refused 69 'unexpected reply' --url "$url"
    run -69 --separate-stderr rlock acquire --url "$url" --lease 10s x
    kill "$odd_pid"
    wait_until gone "$odd_pid"
  done
}

@test "a second reply after a grant starts nothing" {
  odd twice
  refused 69 'more than it was asked for' --url "$url"
}

@test "a server that can no longer serve is given up, regardless of its error message" {
  local error
  for error in "READONLY You can't write against a read only replica." 'LOADING Redis is loading the dataset in memory' \
    "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'." 'BUSY Redis is busy' \
    'CLUSTERDOWN The cluster is down' 'MISCONF Redis is configured to save RDB snapshots' 'TRYAGAIN later' \
    'NOREPLICAS Not enough good replicas to write.' "OOM command not allowed when used memory > 'maxmemory'." \
    "ERR Error running script (call to f_0): @user_script: 1: -READONLY You can't write"; do
    odd once "$error"
    run -0 --separate-stderr rlock run --url "$url" x -- echo ran
    [[ $output == ran ]]
    kill "$odd_pid"
    wait_until gone "$odd_pid"
  done
}

# The address is a link, which leads elsewhere after a failover, like a name.
@test "after a failover, the next attempt looks for the server again" {
  not_over cluster 'a server of a cluster is no replica of another one by its configuration'
  local stale
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

# in_time STATUS COMMAND...: exits with STATUS within the time of a flood that the machine can stand, with a short
# message.
in_time() {
  run "-$1" --separate-stderr timeout -k 1 30 "${@:2}"
  ((${#stderr} < 4096)) || {
    echo "${#stderr} bytes on standard error"
    return 1
  }
}

# floods COMMAND...: runs it with each kind of flood.
floods() {
  local mode text
  while read -r mode text; do
    odd "$mode" "$text"
    "$@"
    kill -9 "$odd_pid"
    wait_until gone "$odd_pid"
  done <<'MODES'
confirm
refuse NOPERM this user has no permissions to access one of the channels
refuse ERR what
message first 5000
message first 9223372036854775807
message front
message 0
message free
message granted
MODES
}

@test "a flood of messages does not defeat -w" {
  w_ends() { in_time 75 "$RLOCK" run --url "$url" -w 1s x -- touch ran; }
  floods w_ends
  [[ ! -e ran ]]
}

# ended_by SIGNAL STATUS: that signal ends a waiter in such a flood.
ended_by() {
  env --default-signal=INT "$RLOCK" run --url "$url" x -- touch ran 2>said 3>&- &
  local pid=$! status=0
  wait_until grep -q 'waiting for x' said
  wait_until flooded
  kill "-$1" "$pid"
  WAIT_SECONDS=30 wait_until gone "$pid"
  wait "$pid" || status=$?
  [[ $status == "$2" && ! -e ran ]] && (($(stat -c %s said) < 4096)) || {
    echo "status $status, $(stat -c %s said) bytes on standard error: $(head -c 500 said)"
    return 1
  }
}
# The server has a second connection, which listens.
flooded() { (($(ls /proc/"$odd_pid"/task | wc -l) >= 3)); }

@test "a flood of messages does not defeat INT" {
  floods ended_by INT 130
}

@test "a flood of messages does not defeat TERM" {
  floods ended_by TERM 143
}

@test "a SCAN that never ends is ended" {
  odd scan
  in_time 69 "$RLOCK" status --url "$url" --server-timeout 200ms
  # Or the machine is too busy for one answer in that time.
  [[ $stderr == *'takes too long'* || $stderr == *'no answer in time'* ]]
}

@test "a SCAN that finds endless names takes little memory" {
  odd names
  local most=256
  [[ $RLOCK != *sanitize* ]] || most=1024 # AddressSanitizer keeps what was freed for a while
  MOST=$most run -0 python3 - "$RLOCK" status --url "$url" --server-timeout 200ms <<'PYTHON'
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], timeout=60, stderr=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
print(done.returncode, peak, done.stderr[:500])
assert done.returncode == 69 and peak < int(os.environ["MOST"])
PYTHON
}

@test "an unreadable message does not end listening for requests" {
  rlock run --url "$(redis_url srv)" x -- sleep 60 2>said 3>&- &
  local pid=$!
  wait_until hears srv
  head -c 5000000 /dev/zero | tr '\0' a | publish_on srv 'rlock:control:{x}' >/dev/null
  wait_until not hears srv
  wait_until hears srv
  run -0 --separate-stderr rlock force-unlock --url "$(redis_url srv)" --yes -w 20s x
  wait "$pid" || [[ $? == 74 ]]
  [[ ! -e ran ]]
}
hears() { [[ $(listeners_on "$1" 'rlock:control:{x}') == 1 ]]; }

@test "a missing, a wrong and the right password" {
  with_password open-sesame
  refused 77 'requires a password' --url "$url"
  RLOCK_PASSWORD=wrong-one refused 77 WRONGPASS --url "$url"
  [[ $stderr != *wrong-one* ]]
  [[ $(as_admin open-sesame dbsize) == 0 ]]
  RLOCK_PASSWORD=open-sesame run -0 --separate-stderr rlock run --url "$url" x -- echo ran
  [[ $output == ran && -z $stderr ]]
}

@test "every subcommand without the password is refused and leaves nothing" {
  with_password open-sesame
  export RLOCK_URL=$url
  run -77 --separate-stderr rlock acquire --lease 10s x
  run -77 --separate-stderr rlock renew --owner a:1 x
  run -77 --separate-stderr rlock release --owner a:1 x
  run -77 --separate-stderr rlock status
  run -77 --separate-stderr rlock status x
  run -77 --separate-stderr rlock force-unlock --yes x
  [[ $(as_admin open-sesame dbsize) == 0 ]]
}

@test "user and password" {
  with_password open-sesame
  as_admin open-sesame acl setuser worker on '>p@ss:/%' '~*' '&*' +@all
  RLOCK_URL=$(as_user worker:p%40ss%3A%2F%25) run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  RLOCK_URL=$(as_user worker) RLOCK_PASSWORD='p@ss:/%' run -0 --separate-stderr rlock run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  RLOCK_URL=$(as_user worker:wrong-one) refused 77 WRONGPASS
  RLOCK_URL=$(as_user nobody:open-sesame) refused 77 WRONGPASS
}

@test "a user is told which right is missing" {
  with_password open-sesame
  as_admin open-sesame acl setuser worker on '>secret-two' '~*' '&*' +@all -eval -evalsha
  RLOCK_URL=$(as_user worker:secret-two) refused 77 NOPERM
  [[ $(as_admin open-sesame dbsize) == 0 ]]
}

@test "a password for a server that needs none" {
  RLOCK_PASSWORD=open-sesame refused 77 'without any password' --url "$(redis_url srv)"
  [[ $stderr != *open-sesame* ]]
}

@test "a database that the server does not have" {
  not_over cluster 'a cluster has one database'
  redis srv flushall >/dev/null
  refused 78 'DB index is out of range' --url "$(in_database 999 "$(redis_url srv)")"
  run -78 --separate-stderr rlock acquire --url "$(in_database 999 "$(redis_url srv)")" --lease 10s x
  [[ $(redis srv dbsize) == 0 ]]
}

@test "another database" {
  redis srv flushall >/dev/null
  not_over cluster 'a cluster has one database'
  run -0 --separate-stderr rlock run --url "$(in_database 9 "$(redis_url srv)")" x -- redis-cli -s "$srv_sock" -n 9 exists x
  [[ $output == 1 && $(redis srv dbsize) == 0 ]]
}

@test "a server on the network, by number and by name" {
  local port
  port=$(redis_free_port)
  redis_start other --bind 127.0.0.1 --port "$port"
  run -0 --separate-stderr rlock run --url "redis://127.0.0.1:$port" x -- echo ran
  [[ $output == ran && -z $stderr ]]
  local number
  for number in 127.1 2130706433 0x7f000001 0; do
    run -0 --separate-stderr rlock run --url "redis://$number:$port" x -- echo ran
    [[ $output == ran && -z $stderr ]]
  done
  [[ ${TEST_OVER:-} != cluster ]] || return 0 # it has one database
  run -0 --separate-stderr rlock run --url "redis://localhost:$port/3" x -- redis-cli -s "$other_sock" -n 3 exists x
  [[ $output == 1 ]]
}

@test "an IPv6 address with an unknown zone" {
  run --separate-stderr -69 rlock run -n --url 'redis://[fe80::1%25nosuch]:1' job -- true
  assert_says "this host has no such network interface"
}

@test "IPv6" {
  python3 -c 'import socket; socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null || skip 'no IPv6 here'
  local port
  port=$(redis_free_port)
  redis_start other --bind ::1 --port "$port"
  run -0 --separate-stderr rlock run --url "redis://[::1]:$port" x -- echo ran
  [[ $output == ran && -z $stderr ]]
  refused 64 address --url "redis://[::1:$port"
}

# sent_on MODE SCHEME PATH MOST [OPTION ...]: a server of that kind names more and more hosts; in a wait of 5 s, MOST of
# them get the password. Without a limit fifty would, of a thousand.
sent_on() {
  local hosts
  : >auths
  odd "$1" "$PWD/auths"
  RLOCK_PASSWORD=s3cret refused 69 'the password is not sent to yet another server' -w 5s --url "$2://${url#*//}$3" "${@:5}"
  kill "$odd_pid"
  wait_until gone "$odd_pid"
  hosts=$(sort -u auths | wc -l)
  echo "$1: $hosts hosts, $(wc -l <auths) times"
  ((hosts > 1 && hosts <= $4))
}

@test "a lock that is held by holders that are not listed: a job that supersedes waits" {
  odd unlisted
  run -75 rlock run --url "$url" -w 2s --supersede --slots 2 x -- touch ran
  run -0 rlock status --url "$url" x
  [[ $output == *held* && ! -e ran ]]
}

# The pauses after which one more host gets it add up to 1, 3, 7 and 15 s; the last exchange may take 5 s.
@test "a cluster server that redirects rlock to more and more hosts: few of them get the password, and the wait ends" {
  not_over tls sentinel cluster acl 'each server is odd'
  sent_on moved redis+cluster '' 4
  sent_on ask redis+cluster '' 4
  sent_on crowd redis+cluster '' 11 -v
}

@test "Sentinels that name another master each time: few masters get the password, and the wait ends" {
  not_over tls sentinel cluster acl 'each server is odd'
  sent_on masters redis+sentinel /m 5 -v
}
