# Locks on a majority of independent servers.

load ../lib/quorum_file

# holder OPTION ...: a job in the background that holds `job` until the file end exists, and then exits with 3.
holder() {
  job_until end "$@" job
  jobs+=("$frontend")
}
# refused STATUS TEXT [OPTION ...]: another one is not started.
refused() { tells "$1" "$2" rlock run "${@:3}" job -- touch ran && [[ ! -e ran ]]; }
# waiter [OPTION ...]: one that waits.
waiter() {
  rlock run "$@" job -- touch ran 3>&- &
  waiter=$!
  jobs+=("$waiter")
}
listens() { [[ $(listeners_on s1 'redisson_lock__channel:{job}') -gt 0 ]]; }
is_on() { [[ $(held_on "${2:-job}") == "$1" ]]; }
# acquire_at SERVER [OPTION ...]: only there; prints the owner.
acquire_at() { RLOCK_URL=$(redis_url "$1") rlock acquire job --lease 10m "${@:2}"; }
calls() { redis "$1" info commandstats | awk -F'[=,]' '/^cmdstat_eval/ { sum += $2 } END { print sum + 0 }'; }
asked() { (($(calls "$1") >= $2)); }
# young_start NAME: a server that was just started.
young_start() { redis_start "$1" && accept_epoch "$1"; }

# first_lock PYTHON: checks the first lock of the list in $output.
first_lock() { python3 -c "import json, sys; lock = json.loads(sys.argv[1])[0]; $1" "$output"; }

@test "the lock is taken and released on each server, also by a nested job and of several names, of which all are taken or none" {
  local look='for s in "$s1_sock" "$s2_sock" "$s3_sock"; do redis-cli -s "$s" exists job other; done'
  run -0 --separate-stderr rlock run job -- bash -c 'echo "$RLOCK_URL"; "$RLOCK" run job -- true; '"$look"
  [[ $output == "$RLOCK_URL"$'\n'1$'\n'1$'\n'1 && -z $stderr ]]
  is_on 0
  run -0 rlock run other job -- bash -c "$look"
  [[ $output == 2$'\n'2$'\n'2 ]]
  assert_clean s1 && assert_clean s2 && assert_clean s3
  rlock acquire job --lease 60s >owner
  run -75 rlock run -n another job -- touch ran
  [[ ! -e ran ]] && is_on 0 another
  run -75 rlock run -n job z -- touch ran
  [[ ! -e ran ]] && is_on 0 z
}

@test "several names, each of which has another majority, are all taken and renewed" {
  acquire_at s1
  RLOCK_URL=$(redis_url s3) rlock acquire other --lease 60s
  run -0 --separate-stderr rlock run --lease 3s job other -- bash -c 'for name in job other; do
      redis-cli -s "$0" pexpire $name 2500 >/dev/null
      until (($(redis-cli -s "$0" pttl $name) > 2500)); do sleep 0.1; done
    done; echo ran' "$s2_sock"
  [[ $output == ran && $stderr != *majority* ]]
}

@test "while one job has it, another one is refused or waits" {
  holder
  refused 75 'not acquired: held by' -n
  waiter -w 60s
  wait_until listens
  [[ ! -e ran ]]
  let_end end "$waiter"
  [[ -e ran ]]
}

@test "a majority is enough; on a terminal, one line says which server is missing, but not in cron's mail" {
  redis_stop s3
  run -0 --separate-stderr rlock run job -- true
  [[ -z $stderr ]]
  rlock acquire job --lease 60s >owner 2>acquire.err
  rlock release job --owner "$(cat owner)"
  [[ ! -s acquire.err ]]
  run -0 --separate-stderr rlock run -v job -- true
  [[ $(grep -c 'a majority of the servers grants the lock, without' <<<"$stderr") == 1 ]]
  [[ $stderr == *"grants the lock, without ${RLOCK_URL##* }"* ]]
  run -0 python3 "$TESTS_DIR/lib/terminal.py" never never "$RLOCK" run job -- true
  [[ $output == *'warning: job: a majority of the servers grants the lock, without'*"${RLOCK_URL##* }"* ]]
  [[ $(grep -c . <<<"$output") == 1 ]]
}

