# --status-fd: what happens to a job, as JSON lines.

load ../lib/server
load ../lib/job

# events FILE EXPRESSION: true of the list `e` of the file's objects.
events() {
  python3 -c 'import json, sys
e = [json.loads(line) for line in open(sys.argv[1])]
assert all(x["name"] == "job" and "time" in x for x in e), e
assert e[-1]["event"] == "exit" and sum(x["event"] == "exit" for x in e) == 1, e
assert eval(sys.argv[2]), e' "$1" "$2"
}

@test "acquired, released, exit; with --min-hold released with the remaining time" {
  "$RLOCK" run --status-fd 7 job -- sh -c 'echo "$RLOCK_OWNER $RLOCK_TOKEN"; exit 3' 7>log >out && return 1
  read -r owner token <out
  events log "[x['event'] for x in e] == ['acquired', 'released', 'exit']"
  events log "e[0]['owner'] == '$owner' and e[0]['token'] == '$token' and e[0]['lease_ms'] == 30000 and e[0]['waited_ms'] >= 0"
  events log "e[1]['free_in_ms'] == 0 and e[2]['status'] == 3 and e[2]['result'] == 'exited' and 'signal' not in e[2]"
  "$RLOCK" run --status-fd 7 --min-hold 1s job -- true 7>log
  events log "e[1]['event'] == 'released' and 0 < e[1]['free_in_ms'] <= 1000"
  run -0 rlock run -w 1m job -- true
}

@test "a reader that is stuck is waited for once, not for each of many locks" {
  mapfile -t names < <(seq -f 'job%g' 40)
  # A tenth of a second for each would be twice the lease.
  run -0 --separate-stderr stuck 7 "$RLOCK" run --status-fd 7 --lease 2s "${names[@]}" -- echo fine
  [[ $output == fine && $stderr == *'--status-fd: a line could not be written'* ]]
}

@test "waiting names the holder, once; the wait is interrupted" {
  owner=$(rlock acquire job --lease 1m --reason because)
  run -75 rlock run --wait 300ms --status-fd 1 job -- true
  echo "$output" | grep '^{' >log
  events log "[x['event'] for x in e] == ['waiting', 'exit'] and e[1]['result'] == 'not-acquired' and e[1]['status'] == 75"
  events log "e[0]['holder']['owner'] == '$owner' and e[0]['holder']['reason'] == 'because'"
  "$RLOCK" run --status-fd 7 job -- true 7>stopped 3>&- &
  frontend=$!
  wait_until grep -q waiting stopped
  end_mine_wholly "$frontend"
  events stopped "e[-1]['result'] == 'signalled' and e[-1]['signal'] == 15"
  rlock release job --owner "$owner"
}

@test "wanted, and --on-wanted: whenever another waiter is the first; a hook that fails or hangs delays nothing" {
  local hook='echo $$ >pid; echo "$RLOCK_WANTED_NAME: $RLOCK_WANTED_BY" >>wanted; [ ! -e hang ] || sleep 1000; exit 3'
  job_until end --status-fd 7 --hook-timeout 10m --on-wanted "$hook" job 7>lines
  called() { [[ $(sed 's/^job: .*@.* pid //' wanted | xargs) == "$*" ]]; }
  join_line job a
  wait_until called "$waiter_a"
  join_line job b
  join_line job c --priority 1
  wait_until called "$waiter_a $waiter_c"
  touch hang
  kill -TERM "$waiter_c"
  wait_until called "$waiter_a $waiter_c $waiter_a"
  job_finish end 3 '--on-wanted hook exited with 3'
  wait_until gone "$(<pid)"
  wait "$waiter_a" "$waiter_b"
  events lines "[x['event'] for x in e] == ['acquired', 'wanted', 'wanted', 'wanted', 'released', 'exit']"
  events lines "[x['pid'] for x in e[1:4]] == [$waiter_a, $waiter_c, $waiter_a] and e[1]['since'] <= e[1]['time']"
}

@test "wanted: of each kind of lock" {
  local kind i=0
  # shellcheck disable=SC2086 # words
  for kind in '--shared/--exclusive' '--slots 2/--slots 2 --take 2' '--protocol set/--protocol set'; do
    rm -f begun
    job_until end$((i += 1)) --status-fd 7 ${kind%/*} "job$i" 7>lines
    join_line "job$i" a ${kind#*/}
    wait_until grep -q "\"event\":\"wanted\".*\"pid\":$waiter_a," lines
    touch end$i
    job_status 3
  done
  all_done
}

@test "lost, but then not released" {
  "$RLOCK" run --status-fd 7 --lease 6s job -- sh -c "redis-cli -s $srv_sock flushall; exec sleep 1000" 7>log && return 1
  events log "[x['event'] for x in e] == ['acquired', 'lost', 'exit']"
  events log "'no longer held' in e[1]['why'] and e[2]['result'] == 'lost' and e[2]['status'] == 74"
  # The monitor dies.
  "$RLOCK" run --status-fd 7 --lease 6s job -- sleep 1000 7>log 3>&- &
  frontend=$!
  job_parts
  kill -9 "$monitor"
  wait "$frontend" || true
  events log "[x['event'] for x in e] == ['acquired', 'lost', 'exit'] and e[2]['status'] == 74"
  rlock run -w 1m job -- true
}

@test "released, if the job is refused after the grant" {
  for limit in {12..40}; do
    prlimit --nofile="$limit" "$RLOCK" run --status-fd 7 job -- true 7>log 2>err || true
    ! grep -q acquired log || break
  done
  events log "[x['event'] for x in e] == ['acquired', 'released', 'exit'] and e[2]['status'] == 71"
}

@test "all other results" {
  end_of() {
    "$RLOCK" run --status-fd 7 "${@:2}" 7>log || true
    events log "(e[-1]['result'], e[-1]['status']) == $1"
  }
  end_of "('signalled', 143)" job -- sh -c 'kill $$'
  events log "e[-1]['signal'] == 15"
  end_of "('timed-out', 124)" --max-hold 200ms job -- sleep 1000
  end_of "('not-found', 127)" job -- /no/such/program
  end_of "('not-executable', 126)" job -- /etc/passwd
  end_of "('hook-failed', 78)" --on-acquire false job -- true
  end_of "('error', 69)" --url unix:///nowhere job -- true
  events log "len(e) == 1"
}

@test "the command does not get the descriptor, but keeps its standard output; one that is closed, not writable, or not a number" {
  prints $'out\nclosed' bash -c '"$RLOCK" run --status-fd 7 job -- sh -c "echo out; { echo no >&7; } 2>/dev/null || echo closed" 7>log'
  run -0 rlock run --status-fd 1 job -- echo out
  [[ ${lines[1]} == out ]]
  tells 64 '--status-fd 7: Bad file descriptor' bash -c '"$RLOCK" run --status-fd 7 job -- touch ran 7>&-'
  tells 64 '--status-fd 7: not open for writing' bash -c '"$RLOCK" run --status-fd 7 job -- touch ran 7</dev/null'
  for bad in x -1 1.5 '' 99999999999; do
    tells 64 status-fd rlock run "--status-fd=$bad" job -- touch ran
  done
  [[ ! -e ran ]]
}

@test "a reader that is gone, or never reads, does not affect the job" {
  run -5 --separate-stderr bash -c '{ "$RLOCK" run --status-fd 7 job -- sh -c "exit 5"; echo "$?" >status; } 7>&1 >out 2>err | true; exit "$(cat status)"'
  tells 5 '--status-fd: a line could not be written' stuck 8 timeout 20 "$RLOCK" run --status-fd 8 job -- sh -c 'exit 5'
}
