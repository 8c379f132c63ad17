# Locks on a majority of independent servers.

load ../lib/common
load ../lib/job
load ../lib/quorum

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  quorum_start 3
}

teardown() {
  local job
  [[ -z ${proxy_pid:-} ]] || kill "$proxy_pid"
  touch end
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  quorum_stop
}

# holder OPTION ...: a job in the background that holds `job` until the file end exists.
holder() {
  job_start "$@" job -- bash -c 'touch begun; until [[ -e end ]]; do sleep 0.05; done; exit 9'
  jobs+=("$frontend")
  wait_until test -e begun
}

# first_lock PYTHON: checks the first lock of the list in $output.
first_lock() { python3 -c "import json, sys; lock = json.loads(sys.argv[1])[0]; $1" "$output"; }

@test "the lock is taken and released on each server" {
  run --separate-stderr rlock run job -- bash -c 'echo "$RLOCK_URL"; for s in s1 s2 s3; do redis-cli -s "$(eval echo \$${s}_sock)" exists job; done'
  show
  [[ $status == 0 && $output == "$RLOCK_URL"$'\n'1$'\n'1$'\n'1 && -z $stderr ]]
  [[ $(held_on job) == 0 ]]
  assert_clean s1 && assert_clean s2 && assert_clean s3
}

@test "while one job has it, another one is refused or waits" {
  holder
  run --separate-stderr rlock run -n job -- true
  show
  [[ $status == 75 && $stderr == *'not acquired: held by'* ]]
  rlock run -w 60s job -- touch ran 3>&- &
  local waiter=$!
  jobs+=("$waiter")
  wait_until listens
  [[ ! -e ran ]]
  touch end
  wait "$waiter"
  [[ -e ran ]]
}
listens() { [[ $(listeners_on s1 'redisson_lock__channel:{job}') -gt 0 ]]; }

@test "a majority is enough; on a terminal, one line says which server is missing, but not in cron's mail" {
  redis_stop s3
  run --separate-stderr rlock run job -- true
  show
  [[ $status == 0 && -z $stderr ]]
  rlock acquire job --lease 60s >owner 2>acquire.err
  rlock release job --owner "$(cat owner)"
  [[ ! -s acquire.err ]]
  run --separate-stderr rlock run -v job -- true
  [[ $status == 0 && $(grep -c 'a majority of the servers grants the lock, without' <<<"$stderr") == 1 ]]
  [[ $stderr == *"grants the lock, without ${RLOCK_URL##* }"* ]]
  run -0 python3 "$TESTS_DIR/lib/terminal.py" never never "$RLOCK" run job -- true
  show
  [[ $output == *'warning: job: a majority of the servers grants the lock, without'*"${RLOCK_URL##* }"* ]]
  [[ $(grep -c . <<<"$output") == 1 ]]
}

@test "everybody is warned of a server that fails during the job, if a bare majority is left" {
  quorum_stop
  quorum_start 5
  redis_stop s5
  holder --lease 6s
  redis_stop s4
  wait_until said 'a majority of the servers keeps the lock, without'
  touch end
  job_status
  show
  [[ $status == 9 && $stderr == *"$(redis_url s4)"* && $stderr != *"$(redis_url s5)"* ]]
}

@test "and there is no warning if more than a majority is left" {
  quorum_stop
  quorum_start 5
  holder -v --lease 6s
  redis_stop s4
  wait_until said 'a majority of the servers keeps the lock, without'
  touch end
  job_status
  show
  [[ $status == 9 && $stderr != *warning* ]]
}

@test "servers that refuse the request have answered" {
  local server
  for server in s1 s2 s3; do redis "$server" acl setuser default -eval -evalsha >/dev/null; done
  run -77 --separate-stderr rlock run job -- touch ran
  [[ ! -e ran && $stderr == *'only 0 of 3 servers allowed the request; '*NOPERM* ]]
  for server in s1 s2 s3; do redis "$server" acl setuser default +@all >/dev/null; done
}

@test "a minority is not enough: 69, and nothing runs" {
  redis_stop s2
  redis_stop s3
  run --separate-stderr rlock run job -- touch ran
  show
  [[ $status == 69 && ! -e ran && $stderr == *'only 1 of 3 servers answered'* ]]
  [[ $(redis s1 exists job) == 0 ]] # given back
  run --separate-stderr rlock run -w 300ms job -- touch ran
  show
  [[ $status == 69 && ! -e ran && $stderr == *'; still waiting'* ]]
}

