# The server is away for a while: shorter than the deadline, the job does not notice; longer, it is stopped at the
# times that the man page gives.

load ../lib/common
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
  redis_stop srv
}

# Of a lease of 6 s the command gets SIGTERM 3440 ms after the last renewal was sent, and a renewal is sent after
# 2000 ms: what is shorter than 600 ms leaves room for another try.
@test "fifty outages shorter than the deadline: the job is untouched, and the status its own" {
  local seed=${SEED:-$RANDOM} count=${OUTAGES:-50} kind i
  echo "# seed $seed" >&3
  RANDOM=$seed
  job_start --lease 6s job -- bash -c "trap 'echo TERM >>signals' TERM
    until [[ -e go ]]; do sleep 0.02; done; exit 7"
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
  touch go
  job_status
  show
  [[ $status == 7 && ! -e signals ]]
  assert_clean srv
}

# Writes the time of its start, of SIGTERM and, about each millisecond, of its life.
witness() {
  printf '%s' "import os, signal, time
now = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000
signal.signal(signal.SIGTERM, lambda *_: open('term', 'w').write(str(now())))
open('begun', 'w').write(str(now()))
beats = os.open('beats', os.O_WRONLY | os.O_CREAT)
while True:
    os.pwrite(beats, b'%d' % now(), 0)
    time.sleep(0.001)"
}

@test "an outage that does not end: TERM and KILL at the computed times, and before the lease ends" {
  local lower upper term kill
  lower=$(now_ms)
  job_start --lease 6s job -- python3 -c "$(witness)"
  wait_until test -s begun
  redis_freeze srv
  job_status
  show
  [[ $status == 74 ]]
  # The acquire was sent between these two.
  upper=$(cat begun)
  term=$(cat term) kill=$(cat beats)
  echo "# TERM $((term - upper))..$((term - lower)) ms after the acquire (3440 ± 200)," \
    "KILL $((kill - upper))..$((kill - lower)) (4440 ± 200), lease 6000" >&3
  ((term >= lower + 3440 - 50 && term <= upper + 3440 + 200))
  ((kill >= lower + 4440 - 50 && kill <= upper + 4440 + 200))
  ((kill < lower + 6000))
}

@test "replies that come late: the deadline counts from before the renewal was sent" {
  local sent kill
  PROXY_DELAY='-- renew:0.5' python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$srv_sock" "$PWD/passed" 3>&- &
  proxy=$!
  wait_until test -S p
  RLOCK_URL=unix://$PWD/p job_start --lease 6s -k 100ms job -- python3 -c "$(witness)"
  wait_until grep -q 'renew' passed.times
  sent=$(awk '/renew/ { print $1; exit }' passed.times)
  answered() { (($(now_ms) > sent + 700)); }
  wait_until answered
  redis_freeze srv
  job_status
  show
  [[ $status == 74 ]]
  kill=$(cat beats)
  echo "# TERM $(($(cat term) - sent)) ms after the renewal was sent (4340 ± 200), KILL $((kill - sent)) (4440 ± 200)" >&3
  ((kill >= sent + 4440 - 50 && kill <= sent + 4440 + 200))
}
