# The epoch guard: a server that may have forgotten grants gives none to newcomers until these are over. tests/faults/epoch.py
# makes such servers under load.

load ../lib/job
load ../lib/quorum
load ../lib/table

setup() {
  not_over sentinel cluster 'the tests have servers of their own'
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  local name
  touch end
  for name in "${jobs[@]}"; do wait_until gone "$name" || kill -KILL "$name"; done
  [[ -z ${SENTINELS:-} ]] || sentinels_stop
  for name in srv a s1 s2 s3; do
    local pid=${name}_pid
    [[ -z ${!pid:-} || $name == s[123] && -n ${SENTINELS:-} ]] || redis_stop "$name"
  done
  [[ ! -d local ]] || RLOCK_URL=local:$PWD/local rlock local stop --yes
}

single() {
  redis_start a "$@"
  RLOCK_URL=$(redis_url a)
  export RLOCK_URL
}
# accepted: one that grants locks at once.
accepted() { single "$@" && accept_epoch a; }
epoch() { redis "${2:-a}" hget rlock:epoch "$1"; }
# Another life begins with the next request, as after a restart that lost some locks.
new_life() { redis "${1:-a}" hset rlock:epoch life another server another >/dev/null; }
# began_ago MS: the life of the data began then.
began_ago() { redis a hset rlock:epoch since "$(($(server_us a) / 1000 - $1))" >/dev/null; }
# whole_wait: how long newcomers wait from the beginning of the life on, in ms, however late they come.
whole_wait() {
  [[ $(rlock status --json job) =~ '"age_ms": '([0-9]+).*'"grants_begin_in_ms": '([0-9]+) ]]
  echo "$((BASH_REMATCH[1] + BASH_REMATCH[2]))"
}
# background OPTION ... -- COMMAND ...: a job.
background() {
  "$RLOCK" run --epoch-guard "$@" 2>>err 3>&- &
  jobs+=($!)
}
refused() {
  run -75 rlock run -n "$@" -- touch ran
  [[ ! -e ran ]]
}

@test "on one server" {
  redis_start srv
  use_server srv
  table_file "$TESTS_DIR/faults/epoch.table"
}

@test "a restart holds newcomers back for the longest lease, not longer; waiters keep their places" {
  accepted --appendonly yes
  run -0 rlock run --epoch-guard --lease 3s -n job -- true
  [[ $(epoch longest) == 3000 ]]
  redis_kill9 a
  redis_start a --appendonly yes
  redis a config set appendonly yes >/dev/null
  began=$(server_us a)
  for i in 1 2; do
    background --lease 2s job -- bash -c "echo $i >>order"
    wait_until queued job "$i" a
  done
  wait_until test -s order
  (($(server_us a) - began > 1000000))
  wait "${jobs[@]}"
  [[ $(paste -sd' ' order) == '1 2' && $(epoch cause) == changed ]]
  # This is over, but an old copy of the data may bring that life back.
  [[ $(epoch previous) == 3000 ]]
}

@test "--min-hold keeps a lock for longer than its job can run, and does not count" {
  accepted
  run -0 rlock run --epoch-guard --min-hold 12h -n job -- "$RLOCK" run --epoch-guard job -- true
  [[ $(epoch longest) == 30000 ]]
  new_life
  redis a del job >/dev/null
  refused --epoch-guard --min-hold 12h job
  [[ $output == *'grants begin in 30s'* || $output == *'grants begin in 29s'* ]]
  background --min-hold 12h --lease 40s job -- touch began
  wait_until queued job 1 a
  began_ago 50000
  run -0 rlock run --epoch-guard other -- true
  rlock release --owner 00000000-0000-0000-0000-000000000000:1 job || true # hands over
  wait_until test -e began
  [[ $(epoch longest) == 40000 ]]
}