@test "two servers that hang: 69; a single one delays nobody" {
  redis_freeze s3
  run rlock run --lease 60s job -- true
  [[ $status == 0 ]]
  redis_freeze s2
  run rlock run --lease 5s job -- touch ran
  redis_thaw s2
  redis_thaw s3
  [[ $status == 69 && ! -e ran ]]
}

@test "a server that was started less than a lease ago has no vote" {
  redis_stop s2
  redis_start s2 # with its own clock: it is young
  accept_epoch s2
  run --separate-stderr rlock run -v --lease 5s job -- true
  show
  [[ $status == 0 && $stderr == *"$(redis_url s2)"*'started less than a lease ago'* ]]
  redis_stop s3
  redis_start s3
  accept_epoch s3
  run --separate-stderr rlock run --lease 30s job -- touch ran
  show
  [[ $status == 69 && ! -e ran && $stderr == *'only 1 of 3 servers may vote'* ]]
  [[ $(held_on job) == 0 ]]
  # It has one once it is old enough.
  run rlock run -w 60s --lease 2s job -- true
  [[ $status == 0 ]]
}

# Why the rule exists: s1 and s2 grant the lock to the holder, s2 is restarted empty, and s2 and s3 would be a majority.
@test "a lock that a restarted server has forgotten is not granted again" {
  redis_stop s3
  job_start --lease 60s job -- bash -c 'touch begun; until [[ -e end ]]; do sleep 0.05; done'
  jobs+=("$frontend")
  wait_until test -e begun
  aged_start s3
  redis_stop s2
  redis_start s2
  # The scripts alone would grant it, because both are free.
  [[ $(redis s1 exists job) == 1 && $(redis s2 exists job) == 0 && $(redis s3 exists job) == 0 ]]
  run rlock run -n job -- touch ran
  show
  [[ $status != 0 && ! -e ran ]]
  redis_stop s2
  aged_start s2 # the same server, had it not been restarted
  run rlock run -n job -- touch ran
  show
  [[ $status == 0 && -e ran ]]
}

# Held on s1 and s2; s3 comes back, and s2 is restarted empty: s2 and s3 would be a majority. "$@": takes the lock.
forgotten_by_s2() {
  redis_stop s3
  "$@"
  aged_start s3
  redis_kill9 s2
  AGED_SECONDS=40 aged_start s2 # old enough for the default lease of 30 s, had the holder the same
  [[ $(redis s1 exists job) == 1 && $(redis s2 exists job) == 0 && $(redis s3 exists job) == 0 ]]
  run --separate-stderr rlock run -n job -- touch ran
  show
  [[ $status == 75 && ! -e ran ]]
  redis_stop s2
  AGED_SECONDS=150 aged_start s2 # the same server, had it not been restarted
  run rlock run -n job -- touch ran
  show
  [[ $status == 0 && -e ran ]]
}

@test "a restarted server also waits for another holder's longer lease" {
  forgotten_by_s2 rlock acquire job --lease 100s
}

@test "and for the time for which a holder keeps the lock after its end" {
  forgotten_by_s2 rlock run --min-hold 100s job -- true
}

calls() { redis "$1" info commandstats | awk -F'[=,]' '/^cmdstat_eval/ { sum += $2 } END { print sum + 0 }'; }
asked() { (($(calls "$1") >= $2)); }

@test "a waiter knows that a server was restarted, regardless of what the server says" {
  redis_stop s3
  holder --lease 10m
  aged_start s3
  rlock run -q -w 10m --lease 10m job -- touch ran 3>&- &
  jobs+=($!)
  wait_until asked s3 2
  redis_kill9 s2
  aged_start s2
  wait_until asked s2 6
  [[ ! -e ran ]]
}

# The requests that it sends to s3 while that hangs are executed later.
@test "a late grant is given back when the server answers again" {
  rlock run job -- true
  RLOCK_URL=$(redis_url s1) rlock acquire job --lease 10m >one
  redis_freeze s3
  rlock run -q -w 10m --lease 10m job -- touch ran 3>&- &
  jobs+=($!)
  wait_until asked s2 8
  redis_thaw s3
  wait_until test -e ran
}

