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

@test "two hundred jobs, a random tenth killed with -9: never two at once, and tokens grow in the order of the grants" {
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
echo "begin $1 count w ${EPOCHREALTIME/./} $RLOCK_TOKEN" >>log
read -r n <counter
case $2 in
  kill-command) kill -9 $$ ;;
  # The frontend is the parent of the monitor, which is our parent. Any line that we write after that is an error.
  kill-frontend) kill -9 "$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$PPID/status")"; sleep 5 ;;
esac
sleep 0.00$((RANDOM % 9))
echo $((n + 1)) >counter
echo "end $1 ${EPOCHREALTIME/./}" >>log
JOB
  echo 0 >counter
  mapfile -t fates <fates
  run_job() { "$RLOCK" run -k 100ms count -- bash job.sh "$1" "${fates[$1]}" 2>>errors || true; }
  workers 8 200
  run -0 python3 -B "$TESTS_DIR/proof/check.py" log
  [[ $output == '200 sections, 0 violations' ]]
  [[ $(grep -c ^end log) == 180 && $(cat counter) == 180 ]]
}

@test "a job three times as long as its lease keeps its lock, with renewals about every third of it; the next one starts after it" {
  redis srv monitor >monitor 3>&- &
  local watcher=$!
  wait_until grep -q OK monitor
  job_start --lease 6s count -- bash -c 'echo begin a >>log; sleep 18; echo end a >>log'
  wait_until test -s log
  run -0 rlock run count -- sh -c 'echo begin b >>log; echo end b >>log'
  job_status 0
  kill "$watcher"
  wait_until gone "$watcher"
  [[ $(tr '\n' ' ' <log) == 'begin a end a begin b end b ' ]]
  local renewals
  renewals=$(grep -c 'EVALSHA.*"rlock renew"' monitor)
  echo "renewals of a lease of 6s in 18s: $renewals"
  ((renewals >= 6 && renewals <= 10))
}