@test "-E 0 does not hide that nobody may run: cron sends a mail" {
  single
  run -75 rlock run --epoch-guard -n -E 0 job -- touch ran
  [[ ! -e ran && $output == *'job: not acquired: '*'grants begin in'* ]]
  accept_epoch a
  background job -- bash -c 'touch begun; until [[ -e end ]]; do sleep 0.1; done'
  wait_until test -e begun
  run -0 rlock run --epoch-guard -n -E 0 job -- touch ran
  [[ ! -e ran && -z $output ]]
}

accept_at_a_terminal() { python3 "$TESTS_DIR/lib/terminal.py" 'Grant locks at once' "${1:-y}" "$RLOCK" doctor --accept-epoch; }

@test "an answer to doctor --accept-epoch counts only for what was shown" {
  single --enable-debug-command yes
  refused --epoch-guard job
  run -75 accept_at_a_terminal n
  tells 64 'there is no terminal' rlock doctor --accept-epoch
  [[ -z $(redis a hget rlock:epoch asked) ]]
  MEANWHILE="redis-cli -s $a_sock debug change-repl-id" run -69 accept_at_a_terminal
  [[ $output == *'it was restarted or failed over, lost data, or was accepted by somebody else meanwhile; look again'* ]]
  refused --epoch-guard job
  # The same state again, but a job has begun in between.
  redis a flushall >/dev/null
  refused --epoch-guard job
  MEANWHILE="rlock doctor --accept-epoch --yes; rlock run --epoch-guard -n job -- true; redis-cli -s $a_sock flushall" \
    run -69 accept_at_a_terminal
  [[ $output == *'look again'* ]]
  refused --epoch-guard job
}

@test "a replica that may be written grants nothing to jobs with the guard" {
  single
  redis_listen a
  redis_start s1 --replicaof "127.0.0.1 $port" --replica-read-only no
  in_step() { redis s1 info replication | grep -q master_link_status:up; }
  wait_until in_step
  RLOCK_URL=$(redis_url s1) run -69 rlock run --epoch-guard -n --server-timeout 1s job -- touch ran
  [[ ! -e ran && $output == *'replica, which forgets locks'* ]]
  redis_listen_no_more a
}

@test "the record of a private server says nothing on a server on which it was restored" {
  port=$(redis_free_port)
  single --port "$port" --bind 127.0.0.1
  redis a hset rlock:epoch life data since 0 cause new longest 0 before 0 >/dev/null
  tells 0 'restarted or failed over; the next job with the epoch guard may have to wait' rlock status job
  run -0 --separate-stderr rlock status --json job
  [[ $output == *'"current": false'* && $output != *grants_begin* ]]
  run -0 rlock status --prometheus job
  [[ $output != *rlock_grants_begin_seconds* ]]
  refused --epoch-guard job
  [[ $output == *'was restarted or failed over'* ]]
  run -0 --separate-stderr rlock status --json job
  [[ $output == *'"current": true'* && $output == *grants_begin* ]]
}

@test "behind a waiter with a longer lease, jobs are told what they wait for" {
  accepted
  new_life
  background --lease 60s job -- true
  wait_until queued job 1 a
  began_ago 31000
  redis a hset rlock:epoch before 1000 >/dev/null
  refused --lease 5s --epoch-guard job
  [[ $output == *'grants begin in '* ]]
  kill "${jobs[0]}"
}

# with_an_inner_job: a job that takes its lock again once the file go exists.
with_an_inner_job() {
  background --lease 3s job -- bash -c 'touch begun; until [[ -e go ]]; do sleep 0.1; done
    "$RLOCK" run --epoch-guard -n job -- touch inner'
  wait_until test -e begun
}

@test "renewals, releases and re-entries of holds that are there go on" {
  accepted
  with_an_inner_job
  new_life
  refused --epoch-guard other
  left=$(redis a pttl job)
  wait_until renewed "$left"
  let_end go "${jobs[0]}"
  [[ -e inner && $(redis a exists job) == 0 ]]
}
renewed() {
  local now
  now=$(redis a pttl job)
  ((now > left)) || { left=$now && return 1; }
}

