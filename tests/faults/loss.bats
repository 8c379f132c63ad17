# The lock is lost, or may be lost, while the command runs: the tree is stopped, and rlock exits with 74 and a message.

load ../lib/processes

# Each test has a server of its own, which it may kill.
setup_file() { :; }
setup() {
  redis_start srv
  begin
}
teardown() {
  end_mine "${proxy:-}"
  redis_stop srv
  all_gone "$pids"
}
teardown_file() { :; }

stopped_with_74() {
  job_status 74
  all_gone "$pids"
}

# at_once COMMAND: executes it and resets the server's counters in one step.
# told_at_once: since then, a single request to renew was enough.
at_once() { printf 'multi\n%s\nconfig resetstat\nexec\n' "$1" | redis srv; }
told_at_once() {
  local calls
  # A script that the server did not know has not run.
  calls=$(redis srv info commandstats | sed -nE 's/^cmdstat_(eval|evalsha):calls=([0-9]*),.*failed_calls=([0-9]*).*/\2-\3/p' | paste -sd+)
  echo "scripts run by the server after the loss: $calls"
  ((calls == 1))
}

@test "FLUSHALL, DEL of the key: the tree is stopped within one renewal" {
  for what in flushall 'del job'; do
    start_tree --lease 6s
    at_once "$what"
    stopped_with_74
    told_at_once
    assert_says 'it is no longer held'
    redis srv del 'rlock:holder:{job}'
    : >"$pids"
  done
}

@test "replaced by another owner's key, or one of another type: the tree is stopped, and that key is left alone" {
  start_tree --lease 6s
  redis srv eval "redis.call('del', KEYS[1]); redis.call('hset', KEYS[1], 'other:1', 1); redis.call('pexpire', KEYS[1], 60000)" 1 job
  stopped_with_74
  assert_says 'another owner holds it'
  [[ $(redis srv hgetall job) == $'other:1\n1' ]]
  (($(redis srv pttl job) > 50000))
  redis srv del job
  : >"$pids"
  start_tree --lease 6s
  redis srv eval "redis.call('del', KEYS[1]); redis.call('set', KEYS[1], 'x', 'px', 60000)" 1 job
  stopped_with_74
  [[ $(redis srv get job) == x ]]
}

@test "the right to renew is revoked: rlock tries again, and stops the tree only before the lease ends" {
  redis srv acl setuser worker reset on '>pw' '~*' '&*' +@all
  export RLOCK_PASSWORD=pw
  RLOCK_URL=unix://worker@$srv_sock
  job_until go --lease 6s job
  redis srv acl setuser worker -pexpire
  wait_until said 'cannot renew the lock'
  redis srv acl setuser worker +pexpire
  wait_until said 'renewed again'
  job_finish go 3
  start_tree --lease 6s
  redis srv acl setuser worker -pexpire
  stopped_with_74
  assert_says 'the lock could not be renewed in time'
}

