# A hold on a bare majority, because another job had the vote of one server: that server gets the hold as soon as the
# vote is given back, and then the loss of any server lets nobody else in.
#
# The lease is ten minutes, so no renewal before that is due to time.

load ../lib/quorum_file

# The loser of a contested start; give_back gives back its vote on s3.
take_vote() { RLOCK_URL=$(redis_url s3) rlock acquire job --lease 10m >loser; }
give_back() { RLOCK_URL=$(redis_url s3) rlock release job --owner "$(cat loser)"; }

# owner_holds: a job that holds `job` until the file end exists; the file begun has its owner.
owner_holds() {
  job_start --lease 10m job -- bash -c 'echo "$RLOCK_OWNER" >begun; until [[ -e end ]]; do sleep 0.1; done; exit 9'
  jobs+=("$frontend")
  wait_until test -s begun
}
# bare_holder: on s1 and s2.
bare_holder() {
  take_vote
  owner_holds
  [[ $(owners) == 2 ]]
}

# The number of servers with the owner in the file begun.
owners() { on_servers hexists job "$(cat begun)" | grep -c '^1$'; }
on_all() { [[ $(owners) == 3 ]]; }

nobody_else_gets_it() {
  run -75 rlock run -n job -- touch ran
  [[ ! -e ran ]]
}

@test "a server whose vote another owner had gets the hold at once, and may lose it again" {
  bare_holder
  give_back
  wait_until on_all
  (($(redis s3 pttl job) > 300000))
  [[ $(redis s3 get 'redisson_lock_token:{job}') -ge $(redis s1 get 'redisson_lock_token:{job}') ]]
  redis s1 flushall >/dev/null
  nobody_else_gets_it
  job_finish end 9
  [[ ! -s $BATS_TEST_TMPDIR/job.err ]]
  [[ $(held_on job) == 0 ]]
}

@test "nor does a clock that jumps over the lease free it then" {
  # s1 has been up for an hour, and its clock can be stepped.
  redis_stop s1
  clock_step 0
  cc -shared -fPIC -o aged.so "$TESTS_DIR/lib/aged_shim.c"
  cc -shared -fPIC -o clock.so "$TESTS_DIR/lib/clock_shim.c"
  printf '#!/bin/sh\nexport CLOCK_SHIM_FILE=%s AGED_SECONDS=3600 LD_PRELOAD="%s %s"\nexec %s "$@"\n' \
    "$BATS_TEST_TMPDIR/clock" "$PWD/aged.so" "$PWD/clock.so" "$(command -v "$REDIS_SERVER")" >stepped
  chmod +x stepped
  REDIS_SERVER=$PWD/stepped redis_start s1
  accept_epoch s1
  bare_holder
  give_back
  wait_until on_all
  clock_step 620000
  [[ $(redis s1 exists job) == 0 ]]
  nobody_else_gets_it
}

@test "a keeper puts it back there, too" {
  sleep 600 3>&- &
  local process=$!
  jobs+=("$process")
  take_vote
  rlock acquire job --lease 10m --for-pid "$process" >begun
  [[ $(owners) == 2 ]]
  give_back
  wait_until on_all
  kill "$process"
  wait_until eval '[[ $(held_on job) == 0 ]]'
}

# Nobody renews there, so the hold is put there before anything else happens, if the vote is given back within a second.
briefly_taken() {
  take_vote
  redis s3 pexpire job 200 >/dev/null
}

@test "run --no-renew puts it back before the command starts, and acquire before it exits, but not if the vote is not given back" {
  briefly_taken
  run -0 rlock run --no-renew --lease 10m job -- bash -c 'for s in $s1_sock $s2_sock $s3_sock; do redis-cli -s "$s" hexists job "$RLOCK_OWNER"; done'
  [[ $output == 1$'\n'1$'\n'1 && $(held_on job) == 0 ]]
  take_vote
  rlock acquire job --lease 10m >begun
  [[ $(owners) == 2 ]]
  rlock release job --owner "$(cat begun)"
  [[ $(held_on job) == 1 ]]
  give_back
  briefly_taken
  rlock acquire job --lease 10m >begun
  on_all
  redis s1 flushall >/dev/null
  nobody_else_gets_it
}

@test "several names: each is put back" {
  take_vote
  rlock run --lease 10m other job -- bash -c 'until [[ -e end ]]; do sleep 0.1; done' 3>&- &
  jobs+=($!)
  wait_until eval '[[ $(held_on other) == 3 ]]'
  give_back
  wait_until eval '[[ $(held_on job) == 3 ]]'
}

@test "eight jobs that start and end at the same time leave nothing behind" {
  for i in {1..8}; do
    rlock run -q -w 10m --lease 10m job -- sh -c 'echo >>turns' 3>&- &
    jobs+=($!)
  done
  for i in "${jobs[@]}"; do wait "$i"; done
  [[ $(wc -l <turns) == 8 ]]
  assert_clean s1 && assert_clean s2 && assert_clean s3
}

# Each renewal is one script call on each server.
renewals() { redis s1 info commandstats | awk -F'[=,]' '/^cmdstat_eval/ { sum += $2 } END { print sum + 0 }'; }

@test "a job that all servers have granted the lock does not renew any earlier" {
  owner_holds
  on_all
  before=$(renewals)
  # It listens for requests after a second; by then an early renewal would be over.
  wait_until eval '[[ $(listeners_on s1 "rlock:control:{job}") -gt 0 ]]'
  [[ $(renewals) == "$before" ]]
}