@test "the token grows over any majority" {
  # The clock of s1 is ahead, so its tokens are larger than the others'.
  redis s1 set 'redisson_lock_token:{job}' 4000000000000000 >/dev/null
  [[ $(rlock run job -- printenv RLOCK_TOKEN) == 4000000000000001 ]]
  redis_stop s1
  [[ $(rlock run -q job -- printenv RLOCK_TOKEN) == 4000000000000002 ]]
}

@test "one server's token that is far ahead of the clock counts as junk there, and is not carried to the others" {
  local token
  redis s1 set 'redisson_lock_token:{job}' 9007199254740000 >/dev/null
  run -0 --separate-stderr rlock run job -- printenv RLOCK_TOKEN
  token=$output
  ((token < 4000000000000000))
  [[ $stderr == *"without unix://"*"/s1/s: "*'redisson_lock_token:{job} does not contain a fencing token'* ]]
  (($(rlock run -q job -- printenv RLOCK_TOKEN) > token))
  [[ $(redis s1 get 'redisson_lock_token:{job}') == 9007199254740000 ]]
  # Without one of the others, it says which key is in the way.
  redis_stop s2
  run --separate-stderr rlock run -n job -- touch ran
  assert_says 'redisson_lock_token:{job} does not contain a fencing token'
  [[ ! -e ran ]]
}

@test "a hold that a server has lost is put back there, but not without a majority" {
  holder --lease 6s
  redis s2 flushall >/dev/null
  wait_until eval '[[ $(redis s2 exists job) == 1 ]]'
  [[ $(held_on job) == 3 ]]
  redis s1 flushall >/dev/null
  redis s3 flushall >/dev/null
  job_status
  show
  [[ $status == 74 && $stderr == *'it is no longer held'* ]]
  [[ $(held_on job) == 0 ]]
}

@test "a hold that is put back has its token there, too" {
  local token
  on_servers set 'redisson_lock_token:{job}' 4000000000000000 >/dev/null
  holder --lease 5s
  token=$(redis s1 get 'redisson_lock_token:{job}')
  redis s2 flushall >/dev/null
  wait_until eval '[[ $(redis s2 get "redisson_lock_token:{job}") == "'"$token"'" ]]'
  redis s1 flushall >/dev/null
  wait_until eval '[[ $(redis s1 get "redisson_lock_token:{job}") == "'"$token"'" ]]'
  touch end
  job_status
  [[ $status == 9 ]]
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
  # shellcheck disable=SC2016 # for the job
  run -0 rlock run job -- sh -c 'echo "$RLOCK_TOKEN"'
  ((output > token))
}

@test "readers are put back beside each other; a job under an ancestor's daemon is put back, too" {
  holder -s --lease 5s
  # shellcheck disable=SC2030,SC2031 # for this one
  RLOCK_HELD='00000000-0000-4000-8000-000000000000:1 job' "$RLOCK" run -s --lease 5s job -- \
    bash -c 'until [[ -e end ]]; do sleep 0.05; done' 3>&- 2>second.err &
  jobs+=("$!")
  two_on() { [[ $(redis "$1" hlen job) == 3 ]]; } # the mode, and two readers
  wait_until two_on s2
  wait_until two_on s1
  redis s2 flushall >/dev/null
  wait_until two_on s2
  redis s1 flushall >/dev/null
  wait_until two_on s1
}

@test "a job survives the failure of a server, and of another one once the first is back for more than a lease" {
  holder --lease 5s
  redis_kill9 s1
  wait_until said "$(redis_url s1)"
  aged_start s1
  wait_until eval '[[ $(held_on job) == 3 ]]'
  redis_kill9 s2
  wait_until eval '[[ $(redis s1 pttl job) -gt 4000 ]]'
  touch end
  job_status
  show
  [[ $status == 9 ]]
}

@test "a majority that hangs stops the command before the lease ends" {
  holder --lease 5s
  redis_freeze s1
  redis_freeze s2
  job_status
  redis_thaw s1
  redis_thaw s2
  show
  [[ $status == 74 && $stderr == *'the lock could not be renewed in time'* ]]
}

