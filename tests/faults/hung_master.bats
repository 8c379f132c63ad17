# The master hangs until the Sentinels have made another server the master, and continues: for about ten seconds it
# still believes that it is the master, and so do all its clients. epoch.py does the same under many jobs.

load ../lib/job

setup() {
  source "$TESTS_DIR/lib/sentinel.bash"
  not_over sentinel cluster acl 'the tests have Sentinels of their own'
  cd "$BATS_TEST_TMPDIR" || return
  export RLOCK_EPOCH_GUARD=false # which would hide the faults that these tests are about; epoch.bats has it
}

teardown() { sentinels_stop; }

other_master() { [[ $(master_now s1) != m && $(master_now s2) != m && $(master_now s3) != m ]]; }
# The Sentinels were asked long ago on each connection, because a recent answer would still count. An age is a difference
# of whole seconds: 1 may be a millisecond.
connected_for_long() {
  local connections
  connections=$(redis m client list | grep ' name=rlock:job ')
  [[ -n $connections && ! $connections =~ ' age='[01]' ' ]]
}
held_on() { [[ $(redis "$1" exists "$2") == 1 ]]; }

# Three Sentinels, a master that never becomes a replica again during the test, and two replicas. RLOCK_URL is its
# address.
servers() {
  SENTINELS=() SENTINEL_REPLICAS=()
  sentinels_start 2 3
  redis m acl setuser default -replicaof -slaveof >/dev/null
  RLOCK_URL=$(sentinels_url)
  export RLOCK_URL
}

# It hangs until another server is the master, named in $master, and continues.
hang() {
  redis_freeze m
  wait_until other_master
  redis_thaw m
  master=$(master_now)
}

# The same for locks that no replica knows: `also` is run when the replicas are cut off.
hang_after() {
  redis_freeze r1 && redis_freeze r2
  redis m client kill type replica >/dev/null
  "$@"
  redis_freeze m
  redis_thaw r1 && redis_thaw r2
  wait_until other_master
  redis_thaw m
  master=$(master_now)
}

@test "a Sentinel that still waits for a replica to follow already names the new master" {
  SENTINEL_FAILOVER=15000 servers # which is how long it waits
  # One replica becomes the master, and the other never follows it.
  for name in r1 r2; do redis "$name" acl setuser default -replicaof -slaveof '+slaveof|no' >/dev/null; done
  hang
  # It has the new epoch, but its SENTINEL MASTER has the old address.
  waiting() {
    for leader in s1 s2 s3; do [[ $(redis "$leader" sentinel master mymaster) == *failover_in_progress* ]] && return; done
    return 1
  }
  waiting
  [[ $(redis "$leader" sentinel master mymaster) == *"$m_port"* ]]
  RLOCK_URL=$(sentinels_url "$leader") run -0 rlock acquire --lease 1m job
  held_on "$master" job
}

@test "a waiter with a grant from the old master goes to the new one, and waits there" {
  servers
  owner=$(rlock acquire --lease 10m job)
  wait_until held_on r1 job
  wait_until held_on r2 job
  job_start job -- touch ran
  wait_until queued job 1 m
  hang
  # The old master hands the lock over; on the new one it still has its holder.
  rlock release --url "redis://127.0.0.1:$m_port" --owner "$owner" job
  listens() { [[ -n $(redis "$master" pubsub channels 'rlock:grant:*') ]]; }
  wait_until listens
  wait_until queued job 1 "$master"
  [[ ! -e ran && $(redis m role) == master* ]]
  rlock release --owner "$owner" job
  job_status 0
  [[ -e ran && $stderr == *'the Sentinels name another master now; waiting there'* ]]
}

@test "a waiter starts nothing until a Sentinel names the master; at most half answer at a release: the status stays, with a message" {
  SENTINEL_DOWN_AFTER=60000 servers # a busy machine must not cause a failover here
  owner=$(rlock acquire --lease 10m job)
  job_start -w 5m job -- touch ran
  wait_until queued job 1 m
  wait_until connected_for_long
  for name in s1 s2 s3; do redis_stop "$name"; done
  rlock release --url "redis://127.0.0.1:$m_port" --owner "$owner" job
  wait_until said 'still waiting'
  [[ ! -e ran ]]
  for name in s1 s2 s3; do sentinel_start "$name"; done
  job_status 0
  [[ -e ran ]]
  job_until go --lease 60s job
  wait_until held_on m job
  wait_until connected_for_long
  redis_stop s1
  redis_stop s2
  job_finish go 3 'no more than half of the Sentinels'
  [[ $(redis m exists job) == 0 ]]
}

@test "only the old master has the locks of a job that ends and of one that renews: 74, and a message" {
  local other
  servers
  start() {
    "$RLOCK" run --lease 6s other -- sleep 600 2>other.err 3>&- &
    other=$!
    wait_until held_on m other
    job_until go --lease 60s job
  }
  hang_after start
  run -0 rlock run -n job -- true
  job_finish go 74 'the lock was lost while the command ran'
  exits "$other" 74
  grep -q 'it is no longer held' other.err
}

@test "a renewal goes to the new master, even if the old one would accept it: the lock is kept" {
  servers
  job_until go --lease 12s job
  wait_until held_on m job
  wait_until held_on r1 job
  wait_until held_on r2 job
  hang
  left=$(redis "$master" pttl job)
  renewed() { (($(redis "$master" pttl job) > left)); }
  wait_until renewed
  [[ $(redis m role) == master* ]]
  touch go
  job_status
  show
  # A renewal that met the hung master is reported, and repeated.
  [[ $status == 3 && $stderr != *lost* ]]
  [[ $(redis "$master" exists job) == 0 ]]
}

@test "a few Sentinels that missed the failover name the old master: the job stays with the new one, and is warned" {
  servers
  redis_stop s3
  redis_freeze m
  named_by_two() { [[ $(master_now s1) != m && $(master_now s1) == "$(master_now s2)" ]]; }
  wait_until named_by_two
  redis_thaw m
  new=$(master_now s1)
  promoted() { [[ $(redis "$new" role) == master* ]]; }
  wait_until promoted
  # The job's lock is on the new master, which two of three have named.
  job_until go --lease 60s job
  wait_until held_on "$new" job
  connected_there() { redis "$new" client list | grep -qE ' name=rlock:job age=([2-9]|[1-9][0-9]) '; }
  wait_until connected_there
  redis_freeze s1
  redis_freeze s2
  # It starts with the old configuration, and is cut off from the others.
  sentinel_start s3
  [[ $(master_now s3) == m ]]
  job_finish go 3 'no more than half of the Sentinels answer, and they name another master'
  [[ $(redis "$new" exists job) == 0 ]]
}