@test "a user who could not renew or release a lock is refused before there is one" {
  export RLOCK_PASSWORD=pw RLOCK_URL=unix://worker@$srv_sock
  for kind in '/pttl hmget hdel' '-x/pttl hmget hdel hscan' '--slots 2/pttl hmget zrem' '--protocol set/pttl hmget getrange del'; do
    for right in ${kind#*/}; do
      redis srv acl setuser worker reset on '>pw' '~*' '&*' +@all "-$right" >/dev/null
      # shellcheck disable=SC2086 # words
      run rlock run -n ${kind%/*} "job-$right" -- touch ran
      echo "without $right: ${kind%/*}"
      show
      [[ $status == 77 && ! -e ran && $(redis srv exists "job-$right") == 0 ]]
    done
  done
}

@test "server killed and restarted: without its data, the tree is stopped; with them, the job continues" {
  start_tree --lease 15s
  redis_kill9 srv
  redis_start srv
  stopped_with_74
  assert_says 'it is no longer held'
  : >"$pids"
  redis_stop srv
  redis_start srv --appendonly yes
  job_until go --lease 12s job
  redis_kill9 srv
  wait_until said 'cannot renew'
  redis_start srv --appendonly yes
  wait_until said 'renewed again'
  job_finish go 3
  assert_clean srv
}

@test "server killed and not restarted: the tree is stopped at the deadline, not before" {
  start_tree --lease 5s
  began=$(now_ms)
  redis_kill9 srv
  stopped_with_74
  # SIGTERM 3.15 s after the last renewal was sent, which was up to 1.7 s before the kill. outage.bats tests how much
  # later at most.
  (($(now_ms) - began > 1300))
  assert_says 'could not be renewed in time'
}

@test "server stopped for longer than the lease: the tree is dead before the lease ends, and no other job starts before" {
  job_start --lease 6s -k 300ms job -- python3 -c "$(heartbeat "$PWD/beats")"
  wait_until lines_in beats 3
  granted=$(head -n 1 beats)
  redis_freeze srv
  "$RLOCK" run --server-timeout 30s job -- python3 -c 'import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000)' \
    >second 2>/dev/null 3>&- &
  local second=$!
  job_status 74
  last=$(tail -n 1 beats)
  # Renewed at most once, just before the server stopped.
  echo "last sign of life $((last - granted)) ms after the first"
  ((last < granted + 6000 + 2000))
  redis_thaw srv
  wait "$second"
  (($(<second) > last))
}

# The next ones end before a renewal is due, so only the release can notice.

# ends_with STATUS: lets it end.
ends_with() { touch go && job_status "$1"; }

lost_with_the_server() {
  job_until go job
  redis_kill9 srv
  redis_start srv "$@"
  local next
  next=$(rlock acquire job --lease 30s)
  ends_with 74
  assert_says 'lost while the command ran'
  rlock release job --owner "$next"
}

# The server over TCP, at $port.
server_over_tcp() {
  port=$(redis_free_port)
  redis_stop srv
  redis_start srv --port "$port"
  RLOCK_URL=redis://127.0.0.1:$port
}

@test "server restarted without its data, and another owner or nobody has the lock, before a renewal was due: 74; over TCP, too, where a dead connection still accepts data" {
  lost_with_the_server
  rm begun go
  server_over_tcp
  lost_with_the_server --port "$port"
  rm begun go
  job_until go job
  redis_kill9 srv
  redis_start srv --port "$port"
  ends_with 74
  assert_says 'lost while the command ran'
}

@test "the connection cut before a renewal was due: the lock is released without a message, or with 74 after DEL of the key" {
  job_until go job
  redis srv del job
  redis srv client kill type normal skipme yes
  ends_with 74
  assert_says 'lost while the command ran'
  rm begun go
  job_until go job
  redis srv client kill type normal skipme yes
  ends_with 3
  [[ -z $stderr && $(redis srv exists job) == 0 ]]
}

renewed_since() { (($(redis srv pttl job) > $1)); }

@test "the connection cut before a renewal is due: the lock is renewed over another one without a message" {
  job_until go --lease 3s job
  redis srv client kill type normal skipme yes
  left=$(redis srv pttl job)
  wait_until renewed_since "$left"
  ends_with 3
  ! said 'cannot renew'
}

@test "a connection that died unnoticed costs the release half of its time, but not the lock" {
  PROXY_DEAD=$PWD/dead proxy_start "$srv_sock"
  job_until go --server-timeout 2s job
  touch dead
  ends_with 3
  [[ -z $stderr && $(redis srv exists job) == 0 ]]
}

# A job whose command ends at once and leaves the server stopped until the lease is over.
job_that_stops_the_server() {
  began=$(now_ms)
  job_start --lease 3s -k 300ms --server-timeout 30s job -- bash -c "$1; kill -STOP $srv_pid; exit 3"
  wait_until in_state "$srv_pid" T
  began=$(now_ms)
  wait_until past 3100
  redis_thaw srv
  job_status
  show
}

@test "a release that is answered after the lease has ended: the job's own status if nobody has had the lock since, else 74" {
  job_that_stops_the_server true
  [[ $status == 3 ]]
  assert_says 'only when the lease had run out'
  job_that_stops_the_server "redis-cli -s $srv_sock del job; env -u RLOCK_HELD $RLOCK acquire job --lease 1s"
  [[ $status == 74 ]]
  assert_says 'lost while the command ran'
}

@test "a server that is unreachable at the release does not change the job's status" {
  job_start --server-timeout 1s job -- bash -c "kill -9 $srv_pid; exit 5"
  job_status 5 'could not be released'
}