@test "acquire, renew, status and release work on a quorum" {
  owner=$(rlock acquire job --lease 60s)
  [[ $(held_on job) == 3 ]]
  rlock renew job --owner "$owner"
  redis s3 del job >/dev/null
  rlock status --is-held job
  run rlock status job
  show
  [[ $output == *"$owner"* && $output == *'servers '* && $output == *"$(redis_url s3)  free"* ]]
  run rlock status --json job
  first_lock 'assert lock["state"] == "held" and len(lock["servers"]) == 3 and lock["servers"][2]["state"] == "free"'
  rlock release job --owner "$owner"
  [[ $(held_on job) == 0 ]]
  run rlock release job --owner "$owner"
  [[ $status == 76 ]]
}

# put_back_by_renew OPTION...: rlock renew puts the lock back on a server that has lost it, as it was granted.
put_back_by_renew() {
  local owner token
  owner=$(rlock acquire "$@" --reason 'for a while' --lease 60s job)
  redis s3 flushall >/dev/null
  redis s2 flushall >/dev/null
  run -76 rlock renew job --owner "$owner" # of one server alone
  rlock release job --owner "$owner" || true
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
  owner=$(rlock acquire "$@" --reason 'for a while' --lease 60s job)
  redis s3 flushall >/dev/null
  rlock renew job --owner "$owner"
  [[ $(held_on job) == 3 ]]
  [[ $(redis s3 hget 'rlock:holder:{job}' reason) == "$(redis s1 hget 'rlock:holder:{job}' reason)" ]]
  token=$(redis s3 get 'redisson_lock_token:{job}')
  ((token >= $(redis s1 get 'redisson_lock_token:{job}') && token >= $(redis s2 get 'redisson_lock_token:{job}')))
  (($(redis s3 pttl job) > 50000))
  # The others may leave now.
  redis_stop s1
  rlock renew job --owner "$owner"
  run -75 rlock run -n "$@" job -- touch ran
  rlock release job --owner "$owner"
  [[ $(held_on job) == 0 && ! -e ran ]]
}

@test "rlock renew puts a lost hold back" {
  put_back_by_renew
}

@test "rlock renew puts back a writer, and a string" {
  put_back_by_renew -x
  aged_start s1
  on_servers flushall >/dev/null
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
  put_back_by_renew --protocol set
}

@test "rlock renew puts back a reader beside others" {
  local one
  one=$(rlock acquire -s --lease 60s job)
  rlock acquire -s --lease 60s job >two
  redis s3 flushall >/dev/null
  rlock renew job --owner "$one"
  rlock renew job --owner "$(cat two)"
  [[ $(redis s3 hlen job) == 3 ]]
}

@test "rlock renew puts nothing back on a server that was started less than a lease ago" {
  local owner
  owner=$(rlock acquire --lease 60s job)
  redis_stop s3
  redis_start s3
  rlock renew job --owner "$owner"
  [[ $(held_on job) == 2 ]]
}

@test "status distinguishes a contested lock from a held one, and a server that hangs" {
  RLOCK_URL=$(redis_url s1) rlock acquire job --lease 60s >one
  run rlock status job
  [[ $output == *'state     free'* ]]
  RLOCK_URL=$(redis_url s2) rlock acquire job --lease 60s >two
  run rlock status job
  show
  [[ $output == *'state     contested'* && $output == *"$(cat one)"* && $output == *"$(cat two)"* ]]
  run rlock status --is-held job
  [[ $status == 1 ]]
  redis_freeze s3
  run rlock status --json
  redis_thaw s3
  show
  first_lock 'assert lock["state"] == "contested" and lock["servers"][2]["error"]'
}

@test "a contested lock is reported as such, and what was granted is given back" {
  RLOCK_URL=$(redis_url s1) rlock acquire job --lease 60s >one
  RLOCK_URL=$(redis_url s2) rlock acquire job --lease 60s >two
  run --separate-stderr rlock run -n job -- touch ran
  show
  [[ $status == 75 && ! -e ran && $stderr == *'contested: others hold it on 2 of 3 servers, and no one on a majority'* ]]
  [[ $(redis s3 exists job) == 0 ]]
}

@test "a contested lock, and a server that hangs: its time to answer is not waited for eight times" {
  rlock run job -- true # the servers know the scripts
  RLOCK_URL=$(redis_url s1) rlock acquire job --lease 10m >one
  local before
  before=$(calls s2)
  redis_freeze s3
  run --separate-stderr rlock --server-timeout 1s run -n job -- touch ran
  redis_thaw s3
  show
  # Nobody else asks for it; only the server without an answer is missing.
  [[ $status == 75 && ! -e ran && $stderr == *'contested: others hold it on 1 of 3 servers, and no one on a majority; '*"${RLOCK_URL##* }"* ]]
  (($(calls s2) - before < 8)) # two for an attempt
}

