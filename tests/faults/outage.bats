# The server is unreachable for a while: if the outage is shorter than the deadline, the job does not notice; if it is
# longer, the job is stopped at the times that the man page gives.

load ../lib/job

setup() {
  redis_start srv --appendonly yes
  export RLOCK_URL
  RLOCK_URL=$(redis_url srv)
  proxy=
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  [[ -z ${proxy:-} ]] || kill "$proxy"
  end_mine -CONT "${waiters[@]}"
  redis_stop srv
}

# With a lease of 15 s the command gets SIGTERM 10.85 s after the last renewal was sent, and a renewal is sent after 5
# s: an outage of less than 700 ms leaves room for more attempts, also on a busy machine.
@test "thirty outages shorter than the deadline: the job is not affected" {
  local seed=${SEED:-$RANDOM} count=${OUTAGES:-30} kind i
  echo "# seed $seed" >&3
  RANDOM=$seed
  job_start --lease 15s job -- bash -c "trap 'echo TERM >>signals' TERM
    until [[ -e go ]]; do sleep 0.1; done; exit 7"
  held() { [[ $(redis srv exists job) == 1 ]]; }
  wait_until held
  for ((i = 0; i < count; i++)); do
    sleep "0.$((RANDOM % 5))$((RANDOM % 10))" # a random moment
    kind=$((RANDOM % 3))
    case $kind in
      0)
        redis_freeze srv
        sleep "0.$((RANDOM % 6))$((RANDOM % 10))"
        redis_thaw srv
        ;;
      1) redis srv client kill type normal skipme yes >/dev/null ;;
      2)
        redis_kill9 srv
        redis_start srv --appendonly yes
        ;;
    esac
    [[ $(redis srv exists job) == 1 ]]
  done
  job_finish go 7
  [[ ! -e signals ]]
  assert_clean srv
}

# A proxy that records when requests pass, and delays the replies to renewals by that many seconds.
through_proxy() { PROXY_DELAY="rlock renew:$1" proxy_start "$srv_sock"; }
# last_answered: when the last request that extended the lease was sent, and when its reply left. Both by the proxy's
# time, so the first is a moment after rlock's own.
last_answered() { read -r sent answered _ < <(grep -e acquire -e renew passed.answered | tail -n 1); }

# Writes the time of SIGTERM and, about each millisecond, that it is alive.
witness() {
  printf '%s' "import os, signal, time
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000
signal.signal(signal.SIGTERM, lambda *_: open('term', 'w').write(str(now())))
beats = os.open('beats', os.O_WRONLY | os.O_CREAT)
while True:
    os.pwrite(beats, b'%d' % now(), 0)
    time.sleep(0.001)"
}

# The safety margin leaves a second to the scheduler.
@test "an outage that lasts: TERM and KILL at the computed times, and before the lease ends" {
  through_proxy 0
  job_start --lease 6s job -- python3 -c "$(witness)"
  wait_until test -s beats
  redis_freeze srv
  job_status 74
  last_answered
  term=$(<term) kill=$(<beats)
  echo "# TERM $((term - sent)) ms after the last renewal (3440 on a quiet machine), KILL $((kill - sent)) (4440), lease 6000" >&3
  ((term >= sent + 3440 - 1000 && term <= sent + 3440 + 1000))
  ((kill >= sent + 4440 - 1000 && kill <= sent + 4440 + 1000))
}

@test "late replies: the deadline counts from before the renewal was sent" {
  owner=$(rlock acquire --lease 20s job)
  rlock renew job --owner "$owner"
  rlock release job --owner "$owner"
  through_proxy 1.5 # for a server that knows the script: else two replies would be late
  job_start --lease 20s -k 100ms job -- python3 -c "$(witness)"
  wait_until test -s beats
  wait_until grep -q renew passed.answered
  redis_freeze srv
  job_status 74
  last_answered
  kill=$(<beats)
  echo "# KILL $((kill - sent)) ms after the renewal was sent (18300 on a quiet machine)" >&3
  ((answered >= sent + 1500))
  ((kill >= sent + 18300 - 1000 && kill <= sent + 18300 + 1000))
}

@test "a look for waiters takes no longer than --server-timeout" {
  PROXY_HOLD="rlock inspect:$PWD/never" proxy_start "$srv_sock"
  job_start -v --max-hold 4s --server-timeout 1s --on-wanted true job -- \
    bash -c 'until grep -q "cannot look at the queue" job.err; do sleep 0.05; done; exit 3'
  job_status 3
}

@test "the server restarts with its data, and the lock is released before one of its waiters is back: they keep their order" {
  owner=$(rlock acquire --lease 10m job)
  line_up job srv 4
  stop_waiters
  redis_kill9 srv
  redis_start srv --appendonly yes
  rlock release job --owner "$owner"
  kill -CONT "${waiters[@]}"
  had_their_turns 4
  assert_clean srv
}
