# rlock run ends exactly as its command: every status, every deadly signal.

load ../lib/server

@test "the statuses from 0 to 255 pass through" {
  for number in 0 1 {64..78} {124..130} 143 255; do
    got=0
    rlock run x -- sh -c "exit $number" 3>&- || got=$?
    ((got == number)) || {
      echo "$got instead of $number"
      return 1
    }
  done
}

@test "rlock run is seen to die of each deadly signal like the command alone, without a core file of its own" {
  run -0 python3 - HUP INT QUIT KILL TERM SEGV ABRT USR1 PIPE ALRM RTMIN <<'PYTHON'
import os, signal, subprocess, sys
# The program that started the tests may ignore some signals, which is inherited.
for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
    try:
        signal.signal(each, signal.SIG_DFL)
    except OSError:
        pass
for name in sys.argv[1:]:
    number = getattr(signal, "SIG" + name)
    # The command may leave no core file, so one that appears is rlock's.
    command = ["sh", "-c", "ulimit -S -c 0; kill -s %s $$" % name]
    alone = subprocess.run(command).returncode
    child = subprocess.Popen(["sh", "-c", 'ulimit -S -c unlimited 2>/dev/null; exec "$RLOCK" run x -- "$@"', "sh"] + command)
    _, status = os.waitpid(child.pid, 0)
    print(name, alone, status)
    assert alone == -number
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number
    assert not os.WCOREDUMP(status)
PYTHON
  [[ -z $(find . -name 'core*') ]]
}
