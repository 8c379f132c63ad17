# redis+sentinel:// addresses: rlock asks for the master each time it connects, and nothing else is different.

load ../lib/job

setup() {
  source "$TESTS_DIR/lib/sentinel.bash"
  not_over sentinel cluster 'the tests have Sentinels of their own'
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() { sentinels_stop; }
# begin REPLICAS SENTINELS: they run, and $RLOCK_URL is their address.
begin() {
  sentinels_start "$@"
  export RLOCK_URL
  RLOCK_URL=$(sentinels_url)
}

# refused STATUS TEXT URL: a job exits with STATUS and TEXT before it starts.
refused() {
  tells "$1" "$2" rlock run --url "$3" x -- touch ran
  [[ ! -e ran ]]
}

# A Sentinel must have seen a replica for a while before it makes it a master.
failover() { [[ $(redis s1 sentinel failover mymaster) == OK ]]; }
held_on() { [[ $(redis "$1" exists job) == 1 ]]; }
other_master() { [[ $(master_now "${1:-s1}") != m ]]; }

@test "a job, a nested one, and a waiter: the lock is on the master" {
  begin 1 3
  prints 1 rlock run job -- "$RLOCK" run job -- redis-cli -p "$m_port" exists job
  prints "$RLOCK_URL" rlock run job -- sh -c 'echo "$RLOCK_URL"'
  hands_over job m
  assert_clean m
}

@test "dead Sentinels are skipped; without any: 69" {
  sentinels_start 1 3
  redis_stop s1
  prints mine rlock run --url "$(sentinels_url)" job -- echo mine
  redis_stop s2
  run -0 rlock run --url "$(sentinels_url)" job -- echo mine
  redis_stop s3
  refused 69 'Connection refused' "$(sentinels_url)"
}

@test "a Sentinel that hangs leaves time for the others, also for a renewal of a short lease" {
  begin 0 3
  job_until go --lease 5s job
  wait_until held_on m
  redis_freeze s1
  redis m client kill type normal skipme yes
  left=$(redis m pttl job)
  wait_until renewed_past "$left" job m
  rlock run another -- true # it costs a second, but not the lock
  job_finish go 3
  redis_thaw s1
}

@test "Sentinels that hang are asked for longer than the lease lasts: 69, although the lock is granted each time" {
  begin 0 3
  redis_freeze s1
  redis_freeze s2
  run -69 timeout 30 "$RLOCK" run -n --lease 1s job -- touch ran
  [[ ! -e ran ]]
  redis_thaw s1
  redis_thaw s2
}

@test "an unknown master, and an address that is not a Sentinel" {
  sentinels_start 0 1
  refused 78 "no Sentinel knows a master 'other'" "redis+sentinel://127.0.0.1:$s1_port/other"
  # The others may know it.
  refused 69 "no Sentinel knows a master 'other' among those that answer" "redis+sentinel://127.0.0.1:1,127.0.0.1:$s1_port/other"
  refused 78 "it is not a Sentinel" "redis+sentinel://127.0.0.1:$m_port/mymaster"
  refused 78 'if it is a Sentinel, write redis+sentinel://' "redis://127.0.0.1:$s1_port"
  refused 78 'it is not a cluster' "redis+cluster://127.0.0.1:$s1_port"
  refused 64 'write the scheme once, before all hosts' "redis+sentinel://127.0.0.1:1,redis://127.0.0.1:2/mymaster"
}

# By then it may know of a failover of which the others have not heard.
@test "a Sentinel that was silent is asked again" {
  begin 0 3
  redis_stop s3
  job_until go --lease 6s job
  wait_until held_on m
  sentinel_run s3
  redis s3 acl setuser default -sentinel\|master
  asked() { [[ $(redis s3 acl log) == *'sentinel|master'* ]]; }
  wait_until asked
  job_finish go 3
}

@test "a Sentinel that is twice in the address counts once" {
  begin 0 2
  RLOCK_URL=$(sentinels_url s1 s1 s2)
  redis_stop s2
  doctor_says warn 'no more than half of them answer'
}

@test "Sentinels disagree about the master since their start: what most say counts" {
  begin 1 3
  redis s1 sentinel remove mymaster
  redis s1 sentinel monitor mymaster 127.0.0.1 "$r1_port" 3
  prints 1 rlock run job -- redis-cli -p "$m_port" exists job
}

@test "most Sentinels refuse us: a message, and -v says why" {
  begin 0 3
  redis s2 acl setuser default -sentinel\|master
  redis s3 acl setuser default -sentinel\|master
  run -0 --separate-stderr rlock run job -- true
  [[ $stderr == *'no more than half of the Sentinels answer (-v says why)'* && $stderr != *"$s3_port: "* ]]
  run -0 --separate-stderr rlock run -v job -- true
  [[ $stderr == *"$s3_port: "*NOPERM* ]]
  doctor_says warn 'no more than half of them answer'
  redis s2 acl setuser default +sentinel\|master
  doctor_says ok 'more than half of them answer: this server'
}
doctor_says() {
  run rlock doctor
  [[ $output =~ "$1"\ +sentinels\ +"$2" ]]
}

# A Sentinel that has slept still names the old master, until it hears from the others.
@test "Sentinels disagree: the one that knows the latest failover counts" {
  sentinels_start 1 3
  redis_freeze s3
  wait_until failover
  wait_until other_master s1
  wait_until other_master s2
  wait_until in_step m
  redis_stop s2
  redis_thaw s3
  prints 1 rlock run --epoch-guard=false --url "$(sentinels_url s3 s1 s2)" job -- redis-cli -p "$r1_port" exists job
}

@test "the Sentinels and the servers have passwords of their own" {
  sentinels_start 0 1
  redis m config set requirepass server
  redis s1 acl setuser default resetpass '>sentinel'
  url=$(sentinels_url)
  refused 77 'requires a password' "$url"
  RLOCK_SENTINEL_PASSWORD=sentinel refused 77 'requires a password' "$url"
  prints 0 env RLOCK_SENTINEL_PASSWORD=sentinel RLOCK_PASSWORD=server "$RLOCK" run --url "$url" job -- sh -c 'env | grep -c PASSWORD || true'
  (umask 077 && echo sentinel >sentinel && echo server >server)
  run -0 rlock run --url "$url" --sentinel-password-file sentinel --password-file server job -- \
    "$RLOCK" run other -- echo both
  [[ $output == both ]]
}

@test "the Sentinels have a user of their own" {
  sentinels_start 0 1
  redis s1 acl setuser watcher on '>sentinel' '~*' '&*' -@all +sentinel\|master +sentinel\|get-master-addr-by-name
  redis s1 acl setuser default off
  export RLOCK_URL RLOCK_SENTINEL_PASSWORD=sentinel
  RLOCK_URL=$(sentinels_url)
  refused 77 'or the user of the Sentinels (--sentinel-user)' "$RLOCK_URL"
  prints watcher rlock run --sentinel-user watcher job -- sh -c 'echo "$RLOCK_SENTINEL_USER"'
  RLOCK_SENTINEL_USER=watcher run -1 rlock status --is-held job
  (umask 077 && echo sentinel >sentinel)
  printf 'sentinel-user = "watcher"\nsentinel-password-file = "%s"\n' "$PWD/sentinel" >c.toml
  prints both env -u RLOCK_SENTINEL_PASSWORD "$RLOCK" --config c.toml run job -- "$RLOCK" run other -- echo both
  # The one in the address is the master's.
  refused 77 'or the user of the Sentinels (--sentinel-user)' "${RLOCK_URL/:\/\//://watcher:sentinel@}"
}

@test "the master is killed while a job holds and another waits: both run, one after the other" {
  begin 2 3
  job_start --lease 30s job -- bash -c "until [[ -e go ]]; do sleep 0.1; done; echo first >>order"
  wait_until held_on m
  "$RLOCK" run job -- bash -c "echo second >>order" 2>second.err 3>&- &
  local second=$!
  wait_until queued job 1 r1
  wait_until queued job 1 r2
  redis_kill9 m
  wait_until other_master
  master=$(master_now)
  wait_until held_on "$master"
  left=$(redis "$master" pttl job)
  wait_until renewed_past "$left" job "$master"
  job_finish go 0
  wait "$second"
  [[ $(paste -sd' ' order) == 'first second' ]]
}

@test "the master is replaced while a job holds: the release finds the new one" {
  begin 1 1
  job_until go job
  wait_until held_on m
  wait_until held_on r1
  wait_until failover
  wait_until other_master
  wait_until in_step m
  job_finish go 3
  [[ -z $stderr ]]
  [[ $(redis r1 exists job) == 0 ]]
}

@test "doctor fails a master that would continue granting without its replicas" {
  sentinels_start 1 1
  url=$(sentinels_url)
  run -78 --separate-stderr rlock doctor --url "$url"
  [[ $output == *'fail  replicas'*'set min-replicas-to-write 1 and min-replicas-max-lag 10 or less'* ]]
  redis m config set min-replicas-to-write 1 min-replicas-max-lag 10
  run -1 --separate-stderr rlock doctor --url "$url"
  [[ $output == *'warn  replicas'*'42s (min-replicas-max-lag + 2s + the lease of 30s)'* ]]
}