@test "everybody is warned of a server that fails during the job, if a bare majority is left, but not if more is left" {
  aged_start s4
  aged_start s5
  RLOCK_URL+=" $(redis_url s4) $(redis_url s5)"
  holder -v --lease 6s
  redis_stop s4
  wait_until said 'a majority of the servers keeps the lock, without'
  job_finish end 3
  [[ $stderr != *warning* ]]
  rm end begun
  holder --lease 6s
  redis_stop s5
  wait_until said 'a majority of the servers keeps the lock, without'
  job_finish end 3
  [[ $stderr == *"$(redis_url s5)"* && $stderr != *"$(redis_url s4)"* ]]
}

@test "servers that refuse the request have answered" {
  on_servers acl setuser default -eval -evalsha >/dev/null
  run -77 --separate-stderr rlock run job -- touch ran
  [[ ! -e ran && $stderr == *'only 0 of 3 servers carried out the request; '*NOPERM* ]]
  quorum_stop
}

@test "a minority is not enough: 69, and nothing runs; one that hangs delays nobody" {
  redis_freeze s3
  rlock run --lease 60s job -- true
  redis_freeze s2
  refused 69 '' --lease 5s
  redis_stop s2
  redis_stop s3
  refused 69 'only 1 of 3 servers carried out the request'
  [[ $(redis s1 exists job) == 0 ]] # given back
  refused 69 '; still waiting' -w 300ms
}

@test "a server that was started less than a lease ago has no vote" {
  redis_stop s2
  young_start s2
  run -0 --separate-stderr rlock run -v --lease 5s job -- true
  [[ $stderr == *"$(redis_url s2)"*'started less than a lease ago'* ]]
  redis_stop s3
  young_start s3
  refused 69 'only 1 of 3 servers may vote' --lease 30s
  is_on 0
  # It has one once it is old enough.
  rlock run -w 60s --lease 2s job -- true
}

# Why the rule exists: s1 and s2 grant the lock to the holder, s2 is restarted empty, and s2 and s3 would be a majority.
# The scripts alone would grant it, because both are free.
# forgotten_by_s2 SECONDS COMMAND...: s2 has run for so long; the command takes the lock.
forgotten_by_s2() {
  redis_stop s3
  "${@:2}"
  aged_start s3
  redis_kill9 s2
  AGED_SECONDS=$1 aged_start s2
  [[ $(redis s1 exists job) == 1 && $(redis s2 exists job) == 0 && $(redis s3 exists job) == 0 ]]
  refused 75 '' -n
  redis_stop s2
  AGED_SECONDS=150 aged_start s2 # the same server, had it not been restarted
  rlock run -n job -- touch ran
}

@test "a lock that a restarted server has forgotten is not granted again" { forgotten_by_s2 0 rlock acquire job --lease 60s; }
# Old enough for the default lease of 30 s.
@test "a restarted server also waits for another holder's longer lease" { forgotten_by_s2 40 rlock acquire job --lease 100s; }
@test "and for the time for which a holder keeps the lock" { forgotten_by_s2 40 rlock run --min-hold 100s job -- true; }

@test "a waiter knows that a server was restarted, regardless of what the server says" {
  redis_stop s3
  holder --lease 10m
  aged_start s3
  before=$(calls s2)
  waiter -q -w 10m --lease 10m
  wait_until asked s3 2
  wait_until asked s2 $((before + 2)) # it has read the answer to the first one
  redis_kill9 s2
  aged_start s2
  wait_until asked s2 6
  [[ ! -e ran ]]
}