@test "a release in a new life gives the lock to no waiter yet" {
  accepted
  owner=$(rlock acquire --epoch-guard job --lease 5s)
  background --lease 4s job -- touch ran
  wait_until queued job 1 a
  new_life
  run -0 rlock release job --owner "$owner"
  [[ $(redis a exists job) == 0 && ! -e ran && $(epoch before) == 5000 ]]
  wait "${jobs[0]}"
  since=$(epoch since)
  ran=$(($(redis a get 'redisson_lock_token:{job}') / 1000))
  ((ran - since >= 5000))
}

# renewed_twice: the job is renewed once more, and again.
renewed_twice() {
  local left
  for _ in 1 2; do
    left=$(redis a pttl job)
    wait_until renewed "$left"
  done
}

@test "a record that cannot be written ends no job, and a warning says so once" {
  accepted
  with_an_inner_job
  redis a set rlock:epoch x >/dev/null
  renewed_twice
  let_end go "${jobs[0]}"
  [[ -e inner && $(redis a exists job) == 0 ]]
  cat err
  [[ $(grep -c 'rlock:epoch' err) == 1 && $(<err) == *'WRONGTYPE'*'rlock doctor'* ]]
}

@test "a right to the record that is taken away ends no job" {
  accepted
  redis a acl setuser g on '>pw' '~*' '&*' +@all >/dev/null
  RLOCK_URL=${RLOCK_URL/:\/\//://g:pw@} rlock run --epoch-guard --lease 3s job -- bash -c 'touch begun; until [[ -e go ]]; do sleep 0.1; done' 2>err 3>&- &
  jobs+=($!)
  wait_until test -e begun
  redis a acl setuser g resetkeys '~*job*' >/dev/null
  renewed_twice
  let_end go "${jobs[0]}"
  cat err
  [[ $(grep -c 'rlock:epoch' err) == 1 ]]
}

# behind_sentinels REPLICAS
behind_sentinels() {
  source "$TESTS_DIR/lib/sentinel.bash"
  sentinels_start "$1" 3
  RLOCK_URL=$(sentinels_url)
  export RLOCK_URL
}

@test "behind Sentinels the guard is on: a job waits after a failover, but not if that was long ago" {
  behind_sentinels 2
  run -0 rlock run --lease 1s -n job -- true
  redis r2 config set replica-priority 0 >/dev/null # never a master
  wait_until last_for_all_sentinels
  redis_freeze m
  wait_until promoted
  refused --lease 1s job
  [[ $output == *'was restarted or failed over'*'may have forgotten locks; grants begin in 1'[0-3]s ]]
  [[ $(whole_wait) == 13000 ]]
  run -0 rlock run --lease 1s -n --epoch-guard=false other -- true
  # The same life, as a job sees it that is the first to come later.
  new_life r1
  wait_until replica_for_long r1
  run -0 rlock run --lease 1s -n job -- true
  # Without the replica, nothing tells since when the data have been the same.
  new_life r1
  redis_stop r2
  wait_until alone r1
  refused --lease 1s job
  redis_thaw m
}
last_for_all_sentinels() {
  local name
  for name in s1 s2 s3; do [[ $(redis "$name" sentinel replicas mymaster | paste -sd' ') == *'slave-priority 0 '* ]] || return; done
}
alone() { [[ -z $(redis "$1" client list type replica) ]]; }
promoted() { [[ $(master_now s1) == r1 && $(master_now s2) == r1 && $(master_now s3) == r1 ]]; }
# replica_for_long SERVER: for more than the guard's 13 s with a lease of 1 s.
replica_for_long() { [[ $(redis "$1" client list type replica) =~ ' age='(1[5-9]|[2-9][0-9]) ]]; }

@test "behind Sentinels newcomers wait for older data that came by replication, and the master was none for a moment" {
  behind_sentinels 1
  # They look every 10 s, which this takes from the test's luck.
  for name in s1 s2 s3; do redis "$name" sentinel debug info-period 3600000 >/dev/null; done
  run -0 rlock run --lease 1s -n job -- true
  # A server with an older copy of the data, as one that a backup is restored from.
  redis m save >/dev/null
  port=$(redis_free_port)
  mkdir a
  cp "$m_dir/dump.rdb" a
  single --port "$port" --bind 127.0.0.1 --dir "$PWD/a" --dbfilename dump.rdb
  RLOCK_URL=$(sentinels_url)
  [[ $(redis a hget rlock:epoch life) == "$(epoch life m)" ]]
  wait_until replica_for_long m
  rlock acquire --lease 15s job
  redis m replicaof 127.0.0.1 "$port" >/dev/null
  wait_until in_step m
  redis m replicaof no one >/dev/null
  [[ $(redis m exists job) == 0 && $(master_now) == m ]]
  refused --lease 1s job
  [[ $output == *'grants begin in 1'[1-5]s ]]
  redis_stop a
}

@test "servers of a quorum always have the guard: a new one has no vote, and neither has one that was flushed" {
  quorum_start 3
  run -0 rlock run -n --epoch-guard=false job -- true
  redis s1 flushall >/dev/null
  tells 0 "without $(redis_url s1): the server has no record of earlier locks" rlock run -v -n job -- true
  redis s2 flushall >/dev/null
  refused --lease 5s job
  [[ $output == *'not acquired: '*'the server has no record of earlier locks'*'grants begin in '* ]]
  wait_until eval '[[ $(held_on job) == 0 ]]'
  run -0 rlock doctor --accept-epoch --yes
  run -0 rlock run -n job -- true
}

@test "a hold that a majority keeps is put back on a server that was flushed, without a wait" {
  quorum_start 3
  job_until end --lease 5s job
  redis s1 flushall >/dev/null
  wait_until put_back
  redis s2 flushall >/dev/null
  refused --lease 5s job
  job_finish end 3
}
put_back() { [[ $(held_on job) == 3 ]]; }

@test "local: does not wait at its first start, nor after a crash of its server; it does after a flush" {
  export RLOCK_URL=local:$PWD/local
  run -0 rlock run -n job -- true
  redis-cli -s local/redis.sock debug segfault >/dev/null 2>&1 || true
  wait_until answers
  run -0 rlock run -n job -- true
  redis-cli -s local/redis.sock flushall >/dev/null
  refused job
  [[ $output == *'grants begin in'* ]]
  # Its socket leads to the same record.
  run -0 rlock --url "unix://$PWD/local/redis.sock" doctor --accept-epoch --yes
  run -0 rlock run -n job -- true
  run -0 rlock run -n --epoch-guard --url "unix://$PWD/local/redis.sock" job -- true
  run -0 rlock run -n job -- true
  # With a sync on its way, it would answer before it has written.
  [[ $(redis-cli -s local/redis.sock config get appendfsync | tail -n 1) == no ]]
}
answers() { [[ $(redis-cli -s local/redis.sock ping 2>&1) == PONG ]]; }

@test "a quorum: the message names the server; one that is down does not keep the others from being accepted" {
  for name in s1 s2 s3; do aged_start "$name"; done
  RLOCK_URL="$(redis_url s1) $(redis_url s2) $(redis_url s3)"
  export RLOCK_URL
  redis s3 del rlock:epoch >/dev/null
  run rlock doctor
  [[ $output == *'no job has asked for a lock yet; the first one waits'* ]]
  new_life s1
  new_life s2
  refused job
  [[ $output == *"not acquired: unix://$PWD/s"[12]*'s: the server was restarted or failed over'*'grants begin in'* ]]
  redis_stop s1
  run -69 rlock doctor --accept-epoch --yes
  [[ $output == *"$(redis_url s2): the epoch was accepted by"*"$(redis_url s1): connect"* ]]
  run -0 rlock run -n job -- true
}
