#!/usr/bin/env bats
# rlock run ends exactly as its command: every status, every deadly signal.

load ../lib/common
load ../lib/server

@test "all of 0 to 255 pass through" {
  local number got
  for ((number = 0; number < 256; ++number)); do
    got=0
    rlock run x -- sh -c "exit $number" 3>&- || got=$?
    ((got == number)) || {
      echo "$got instead of $number"
      return 1
    }
  done
}

# dies_of SIG: rlock run is seen to die of it like the command alone, without a core file of its own.
dies_of() {
  run -0 python3 - "$1" <<'PYTHON'
import os, signal, subprocess, sys
name = sys.argv[1]
number = getattr(signal, "SIG" + name)
# The program that started the tests may ignore some signals, which is inherited.
for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try:
        signal.signal(each, signal.SIG_DFL)
    except OSError:
        pass
# The command may leave no core file, so one that appears is rlock's.
command = ["sh", "-c", "ulimit -S -c 0; kill -s %s $$" % name]
alone = subprocess.run(command).returncode
child = subprocess.Popen(["sh", "-c", 'ulimit -S -c unlimited 2>/dev/null; exec "$RLOCK" run x -- "$@"', "sh"] + command)
_, status = os.waitpid(child.pid, 0)
print(alone, status)
assert alone == -number
assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
assert not os.WCOREDUMP(status)
PYTHON
  [[ -z $(find . -name 'core*') ]]
}

@test "death by HUP" { dies_of HUP; }
@test "death by INT" { dies_of INT; }
@test "death by QUIT" { dies_of QUIT; }
@test "death by KILL" { dies_of KILL; }
@test "death by TERM" { dies_of TERM; }
@test "death by SEGV" { dies_of SEGV; }
@test "death by ABRT" { dies_of ABRT; }
@test "death by USR1" { dies_of USR1; }
@test "death by PIPE" { dies_of PIPE; }
@test "death by ALRM" { dies_of ALRM; }
@test "death by a realtime signal" { dies_of RTMIN; }

@test "a job that was stopped and continued ends by its own status" {
  "$RLOCK" run x -- sh -c 'kill -s STOP $$; exit 5' 3>&- &
  local frontend=$! monitor command got=0
  stopped() {
    monitor=$(monitor_of "$frontend") && command=$(pgrep -P "$monitor") && in_state "$command" T
  }
  wait_until stopped
  kill -s CONT "$frontend" "$command"
  wait "$frontend" || got=$?
  ((got == 5))
}
