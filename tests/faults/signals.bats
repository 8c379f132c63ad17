# Signals, descriptors and pipes: the command gets them as it would without rlock.

load ../lib/job
load ../lib/server

every_signal() {
  run -0 python3 "$TESTS_DIR/faults/signals.py" --rlock "$(realpath "$RLOCK")" --server "$srv_pid" "$1"
  echo "# ${lines[-1]}" >&3
}

@test "every catchable signal while waiting" {
  owner=$(rlock acquire job --lease 5m)
  every_signal waiting
  rlock release job --owner "$owner"
}

@test "every catchable signal while the command runs: it receives each exactly once" { every_signal running; }
@test "every catchable signal while the lock is released: the status is the command's own" { every_signal releasing; }
@test "every catchable signal that was ignored at the start stays so" { every_signal ignored; }

# For `senders`, which needs the folder of a test.
counter() {
  cc -O1 -Wall -Werror -o counter "$TESTS_DIR/lib/counter.c"
  senders=(python3 "$TESTS_DIR/faults/senders.py" --rlock "$(realpath "$RLOCK")" --counter ./counter --trials)
}

@test "whoever sends a signal, in whatever way: the command receives it once" {
  counter
  for way in process group both reverse timeout names program program_back terminal; do
    "${senders[@]}" "${TRIALS:-10}" "$way"
  done
  pid_namespaces || return 0
  for way in all all_back; do unshare -rpf --mount-proc "${senders[@]}" "${TRIALS:-10}" "$way"; done
  for way in process group both reverse; do "${senders[@]}" "${TRIALS:-10}" --isolate "$way"; done
}

@test "… even while rlock is held up at the start of the command" {
  strace -DDD -f -o /dev/null true 2>/dev/null || skip 'PROCESSES CANNOT BE TRACED HERE: strace(1) is missing or not allowed'
  counter
  for way in process program terminal; do "${senders[@]}" 2 --slow "$way"; done
}

@test "a witness that was killed is replaced" {
  local senders job
  counter
  set -m
  "$RLOCK" run job -- ./counter >out 3>&- &
  job=$!
  set +m
  witness() { pgrep -P "$job" -x rlock-witness; }
  wait_until witness
  first=$(witness)
  kill -KILL "$first"
  another() { [[ $(witness) != "$first" ]] && witness; }
  wait_until another
  kill -TERM -- "-$job"
  wait_until grep -q + out
  kill -USR1 "$job"
  wait "$job"
  [[ $(<out) == ready+=1 ]]
}

@test "the mask and the ignored signals reach the command unchanged" {
  cat >masked.py <<'PYTHON'
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM, signal.SIGRTMIN + 3])
for s in (signal.SIGINT, signal.SIGCHLD, signal.SIGXFSZ): signal.signal(s, signal.SIG_IGN)
os.execvp(sys.argv[1], sys.argv[1:])
PYTHON
  python3 masked.py grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status >without
  python3 masked.py "$RLOCK" run job -- grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status >with
  diff without with
  pid_namespaces || return 0
  python3 masked.py "$RLOCK" run --isolate job -- grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status >with
  diff without with
}

# Prints what each descriptor is, except for the one that reads the folder.
own_descriptors='for fd in /proc/self/fd/*; do n=${fd##*/}; [[ -e $fd ]] && echo "$n $(readlink "/proc/$$/fd/$n")"; done | grep -v "/proc/"'

@test "the command has the descriptors that rlock was given, and no others" {
  exec 7<"$TESTS_DIR/lib/common.bash" 9>>nine
  bash -c "$own_descriptors" >without 2>/dev/null 3>&- </dev/null
  "$RLOCK" run job -- bash -c "$own_descriptors" >with 2>/dev/null 3>&- </dev/null
  exec 7<&- 9>&-
  grep -q '^7 .*common.bash' with
  diff <(sed 's/with\(out\)*$//; s/pipe:.*//' without) <(sed 's/with\(out\)*$//; s/pipe:.*//' with)
}

@test "a pipe ends when the command closes it, while rlock still runs" {
  mkfifo pipe
  "$RLOCK" run job -- bash -c "exec >&-; until [[ -e go ]]; do sleep 0.1; done" >pipe 3>&- &
  local job=$!
  timeout 10 cat pipe # ends: the guards have let go of it
  let_end go "$job"
  rm go
  "$RLOCK" run job -- bash -c "exec 5>&-; until [[ -e go ]]; do sleep 0.1; done" 5>pipe 3>&- &
  job=$!
  timeout 10 cat pipe
  let_end go "$job"
}

@test "standard input comes from a pipe, and a reader that ends early ends the command by SIGPIPE" {
  prints 1000 bash -c 'seq 1000 | "$RLOCK" run job -- wc -l'
  prints $'y\n141 0' bash -c '"$RLOCK" run job -- yes 2>err | head -n 1; echo "${PIPESTATUS[*]}"'
  [[ ! -s err ]]
  prints text bash -c '"$RLOCK" run a -- echo text | "$RLOCK" run job -- cat'
}

@test "guards keep no folder busy" {
  mkdir folder
  cd folder
  "$RLOCK" run job -- bash -c "cd ..; touch up; until [[ -e go ]]; do sleep 0.1; done" 3>&- &
  frontend=$!
  cd ..
  wait_until test -e up
  job_parts
  [[ $(readlink "/proc/$frontend/cwd") == / && $(readlink "/proc/$monitor/cwd") == / ]]
  let_end go "$frontend"
}