@test "ten newcomers that do not wait: at least one gets the lock" {
  local i
  for i in {1..10}; do
    rlock run -q -n job -- bash -c 'echo got >>got; until [[ -e end ]]; do sleep 0.05; done' 3>&- &
    jobs+=($!)
  done
  wait_until test -s got
  [[ $(wc -l <got) == 1 ]]
}

@test "force-unlock and requests to stop reach the holder through any server" {
  holder
  redis_stop s1
  run rlock force-unlock --yes job
  show
  [[ $status == 0 ]]
  job_status
  [[ $status == 74 && $stderr == *'asked to give up the lock'* ]]
  [[ $(redis s2 exists job) == 0 && $(redis s3 exists job) == 0 ]]
}

# slow_s3 WORDS: the replies of s3 to commands with these words are delayed by 400 ms.
slow_s3() {
  PROXY_DELAY="$1:0.4" python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$s3_sock" "$PWD/passed" 3>&- &
  proxy_pid=$!
  wait_until test -S p
  RLOCK_URL="$(redis_url s1) $(redis_url s2) unix://$PWD/p"
}

@test "a slow server decides if the others disagree: renewed, and released" {
  local owner
  owner=$(rlock acquire job --lease 60s)
  redis s1 del job >/dev/null
  slow_s3 'rlock re'
  rlock renew job --owner "$owner"
  rlock status --is-held job
  # The renewal has put it back.
  redis s1 del job >/dev/null
  rlock release job --owner "$owner"
  [[ $(held_on job) == 0 ]]
}

# It also has to be sent the script, which takes two messages.
@test "a slow server gets the release, even after a majority has answered" {
  local owner
  owner=$(rlock acquire job --lease 60s)
  slow_s3 'rlock release'
  redis s3 script flush >/dev/null
  rlock release job --owner "$owner"
  [[ $(held_on job) == 0 ]]
  redis s3 script flush >/dev/null
  rlock run job -- true
  [[ $(held_on job) == 0 ]]
}

@test "a slow server gets the force-unlock" {
  rlock acquire job --lease 60s >owner
  slow_s3 'rlock force-unlock'
  redis s3 script flush >/dev/null
  rlock force-unlock --yes --now job
  [[ $(held_on job) == 0 ]]
}

# A round that waited for the server that hangs would be over after the wait.
@test "--supersede asks during the wait, even if a server hangs" {
  holder
  wait_until eval '[[ $(listeners_on s1 "rlock:control:{job}") -gt 0 && $(listeners_on s2 "rlock:control:{job}") -gt 0 ]]'
  redis_freeze s3
  run --separate-stderr rlock run -w 1900ms --supersede job -- touch ran
  redis_thaw s3
  show
  [[ $status == 0 && -e ran ]]
  job_status
  [[ $status == 74 ]]
}

@test "force-unlock --now deletes it on every server" {
  rlock acquire job --lease 60s >owner
  rlock force-unlock --yes --now job
  [[ $(held_on job) == 0 ]]
}

@test "a keeper keeps the lock on a quorum" {
  sleep 600 3>&- &
  local process=$!
  jobs+=("$process")
  rlock acquire job --for-pid "$process" >owner
  [[ $(held_on job) == 3 ]]
  kill "$process"
  wait_until eval '[[ $(held_on job) == 0 ]]'
}

@test "a nested job shares the lock, and its end does not free it" {
  run rlock run job -- bash -c '"$RLOCK" run job -- true; redis-cli -s "$s1_sock" exists job; redis-cli -s "$s3_sock" exists job'
  show
  [[ $status == 0 && $output == 1$'\n'1 ]]
  [[ $(held_on job) == 0 ]]
}

@test "several names are taken together or not at all" {
  run rlock run a b -- bash -c 'for n in a b; do redis-cli -s "$s2_sock" exists $n; done'
  show
  [[ $status == 0 && $output == 1$'\n'1 ]]
  rlock acquire b --lease 60s >owner
  run rlock run -n a b -- touch ran
  [[ $status == 75 && ! -e ran && $(held_on a) == 0 ]]
}

