# force-unlock asks the holder to stop.

load ../lib/server
load ../lib/job

setup() {
  use_server srv
  pids=$BATS_TEST_TMPDIR/pids
  touch "$pids"
}
teardown() {
  all_gone "$pids"
  redis srv del job 'rlock:holder:{job}' >/dev/null
  assert_clean srv
}

listeners() { [[ $(listeners_on srv 'rlock:control:{job}') == "$1" ]]; }
start_tree() {
  job_start "$@" job -- bash -c "$(tree "$pids")"
  wait_until lines_in "$pids" 3
}

@test "the job is stopped with 74 and told who asked, and the lock is free when its tree is dead, not before" {
  start_tree -k 1s
  "$RLOCK" force-unlock --yes job >forced 3>&- &
  local forcing=$!
  until gone "$(tail -n 1 "$pids")"; do
    [[ $(redis srv exists job) == 1 ]] || all_gone "$pids"
    nap 0.02
  done
  wait "$forcing"
  all_gone "$pids"
  [[ $(redis srv exists job) == 0 && $(<forced) == *'job: the holder has been asked to stop'*'job: released'* ]]
  job_status 74 "asked to give up the lock by $(id -un)@$(hostname) (rlock force-unlock)"
}

@test "a holder that takes longer than --wait: 75, and it keeps the lock" {
  start_tree -k 4s --lease 60s
  wait_until listeners 1
  tells 75 'still held after 500ms; to take it away at once' rlock force-unlock --yes --wait 500ms job
  [[ $(redis srv exists job) == 1 ]]
  job_status 74
}

@test "a dead holder: the lock is free when its lease has run out, and not before" {
  job_start --lease 6s job -- sleep 1000
  job_parts
  kill_guards
  wait_until gone "$command"
  began=$(now_ms) ttl=$(redis srv pttl job)
  run -0 rlock force-unlock --yes job
  (($(now_ms) - began >= ttl - 100))
  assert_says 'job: the holder does not answer; it may be stopping already; its lease ends in '
  assert_says '--now would take the lock away at once, while its command may still run'
  assert_says 'job: the holder no longer has it, because its lease has ended; its command may still run: check its host'
  [[ $output != *released* ]]
}

@test "a holder that is stopped counts as a listener, but releases nothing" {
  job_start --lease 6s job -- sleep 1000
  wait_until listeners 1
  job_parts
  freeze "$frontend"
  freeze "$monitor"
  tells 0 'job: the holder has been asked to stop; waiting for it' rlock force-unlock --yes job
  assert_says 'job: the holder no longer has it, because its lease has ended; its command may still run: check its host'
  [[ $output != *released* ]]
  kill -CONT "$monitor" "$frontend"
  job_status 74
}

@test "one dead of several holders: rlock claims no more than it knows" {
  "$RLOCK" run -s job -- sleep 1000 3>&- &
  local living=$!
  wait_until listeners 1
  job_start -s --lease 6s job -- sleep 1000
  wait_until listeners 2
  job_parts
  dead=$(rlock status --json job | python3 -c 'import json, sys
print(next(one["owner"] for one in json.load(sys.stdin)[0]["holders"] if one["pid"] == int(sys.argv[1])))' "$frontend")
  kill_guards
  wait_until gone "$command"
  tells 0 'job: the holder has been asked to stop; waiting for it' rlock force-unlock --yes --owner "$dead" job
  assert_says 'job: the holder no longer has it, because its lease has ended'
  end_mine_wholly "$living"
}

@test "messages for others, and garbage on the channel, are ignored; the text of one for the holder is escaped" {
  job_start job -- sleep 1000
  wait_until listeners 1
  owner=$(redis srv hkeys job)
  publish_on srv 'rlock:control:{job}' 'other:1'
  publish_on srv 'rlock:control:{job}' ''
  publish_on srv 'rlock:control:{job}' "${owner}x"
  publish_on srv 'rlock:control:{job}' "x$owner"
  head -c 100000 /dev/zero | tr '\0' x | publish_on srv 'rlock:control:{job}'
  listeners 1
  publish_on srv 'rlock:control:{job}' "$owner"$'\n\e[31mevil\nrlock: fake'
  job_status 74
  [[ $stderr != *$'\e'* && $stderr == *evil* && $(wc -l <<<"$stderr") == 1 ]]
}

@test "without the right to the channel a job runs, and force-unlock says what is missing" {
  redis srv acl setuser weak resetchannels on '>pw' '~*' '&redisson_lock__channel:*' +@all
  export RLOCK_PASSWORD=pw
  RLOCK_URL=unix://weak@$srv_sock
  job_start --lease 6s job -- bash -c "until [[ -e $PWD/go ]]; do sleep 0.1; done; exit 4"
  held() { [[ $(redis srv exists job) == 1 ]]; }
  wait_until held
  tells 77 channel rlock force-unlock --yes job
  held
  job_finish go 4
}

@test "without the right to the release channel a waiter says so, and gets the lock" {
  redis srv acl setuser weak resetchannels on '>pw' '~*' '&rlock:grant:*' +@all
  rlock acquire job --lease 1m >owner
  RLOCK_PASSWORD=pw RLOCK_URL=unix://weak@$srv_sock "$RLOCK" run -w 1m job -- touch ran 2>err 3>&- &
  job_pid=$!
  wait_until grep -q '; asking every 5s instead, so releases by other programs are noticed late' err
  run -0 rlock release job --owner "$(<owner)"
  wait "$job_pid"
  [[ -e ran ]]
}
