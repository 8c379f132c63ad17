# Addresses with a host name: /etc/hosts, and DNS with our own name server.
# shellcheck disable=SC2154 # port: set in setup_file

load ../lib/server

setup_file() {
  export port
  port=$(redis_free_port)
  redis_start srv --bind 127.0.0.1 --port "$port"
}

setup() {
  [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || skip 'only root can give a job an /etc/resolv.conf of its own'
  unset RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  dns=127.$((BASHPID % 250 + 1)).$((BASHPID / 250 % 250 + 1)).53
  python3 "$TESTS_DIR/lib/dns_server.py" "$dns" "$PWD" 3>&- &
  dns_pid=$!
  wait_until test -e up
  printf 'nameserver %s\nsearch sub.rlock.test\n' "$dns" >resolv.conf
  echo '127.0.0.1 of-this-host' >hosts
}
teardown() {
  [[ -z ${dns_pid:-} ]] || kill "$dns_pid"
  [[ ! -e alive ]] || wait_until gone "$(<alive)"
  assert_clean srv
}

# at HOST ARG...: rlock with that host's Redis, where our server resolves names. Replaces the process.
at() {
  local url=redis://$1:$port
  shift
  exec unshare -m sh -c 'mount --bind resolv.conf /etc/resolv.conf && mount --bind hosts /etc/hosts && exec "$@"' sh \
    "$RLOCK" --url "$url" "$@"
}
waiting() { [[ $(redis srv exists 'rlock:queue:{x}') == 1 ]]; }
asked_again() { (($(wc -l <asked) > $1)); }

# ran HOST [ASKED]: a job runs there without a message, and the name server has been asked for ASKED.
ran() {
  prints ran at "$1" run x -- echo ran
  [[ $# == 1 ]] || grep -qx "$2" asked
}
# unknown HOST TEXT: no job runs there, and rlock says TEXT.
unknown() {
  run -69 --separate-stderr at "$1" run x -- touch ran
  [[ $stderr == *"$2"* && ! -e ran ]]
}

@test "names that DNS knows, with search lists as in resolv.conf and of systemd-resolved; an address or a name in /etc/hosts is not asked for" {
  ran of-this-host
  ran 127.0.0.1
  [[ ! -e asked ]]
  ran host.rlock.test host.rlock.test
  ran host host.sub.rlock.test
  unknown nobody.test. 'no such host name'
  unknown empty.rlock.test. 'no such host name' # it has no address
  printf 'nameserver %s\noptions edns0 trust-ad ndots:5\nsearch .\n' "$dns" >resolv.conf
  ran host.rlock.test
  printf 'nameserver %s\noptions ndots:5\nsearch sub.other.test .\n' "$dns" >resolv.conf
  ran host.rlock.test host.rlock.test.sub.other.test
  printf 'nameserver %s\noptions ndots:5\nsearch bad.test\n' "$dns" >resolv.conf
  ran host.rlock.test host.rlock.test.bad.test
  unknown nobody.here 'name resolution: '
  # An IPv6 address in /etc/hosts is used if the host has no other.
  python3 -c 'import socket; socket.socket(socket.AF_INET6).bind(("::1", 0))' 2>/dev/null || skip 'no IPv6 here'
  echo '::1 six' >hosts
  unknown six "[::1]:$port: connect: Connection refused"
  run -1 grep six asked
}

@test "a silent name server: rlock waits for --server-timeout, but does not ask again and again" {
  touch silent
  began=$(now_ms)
  run -69 --separate-stderr at host.rlock.test --server-timeout 1500ms run x -- touch ran
  past 1500
  not past 8000
  assert_says 'no answer from name resolution in time'
  can_trace
  run -69 unshare -m sh -c 'mount --bind resolv.conf /etc/resolv.conf && exec "$@"' sh strace -f -qq -o trace \
    -e trace=epoll_wait "$RLOCK" --url "redis://host.rlock.test:$port" --server-timeout 1500ms run x -- touch ran
  (($(wc -l <trace) < 50))
  [[ ! -e ran ]]
}

@test "the first of two name servers is silent: the second is asked in time for a renewal" {
  local began other=${dns%.53}.54
  mkdir other
  touch other/silent
  python3 "$TESTS_DIR/lib/dns_server.py" "$other" "$PWD/other" 3>&- &
  local other_pid=$!
  wait_until test -e other/up
  printf 'nameserver %s\nnameserver %s\n' "$other" "$dns" >resolv.conf
  began=$(now_ms)
  run -0 --separate-stderr at host.rlock.test run x -- echo ran
  kill "$other_pid"
  [[ $output == ran && -e other/asked ]]
  not past 2900
}

# in_network_of_its_own ADDRESS...: asks for a status on a host with these IPv6 addresses, which can all reach each
# other, where nothing but a name server exists. $NAME is the server, $TIMEOUT the time.
in_network_of_its_own() {
  unshare -n true 2>/dev/null || skip 'only root can give a job a network of its own'
  run -69 unshare -n -m sh -c 'program=$1 address=$2
    shift 2
    mount --bind resolv.conf /etc/resolv.conf && ip link set lo up
    for one; do ip -6 address add "$one" dev lo nodad && ip -6 route replace default dev lo || exit 77; done
    rm up; python3 "$program" "$address" "$PWD" 3>&- & server=$!
    until [ -e up ]; do sleep 0.1; done
    "$RLOCK" --url "redis://${NAME:-host}.rlock.test:1" --server-timeout "${TIMEOUT:-3s}" status x; status=$?
    kill "$server"; exit "$status"' sh "$TESTS_DIR/lib/dns_server.py" "$dns" "$@"
}

@test "a name server that drops questions for IPv6: the other answer counts, also on a host with IPv6 addresses" {
  touch drops-ipv6
  in_network_of_its_own
  assert_says 'Connection refused'
  [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
  in_network_of_its_own fe80::1/64
  assert_says 'Connection refused'
  # The time for a renewal with the shortest lease.
  TIMEOUT=250ms in_network_of_its_own 2001:db8::1/64
  assert_says 'Connection refused'
}

@test "on a host whose IPv6 addresses only reach private networks, IPv4 comes first" {
  [[ -e /proc/net/if_inet6 ]] || skip 'no IPv6 here'
  NAME=both in_network_of_its_own fd00:1::2/64
  [[ $output == *'127.0.0.1:1: '*'[2001:db8:1::1]:1: '* ]]
  NAME=both in_network_of_its_own 2001:db8::1/64
  [[ $output == *'[2001:db8:1::1]:1: '*'127.0.0.1:1: '* ]]
}

@test "a silent name server: a signal ends rlock at once, also while it asks for the name without a domain" {
  local pid status silent
  for silent in silent drops-known; do
    rm -f asked
    touch "$silent"
    [[ $silent == silent ]] || printf 'nameserver %s\noptions ndots:5\nsearch bad.test\n' "$dns" >resolv.conf
    at host.rlock.test --server-timeout 1m run x -- touch ran 2>said 3>&- &
    pid=$! status=0
    wait_until grep -qsx host.rlock.test asked
    kill -s TERM "$pid"
    exits "$pid" 143
    [[ ! -e ran ]]
    rm "$silent"
  done
}

@test "a name server with an unreadable answer" {
  touch garbage
  run -69 --separate-stderr at host.rlock.test --server-timeout 3s run x -- touch ran
  [[ ! -e ran && -n $stderr ]]
}

# job_at_silent_server LEASE: a job whose connection is cut while the name server is silent. Sets $pid.
job_at_silent_server() {
  at host.rlock.test run --lease "$1" x -- sh -c 'echo $$ >alive; until [ -e go ]; do sleep 0.1; done; exit 7' 2>said 3>&- &
  pid=$!
  wait_until test -s alive
  touch silent
  redis srv client kill type normal skipme yes >/dev/null
}

@test "no name server at a renewal: the job is stopped before the lease ends, not earlier than necessary; if one is back in time, it continues" {
  local pid began
  began=$(now_ms)
  job_at_silent_server 6s
  exits "$pid" 74
  past 3000
  grep -q 'cannot renew the lock' said
  redis srv del x 'rlock:holder:{x}' >/dev/null
  rm silent alive
  job_at_silent_server 15s
  wait_until grep -q 'cannot renew the lock' said
  rm silent
  wait_until grep -q ': renewed again' said
  let_end go "$pid" 7
}

@test "a waiter that cannot look up its server is granted the lock once it can, by a process of one thread" {
  local pid
  redis srv hset x a:1 1 >/dev/null
  redis srv pexpire x 60000 >/dev/null
  at host.rlock.test run --lease 1m x -- touch ran 2>said 3>&- &
  pid=$!
  wait_until waiting
  touch silent
  redis srv client kill type normal skipme yes >/dev/null
  redis srv client kill type pubsub >/dev/null
  redis srv del x >/dev/null
  wait_until asked_again "$(wc -l <asked)"
  [[ $(ls "/proc/$pid/task" | wc -l) == 1 ]]
  rm silent
  wait "$pid"
  [[ -e ran ]]
}