@test "readers share, writers do not" {
  rlock acquire -s job --lease 20s >reader
  run rlock run -n -s job -- true
  [[ $status == 0 ]]
  run rlock run -n -x job -- true
  [[ $status == 75 ]]
}

@test "--min-hold keeps the lock on the servers" {
  rlock run --min-hold 60s job -- true
  [[ $(held_on job) == 3 ]]
  run rlock run -n job -- true
  [[ $status == 75 ]]
}

@test "Ctrl-C during a round ends it and gives back" {
  redis_freeze s2
  redis_freeze s3
  env --default-signal=INT "$RLOCK" run -w 10m --lease 60s job -- true 3>&- &
  local waiter=$!
  jobs+=("$waiter")
  wait_until eval '[[ $(redis s1 exists job) == 1 ]]'
  kill -INT "$waiter"
  wait_until gone "$waiter"
  redis_thaw s2
  redis_thaw s3
  wait_until eval '[[ $(redis s1 exists job) == 0 ]]'
}

@test "an impossible quorum is refused" {
  local a=redis://127.0.0.1:1 b=redis://127.0.0.1:2 c=redis://127.0.0.1:3
  refused() {
    run --separate-stderr env -u RLOCK_URL "$RLOCK" "$@" run job -- true
    show
    [[ $status == 64 ]]
  }
  refused --url $a --url $b
  assert_says 'an odd number'
  refused --url $a --url $b --url $c --url redis://127.0.0.1:4
  refused --url $a --url $b --url $a
  assert_says 'given twice'
  refused --url $a --url local: --url $b
  assert_says 'private server'
  RLOCK_URL="$a $b" run rlock run job -- true
  [[ $status == 78 ]]
  refused --url $a --url http://127.0.0.1:2 --url $b
  assert_says "unknown scheme 'http:'"
  local option
  for option in '--slots 3' '--wait-replicas 1' --wait-aof '--max-queue 3' '--priority 2' --replace-waiting; do
    # shellcheck disable=SC2086 # an option and its value
    run rlock run $option job -- true
    show
    [[ $status == 64 && $output == *'with several servers you cannot use --'* ]]
  done
}

@test "a master behind Sentinels cannot be part of a quorum" {
  run --separate-stderr -64 rlock run --url redis+sentinel://127.0.0.1:1/a --url redis+sentinel://127.0.0.1:1/b \
    --url redis+sentinel://127.0.0.1:1/c job -- touch ran
  assert_says 'a master behind Sentinels cannot be part of a quorum'
  [[ ! -e ran ]]
}

@test "clusters, and addresses separated by commas, are no quorum" {
  run --separate-stderr -64 rlock run --url redis+cluster://127.0.0.1:1 --url redis+cluster://127.0.0.1:2 \
    --url redis+cluster://127.0.0.1:3 job -- touch ran
  assert_says 'a cluster cannot be part of a quorum'
  run --separate-stderr -64 rlock run --url redis://:S1@127.0.0.1:1,redis://:S2@127.0.0.1:2 job -- touch ran
  assert_says 'more than one address; separate them with blanks'
  [[ $stderr != *S1* && $stderr != *S2* && ! -e ran ]]
}

@test "two addresses of one server, and a replica, are refused" {
  local port
  port=$(redis_free_port)
  redis s1 config set port "$port" >/dev/null || skip 'the server takes no port later'
  run --separate-stderr env RLOCK_URL="$(redis_url s1) redis://127.0.0.1:$port $(redis_url s2)" "$RLOCK" run job -- true
  show
  [[ $status == 78 && $stderr == *'are the same server'* ]]
  redis s3 replicaof 127.0.0.1 "$port" >/dev/null
  run --separate-stderr rlock run job -- true
  show
  [[ $status == 78 && $stderr == *replica* ]]
  [[ $(redis s1 exists job) == 0 && $(redis s2 exists job) == 0 ]]
}

@test "a user who may not ask INFO has no vote on that server" {
  redis s1 acl setuser default -info >/dev/null
  run --separate-stderr rlock run -v job -- true
  show
  [[ $status == 0 && $stderr == *"$(redis_url s1)"*'+info'* ]]
}

