# What users of schedulers and of other locks have asked for, as they wrote it, with --once, --once-per and
# --succeeded-within.

load ../lib/common
load ../lib/job

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  end_mine_wholly "${jobs[@]}"
  redis_stop srv
}
begin() {
  "${1:-redis_start}" srv
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
}
runs() { wc -l <ran 2>/dev/null || echo 0; }

@test "ShedLock, run at most once per X: a task that fires a little late on another node does not run again" {
  begin
  local node
  for node in 1 2 3; do rlock run -n -E 0 --once-per day report -- sh -c 'echo ran >>ran'; done
  [[ $(runs) == 1 ]]
}

@test "ShedLock: after a crash of the pod, another one runs the task, and it is known whether the last run succeeded" {
  begin
  job_start --lease 2s --once-per day report -- bash -c 'echo ran >>ran; exec sleep 600'
  job_parts
  wait_until test -e ran
  kill_guards
  run -1 rlock status --succeeded-within 1d report
  # Waits for the end of the lease.
  rlock run --once-per day report -- sh -c 'echo ran >>ran'
  [[ $(runs) == 2 ]]
  run -0 rlock status --succeeded-within 1d report
  [[ $output == 'report: succeeded '* ]]
}

@test "ShedLock: something else is done if the lock cannot be acquired, and that is counted" {
  begin
  local owner
  owner=$(rlock acquire report --lease 1m)
  rlock run -n --once-per day report -- touch ran || echo "busy: $?" >else
  [[ $(<else) == 'busy: 75' && ! -e ran ]]
  run -1 rlock status --succeeded-within 1d report
  [[ $output == *'; held by '*'; not acquired by 1 job' ]]
  rlock release report --owner "$owner"
}

@test "node-cron: of a fleet, one instance runs each fire, which its name and its time identify" {
  begin
  local fire instance
  for fire in 2026-06-17T03:00 2026-06-18T03:00; do
    for instance in 1 2 3; do
      "$RLOCK" run -q --once "nightly-backup:$fire" nightly-backup -- sh -c "echo $fire >>ran" 3>&- &
      jobs+=($!)
    done
  done
  for instance in "${jobs[@]}"; do wait "$instance"; done
  [[ $(sort ran | xargs) == '2026-06-17T03:00 2026-06-18T03:00' ]]
}

@test "ofelia: two instances with the same job each minute do not run it twice" {
  begin redis_start_with_clock
  # In the middle of a minute of the server's clock, so that this test does not end in another one.
  clock_step $(((30 - $(date +%s) % 60) * 1000))
  rlock run --once-per 1m data -- sh -c 'echo ran >>ran'
  rlock run --once-per 1m data -- sh -c 'echo ran >>ran'
  [[ $(runs) == 1 ]]
  clock_step $(((90 - $(date +%s) % 60) * 1000))
  rlock run --once-per 1m data -- sh -c 'echo ran >>ran'
  [[ $(runs) == 2 ]]
}

@test "dagu: a run that ends in the next hour does not make that one skip its own" {
  begin redis_start_with_clock
  # Three seconds before a full hour, and soon after it.
  local before=$(((3600 - 3 - $(date +%s) % 3600) * 1000))
  clock_step $before
  job_start --once-per hour dag -- bash -c 'echo ran >>ran; until [[ -e go ]]; do sleep 0.02; done'
  jobs+=("$frontend")
  wait_until test -e ran
  clock_step $((before + 8000))
  touch go
  job_status
  [[ $status == 0 ]]
  rlock run --once-per hour dag -- sh -c 'echo ran >>ran'
  [[ $(runs) == 2 ]]
  # But a run by hand in this hour does.
  rlock run --once-per hour dag -- sh -c 'echo ran >>ran'
  [[ $(runs) == 2 ]]
}

@test "gocron: a quick job on instances whose tickers do not agree runs once a minute" {
  begin redis_start_with_clock
  local next_minute=$(((60 - $(date +%s) % 60) * 1000)) minute second
  for minute in 0 1 2; do
    for second in 10 25 45; do
      clock_step $((next_minute + (minute * 60 + second) * 1000))
      rlock run --once-per 1m job -- sh -c 'echo ran >>ran'
    done
  done
  [[ $(runs) == 3 ]]
}

@test "gocron: a job that fails on one instance is run by another one, and then by no other" {
  begin
  local instance
  printf '#!/bin/sh\necho ran >>ran\n[ $(wc -l <ran) -ge 3 ]\n' >job.sh
  chmod +x job.sh
  for instance in 1 2 3 4 5 6; do
    "$RLOCK" run -q --once-per day nightly -- ./job.sh 3>&- &
    jobs+=($!)
  done
  local status failed=0
  for instance in "${jobs[@]}"; do wait "$instance" || failed=$((failed + 1)); done
  # Two failures, one success, and three that were told of it.
  [[ $(runs) == 3 && $failed == 2 ]]
}
