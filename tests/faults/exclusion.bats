# Never two at once: the one purpose of a lock.

load ../lib/common
load ../lib/job
load ../lib/server

# workers COUNT JOBS: COUNT workers, which start JOBS jobs in all, each with its number as an argument.
workers() {
  local worker pids=()
  for ((worker = 0; worker < $1; worker++)); do
    (for ((job = worker; job < $2; job += $1)); do run_job "$job"; done) 3>&- &
    pids+=($!)
  done
  local status=0
  for worker in "${pids[@]}"; do wait "$worker" || status=1; done
  return $status
}

@test "two hundred jobs by eight workers, each adding one to a file, make two hundred" {
  echo 0 >counter
  run_job() { "$RLOCK" run count -- bash -c 'read -r n <counter; echo $((n + 1)) >counter'; }
  workers 8 200
  [[ $(cat counter) == 200 ]]
}

@test "the next test's checker notices two jobs that run at once" {
  printf 'begin a 1\nend a 2\nbegin b 3\nbegin c 4\nend c 5\n' >log
  run -0 python3 "$TESTS_DIR/lib/overlap.py" log
  printf 'begin a 1\nbegin b 2\nend a 3\nend b 4\n' >log
  run -1 python3 "$TESTS_DIR/lib/overlap.py" log
}

@test "two hundred jobs, a random tenth killed with -9: never two at once" {
  local seed=${SEED:-$RANDOM}
  echo "SEED=$seed"
  # What is killed is random, too: the job, or its rlock's frontend.
  python3 - "$seed" >fates <<'PYTHON'
import random, sys
random.seed(int(sys.argv[1]))
fates = ["live"] * 180 + ["kill-command"] * 10 + ["kill-frontend"] * 10
random.shuffle(fates)
print("\n".join(fates))
PYTHON
  cat >job.sh <<'JOB'
echo "begin $1 $EPOCHREALTIME" >>log
read -r n <counter
case $2 in
  kill-command) kill -9 $$ ;;
  # The frontend is the parent of the monitor, which is our parent. Any line that we write after that is an error.
  kill-frontend) kill -9 "$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$PPID/status")"; sleep 5 ;;
esac
sleep 0.00$((RANDOM % 9))
echo $((n + 1)) >counter
echo "end $1 $EPOCHREALTIME" >>log
JOB
  echo 0 >counter
  mapfile -t fates <fates
  run_job() { "$RLOCK" run -k 100ms count -- bash job.sh "$1" "${fates[$1]}" 2>>errors || true; }
  workers 8 200
  run -0 python3 "$TESTS_DIR/lib/overlap.py" log
  echo "$output"
  [[ $output == '200 jobs, 0 overlaps' ]]
  [[ $(grep -c ^end log) == 180 && $(cat counter) == 180 ]]
}

@test "a job three times as long as its lease keeps its lock, with renewals about every third of it; the next one starts after it" {
  redis srv monitor >monitor 3>&- &
  local watcher=$!
  wait_until grep -q OK monitor
  job_start --lease 6s count -- bash -c 'echo "begin a $EPOCHREALTIME" >>log; sleep 18; echo "end a $EPOCHREALTIME" >>log'
  wait_until test -s log
  run -0 rlock run count -- bash -c 'echo "begin b $EPOCHREALTIME" >>log; echo "end b $EPOCHREALTIME" >>log'
  job_status 0
  kill "$watcher"
  wait_until gone "$watcher"
  python3 "$TESTS_DIR/lib/overlap.py" log
  [[ $(cut -d' ' -f1,2 log | tr '\n' ' ') == 'begin a end a begin b end b ' ]]
  local renewals
  renewals=$(grep -c 'EVALSHA.*"rlock renew"' monitor)
  echo "renewals of a lease of 6s in 18s: $renewals"
  ((renewals >= 6 && renewals <= 10))
}

@test "two holders never share a token, and tokens grow in the order of the grants" {
  run_job() { "$RLOCK" run count -- sh -c 'echo "$RLOCK_TOKEN" >>tokens'; }
  workers 8 64
  [[ $(wc -l <tokens) == 64 ]]
  sort -n -u tokens | diff - tokens
}