@test "a configuration file has the addresses as a list" {
  {
    printf 'url = ['
    for s in s1 s2 s3; do printf '"%s", ' "$(redis_url $s)"; done
    printf ']\n'
  } >rlock.toml
  chmod 600 rlock.toml
  run env -u RLOCK_URL RLOCK_CONFIG="$PWD/rlock.toml" "$RLOCK" run job -- printenv RLOCK_URL
  show
  [[ $status == 0 && $output == "$RLOCK_URL" ]]
  echo 'lease = ["1s", "2s"]' >rlock.toml
  run env -u RLOCK_URL RLOCK_CONFIG="$PWD/rlock.toml" "$RLOCK" run job -- true
  [[ $status == 78 && $output == *'one value'* ]]
}

@test "run --owner: a lock that was acquired before is used, left, and released on all servers" {
  local owner
  owner=$(rlock acquire --lease 30s job)
  run -0 rlock run --owner "$owner" job -- true
  [[ $(redis s1 hget job "$owner"):$(redis s2 hget job "$owner"):$(redis s3 hget job "$owner") == 1:1:1 ]]
  redis s3 del job >/dev/null # a minority may forget it
  run -0 rlock run --owner "$owner" --release job -- true
  [[ $(redis s1 exists job)$(redis s2 exists job)$(redis s3 exists job) == 000 ]]
  run -76 rlock run --owner "$owner" job -- touch ran
  [[ ! -e ran ]]
}

@test "each password is hidden, and each server has its own" {
  redis s1 config set requirepass one >/dev/null
  redis s2 config set requirepass two >/dev/null
  local urls=() i
  urls=(--url "unix://:one@$s1_sock" --url="unix://:two@$s2_sock" --url "unix://$s3_sock")
  job_start "${urls[@]}" job -- bash -c 'touch begun; until [[ -e end ]]; do sleep 0.05; done'
  jobs+=("$frontend")
  wait_until test -e begun
  run ! grep -aE ':(one|two)@' "/proc/$frontend/cmdline"
  touch end
  job_status
  show
  [[ $status == 0 ]]
}

@test "a password command does not run twice at a time" {
  local i
  for i in 1 2 3; do redis s$i config set requirepass secret >/dev/null; done
  cat >password <<'SCRIPT'
mkdir running || echo beside >>trouble
sleep 0.1
rmdir running
echo once >>times
echo secret
SCRIPT
  run rlock --password-command 'bash ./password' run job -- true
  show
  [[ $status == 0 && ! -e trouble ]]
  for i in 1 2 3; do [[ $(redis-cli -s "$s1_sock" -a secret --no-auth-warning exists job) == 0 ]]; done
}

@test "servers that may evict locks are refused, unless the user accepts the risk" {
  on_servers config set maxmemory 100mb >/dev/null
  on_servers config set maxmemory-policy allkeys-lru >/dev/null
  run --separate-stderr rlock run job -- touch ran
  show
  [[ $status == 78 && ! -e ran && $stderr == *allow-unsafe-eviction* && $(held_on job) == 0 ]]
  rlock run --allow-unsafe-eviction job -- touch ran
  [[ -e ran ]]
}

@test "doctor checks each server, and the quorum" {
  run rlock doctor
  show
  [[ $output == *"$(redis_url s1)"* && $output == *"$(redis_url s3)"* && $output == *'3 independent servers'* ]]
}

@test "an unreachable minority is a warning of doctor, a line of status, and a metric; a majority is a failure" {
  local missing=${RLOCK_URL##* }
  rlock acquire job --lease 60s >owner
  run -0 rlock status --prometheus
  [[ $output == *"rlock_server_up{server=\"$missing\"} 1"* ]]
  redis_stop s3
  run -1 rlock doctor
  show
  [[ $output == *'warn  connection'*'a majority answers'* && $output != *$'\n'fail* ]]
  run --separate-stderr rlock status -v
  show
  [[ $status == 0 && $stderr == *"$missing"*'the other servers of the quorum have answered'* ]]
  run --separate-stderr -0 rlock status
  [[ -z $stderr ]]
  run -0 rlock status --prometheus
  show
  [[ $output == *"rlock_server_up{server=\"$missing\"} 0"* && $output == *"rlock_server_up{server=\"${RLOCK_URL%% *}\"} 1"* ]]
  [[ $output == *'rlock_held{name="job"} 1'* ]]
  redis_stop s2
  run -78 rlock doctor
  show
  [[ $output == *'fail  connection'*'no lock is available'* ]]
}
