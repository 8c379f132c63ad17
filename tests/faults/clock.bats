# The server's clock is stepped while a job runs. What is left of the lease at the next renewal shows it.

load ../lib/job

setup() {
  clock_step 0
  redis_start_with_clock srv
  export RLOCK_URL
  RLOCK_URL=$(redis_url srv)
}

teardown() { redis_stop srv; }

held_job() {
  job_start --lease 6s job -- bash -c "until [[ -e $BATS_TEST_TMPDIR/go ]]; do sleep 0.1; done; exit 9"
  held() { [[ $(redis srv exists job) == 1 ]]; }
  wait_until held
}

@test "a step forward that the deadline allows for causes a warning, and the job continues" {
  local step=0 renewals=-1
  held_job
  # A request that is late at the server hides as much of a step, so there is a step for each renewal.
  warned() {
    ! said "the server's clock ran ahead of ours by" || return 0
    (($(calls) != renewals)) || return 1
    clock_step $((step += 450))
    renewals=$(calls)
    return 1
  }
  calls() { redis srv info commandstats | awk -F'[=,]' '/^cmdstat_eval/ { sum += $2 } END { print sum + 0 }'; }
  wait_until warned
  touch "$BATS_TEST_TMPDIR/go"
  job_status 9
  [[ $stderr == *warning* ]]
  assert_clean srv
}

@test "a step forward that leaves too little of each lease ends the job; one beyond the lease, at the next renewal" {
  held_job
  clock_step 3300
  job_status 74 'its leases end too soon'
  [[ $(redis srv exists job) == 0 ]] # given back
  held_job
  clock_step 60000
  job_status 74 'it is no longer held'
}

@test "a step back makes the lease longer and does not stop the job" {
  held_job
  clock_step -5000
  ttl_grew() { (($(redis srv pttl job) > 6000)); }
  wait_until ttl_grew
  ttl_is_a_lease() { (($(redis srv pttl job) <= 6000)); }
  wait_until ttl_is_a_lease # the old one is never cut short
  touch "$BATS_TEST_TMPDIR/go"
  job_status 9
  [[ -z $stderr ]]
  assert_clean srv
}