# The requests that it sends to s3 while that hangs are executed later.
@test "a late grant is given back when the server answers again" {
  rlock run job -- true
  acquire_at s1
  redis_freeze s3
  redis s2 config resetstat
  waiter -q -w 10m --lease 10m
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

@test "a hold that is put back has its token there, too; without a majority it is lost" {
  on_servers set 'redisson_lock_token:{job}' 4000000000000000 >/dev/null
  holder --lease 6s
  token=$(redis s1 get 'redisson_lock_token:{job}')
  has_it() { [[ $(redis "$1" get 'redisson_lock_token:{job}') == "$token" ]]; }
  for name in s2 s1; do
    redis $name flushall >/dev/null
    wait_until has_it $name
    is_on 3
  done
  redis s1 flushall >/dev/null
  redis s3 flushall >/dev/null
  job_status 74 'it is no longer held'
  is_on 0
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
  (($(rlock run job -- printenv RLOCK_TOKEN) > token))
}

@test "readers are put back beside each other; a job under an ancestor's daemon is put back, too" {
  holder -s --lease 5s
  RLOCK_HELD='00000000-0000-4000-8000-000000000000:1 job' "$RLOCK" run -s --lease 5s job -- \
    bash -c 'until [[ -e end ]]; do sleep 0.1; done' 3>&- 2>second.err &
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
  wait_until is_on 3
  redis_kill9 s2
  wait_until eval '[[ $(redis s1 pttl job) -gt 4000 ]]'
  job_finish end 3
}

@test "a majority that hangs stops the command before the lease ends" {
  holder --lease 5s
  redis_freeze s1
  redis_freeze s2
  job_status 74 'the lock could not be renewed in time'
}

@test "acquire, renew, status and release work on a quorum" {
  owner=$(rlock acquire job --lease 60s)
  is_on 3
  rlock renew job --owner "$owner"
  redis s3 del job >/dev/null
  rlock status --is-held job
  run rlock status job
  [[ $output == *"$owner"* && $output == *'servers '* && $output == *"$(redis_url s3)  free"* ]]
  run rlock status --json job
  first_lock 'assert lock["state"] == "held" and len(lock["servers"]) == 3 and lock["servers"][2]["state"] == "free"'
  rlock release job --owner "$owner"
  is_on 0
  run -76 rlock release job --owner "$owner"
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
  is_on 3
  [[ $(redis s3 hget 'rlock:holder:{job}' reason) == "$(redis s1 hget 'rlock:holder:{job}' reason)" ]]
  token=$(redis s3 get 'redisson_lock_token:{job}')
  ((token >= $(redis s1 get 'redisson_lock_token:{job}') && token >= $(redis s2 get 'redisson_lock_token:{job}')))
  (($(redis s3 pttl job) > 50000))
  [[ $(redis s3 exists 'rlock:hold:{job}:due') == "$(redis s1 exists 'rlock:hold:{job}:due')" ]]
  # The others may leave now.
  redis_stop s1
  rlock renew job --owner "$owner"
  refused 75 '' -n "$@"
  rlock release job --owner "$owner"
  is_on 0
  aged_start s1
  on_servers flushall >/dev/null
  rlock doctor --accept-epoch --yes >/dev/null 2>&1
}

@test "rlock renew puts a lost hold back, of each kind, but not on a server that was started less than a lease ago" {
  put_back_by_renew
  put_back_by_renew --history -x
  put_back_by_renew --protocol set
  one=$(rlock acquire -s --lease 60s job)
  for _ in {1..101}; do two=$(rlock acquire -s --lease 60s job); done
  redis s3 flushall >/dev/null
  for owner in "$one" "$two"; do rlock renew job --owner "$owner"; done
  [[ $(redis s3 hlen job) == 3 ]]
  rlock run --owner "$two" job -- true
  tells 75 'only the first 100 of 102 holders' rlock force-unlock --yes --now job
  on_servers del job >/dev/null
  owner=$(rlock acquire --lease 60s job)
  redis_stop s3
  redis_start s3
  rlock renew job --owner "$owner"
  is_on 2
}

@test "status distinguishes a contested lock from a held one, and a server that hangs; what was granted is given back" {
  acquire_at s1 >one
  run rlock status job
  [[ $output == *'state     free'* ]]
  acquire_at s2 >two
  run rlock status job
  [[ $output == *'state     contested'* && $output == *"$(cat one)"* && $output == *"$(cat two)"* ]]
  run -1 rlock status --is-held job
  refused 75 'contested: others hold it on 2 of 3 servers, and no one on a majority' -n
  [[ $(redis s3 exists job) == 0 ]]
  redis_freeze s3
  run rlock status --json
  first_lock 'assert lock["state"] == "contested" and lock["servers"][2]["error"]'
}

@test "a contested lock, and a server that hangs: its time to answer is not waited for eight times" {
  rlock run job -- true # the servers know the scripts
  acquire_at s1 >one
  before=$(calls s2)
  redis_freeze s3
  run -75 --separate-stderr rlock --server-timeout 1s run -n job -- touch ran
  # Nobody else asks for it; only the server without an answer is missing.
  [[ ! -e ran && $stderr == *'contested: others hold it on 1 of 3 servers, and no one on a majority; '*"${RLOCK_URL##* }"* ]]
  (($(calls s2) - before < 8)) # two for an attempt
}

@test "status: a server that hangs is waited for once, not for each thing that is looked up" {
  redis_freeze s3
  # The first look takes 2 s at most, each other one could take ten minutes.
  tells 0 'no answer in time' rlock status --server-timeout 10m job
  run -0 rlock status --server-timeout 1500ms --prometheus
  [[ $output == *rlock_* ]]
}

@test "--once-per: if no majority answers the first look, the next one asks all servers again" {
  redis_freeze s2
  redis_freeze s3
  job_start -w 9s --server-timeout 1500ms --once-per day job -- echo ran
  let_pass 3000
  redis_thaw s2
  redis_thaw s3
  job_status 0
  [[ $output == ran ]]
}

@test "ten newcomers that do not wait: at least one gets the lock" {
  for i in {1..10}; do
    rlock run -q -n job -- bash -c 'echo got >>got; until [[ -e end ]]; do sleep 0.1; done' 3>&- &
    jobs+=($!)
  done
  wait_until test -s got
  [[ $(wc -l <got) == 1 ]]
}

@test "force-unlock and requests to stop reach the holder through any server" {
  holder
  redis_stop s1
  rlock force-unlock --yes job
  job_status 74 'asked to give up the lock'
  is_on 0
}

# hdel SIGN SERVER ...: from now on they allow (+) or refuse (-) a command that force-unlock needs.
hdel() { for server in "${@:2}"; do redis "$server" acl setuser default "$1hdel" >/dev/null; done; }

@test "force-unlock: no renewal puts the lock back on a server that has taken it away, even if a majority has refused" {
  owner=$(rlock acquire job --lease 60s)
  hdel - s2 s3
  tells 77 'only 1 of 3 servers carried out the request; ' rlock force-unlock --yes --now job
  assert_says '; until a majority takes the lock away, it may still be held: try again'
  hdel + s2 s3
  rlock renew job --owner "$owner"
  is_on 2
  hdel - s3
  tells 0 "a majority of the servers has taken the lock away, without $(redis_url s3): the server answered: " \
    rlock force-unlock --yes --now job
  assert_says '; there it ends with its lease'
  hdel + s3
  tells 76 'has taken it away' rlock renew job --owner "$owner"
}

# slow_s3 WORDS: the replies of s3 to commands with these words are delayed by 400 ms.
slow_s3() {
  PROXY_DELAY="$1:0.4" python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$s3_sock" "$PWD/passed" 3>&- &
  proxy_pid=$!
  wait_until test -S p
  RLOCK_URL="$(redis_url s1) $(redis_url s2) unix://$PWD/p"
}

@test "a slow server decides if the others disagree: renewed, and released" {
  owner=$(rlock acquire job --lease 60s)
  redis s1 del job >/dev/null
  slow_s3 'rlock re'
  rlock renew job --owner "$owner"
  rlock status --is-held job
  # The renewal has put it back.
  redis s1 del job >/dev/null
  rlock release job --owner "$owner"
  is_on 0
}

# It also has to be sent the script, which takes two messages.
@test "a slow server gets the release, even after a majority has answered, and the force-unlock" {
  owner=$(rlock acquire job --lease 60s)
  slow_s3 'rlock '
  redis s3 script flush >/dev/null
  rlock release job --owner "$owner"
  is_on 0
  redis s3 script flush >/dev/null
  rlock run job -- true
  is_on 0
  rlock acquire job --lease 60s >owner
  redis s3 script flush >/dev/null
  rlock force-unlock --yes --now job
  is_on 0
}

# A round that waited for the server that hangs would be over after the wait.
@test "--supersede asks during the wait, even if a server hangs" {
  holder
  wait_until eval '[[ $(listeners_on s1 "rlock:control:{job}") -gt 0 && $(listeners_on s2 "rlock:control:{job}") -gt 0 ]]'
  redis_freeze s3
  rlock run -w 1900ms --supersede job -- touch ran
  redis_thaw s3
  job_status 74
}

@test "readers share, writers do not; --min-hold and a keeper keep the lock on the servers" {
  sleep 600 3>&- &
  jobs+=($!)
  rlock acquire job --for-pid $! >owner
  is_on 3
  kill "${jobs[0]}"
  wait_until is_on 0
  owner=$(rlock acquire -s job --lease 20s)
  rlock run -n -s job -- true
  refused 75 '' -n -x
  rlock release job --owner "$owner"
  rlock run --min-hold 60s job -- true
  is_on 3
  refused 75 '' -n
}

@test "Ctrl-C during a round ends it and gives back" {
  redis_freeze s2
  redis_freeze s3
  env --default-signal=INT "$RLOCK" run -w 10m --lease 60s job -- true 3>&- &
  local waiter=$!
  jobs+=("$waiter")
  on_s1() { [[ $(redis s1 exists job) == "$1" ]]; }
  wait_until on_s1 1
  kill_off -INT "$waiter"
  redis_thaw s2
  redis_thaw s3
  wait_until on_s1 0
}

@test "two addresses of one server, and a replica, are refused" {
  port=$(redis_free_port)
  redis s1 config set port "$port" >/dev/null || skip 'the server takes no port later'
  RLOCK_URL="$(redis_url s1) redis://127.0.0.1:$port $(redis_url s2)" refused 78 'are the same server'
  redis s3 replicaof 127.0.0.1 "$port" >/dev/null
  refused 78 replica
  [[ $(redis s1 exists job) == 0 && $(redis s2 exists job) == 0 ]]
  quorum_stop
}

@test "a configuration file has the addresses as a list" {
  (umask 077 && printf 'url = ["%s"]\n' "${RLOCK_URL// /\", \"}" >rlock.toml)
  prints "$RLOCK_URL" env -u RLOCK_URL RLOCK_CONFIG="$PWD/rlock.toml" "$RLOCK" run job -- printenv RLOCK_URL
  echo 'lease = ["1s", "2s"]' >rlock.toml
  tells 78 'one value' env -u RLOCK_URL RLOCK_CONFIG="$PWD/rlock.toml" "$RLOCK" run job -- true
}

@test "run --owner: a lock that was acquired before is used, left, and released on all servers" {
  owner=$(rlock acquire --lease 30s job)
  rlock run --owner "$owner" job -- true
  [[ $(on_servers hget job "$owner" | xargs) == '1 1 1' ]]
  redis s3 del job >/dev/null # a minority may forget it
  rlock run --owner "$owner" --release job -- true
  is_on 0
  refused 76 '' --owner "$owner"
}

@test "each password is hidden, and each server has its own" {
  redis s1 config set requirepass one >/dev/null
  redis s2 config set requirepass two >/dev/null
  holder --url "unix://:one@$s1_sock" --url="unix://:two@$s2_sock" --url "unix://$s3_sock"
  run ! grep -aE ':(one|two)@' "/proc/$frontend/cmdline"
  job_finish end 3
  quorum_stop
}

@test "a password command does not run twice at a time" {
  on_servers config set requirepass secret >/dev/null
  cat >password <<'SCRIPT'
mkdir running || echo beside >>trouble
sleep 0.1
rmdir running
echo once >>times
echo secret
SCRIPT
  rlock --password-command 'bash ./password' run job -- true
  [[ ! -e trouble ]]
  REDISCLI_AUTH=secret is_on 0
  quorum_stop
}

@test "servers that may evict locks are refused, unless the user accepts the risk" {
  on_servers config set maxmemory 100mb >/dev/null
  on_servers config set maxmemory-policy allkeys-lru >/dev/null
  refused 78 allow-unsafe-eviction
  is_on 0
  rlock run --allow-unsafe-eviction job -- touch ran
  [[ -e ran ]]
  quorum_stop
}

@test "an unreachable minority is a warning of doctor, a line of status, and a metric; a majority is a failure" {
  local missing=${RLOCK_URL##* }
  run rlock doctor
  [[ $output == *"$(redis_url s1)"* && $output == *"$(redis_url s3)"* && $output == *'3 independent servers'* ]]
  rlock acquire job --lease 60s >owner
  run -0 rlock status --prometheus
  [[ $output == *"rlock_server_up{server=\"$missing\"} 1"* ]]
  redis_stop s3
  run -1 rlock doctor
  [[ $output == *'warn  connection'*'a majority answers'* && $output != *$'\n'fail* ]]
  run -0 --separate-stderr rlock status -v
  [[ $stderr == *"$missing"*'the other servers of the quorum have answered'* ]]
  run -0 --separate-stderr rlock status
  [[ -z $stderr ]]
  run -0 rlock status --prometheus
  [[ $output == *"rlock_server_up{server=\"$missing\"} 0"* && $output == *"rlock_server_up{server=\"${RLOCK_URL%% *}\"} 1"* ]]
  [[ $output == *'rlock_held{name="job"} 1'* ]]
  redis_stop s2
  run -78 rlock doctor
  [[ $output == *'fail  connection'*'no lock is available'* ]]
}
