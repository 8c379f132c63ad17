# --wait-replicas: a lock counts only once that number of replicas has it.

load ../lib/job

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  m_port=$(redis_free_port)
  not_over sentinel 'tests/cli/sentinel.bats has replicas'
  [[ ${TEST_OVER:-} != cluster ]] || export m_over=$m_port # it has one port there
  redis_start m --port "$m_port"
  also_allow m +wait
  export RLOCK_URL
  RLOCK_URL=$(redis_url m)
}

teardown() {
  [[ -z ${r1_pid:-} ]] || redis_stop r1
  redis_stop m
}

# refused STATUS TEXT OPTION...: a job is not started.
refused() { tells "$1" "$2" rlock run "${@:3}" job -- touch ran && [[ ! -e ran ]]; }
in_step() { [[ $(redis "$1" role) == *connected* ]]; }
replica() {
  not_over cluster 'the test has a replica of its own'
  redis_start r1 --replicaof "127.0.0.1 $m_port"
  wait_until in_step r1
}

@test "the replica has the lock when the command runs, also if it was handed over; too few replicas, and no time to wait: 69" {
  replica
  prints 1 rlock run --wait-replicas 1 job -- redis-cli -s "$r1_sock" exists job
  prints 2 rlock run --wait-replicas 1 a b -- redis-cli -s "$r1_sock" exists a b
  for wait in -n '-w 1500ms'; do
    refused 69 '1 of 2 replicas have acknowledged the lock, so it was given back' --wait-replicas 2 $wait
    [[ $(redis m exists job) == 0 ]]
  done
  assert_clean m
  owner=$(rlock acquire --wait-replicas 1 job --lease 1m)
  job_start --wait-replicas 1 job -- redis-cli -s "$r1_sock" exists job
  wait_until queued job 1 m
  rlock release job --owner "$owner"
  job_status 0
  [[ $output == 1 ]]
}

@test "the job waits until there is a replica, and says so once" {
  job_start --wait-replicas 1 -w 1m job -- redis-cli -s "$BATS_TEST_TMPDIR/r1/s" exists job
  wait_until said '0 of 1 replicas have acknowledged the lock, so it was given back; starting again'
  replica
  job_status 0
  [[ $output == 1 && $(grep -c replicas <<<"$stderr") == 1 ]]
}

@test "a connection that is cut between the grant and its acknowledgement: tried again during the wait" {
  replica
  python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$m_sock" "$PWD/passed" 'rlock renew' 1 3>&- &
  local proxy=$!
  wait_until test -S "$PWD/p"
  run -0 --separate-stderr rlock run --url "unix://$PWD/p" --wait-replicas 1 -w 20s job -- echo mine
  kill "$proxy"
  assert_says 'starting again'
  [[ $output == mine ]]
}

@test "a server without WAIT: 78; a user without the right: 77" {
  redis_stop m
  redis_start m --rename-command WAIT ''
  refused 78 'wait-replicas needs a server with WAIT' --wait-replicas 1
  redis_stop m
  redis_start m
  redis m acl setuser default -wait
  refused 77 '' --wait-replicas 1
  [[ $(redis m exists job) == 0 ]]
}

@test "-w includes the time until a server is there, and while it is gone; it passes without one: 69" {
  redis_stop m
  job_start -w 1m job -- echo mine
  wait_until said 'still waiting'
  redis_start m
  job_status 0
  [[ $output == mine ]]
  said 'the server answers again'
  redis_stop m
  refused 69 'still waiting, for at most 0.5s' -w 500ms
  refused 69 '' -n
  refused 69 ''
}
