#!/usr/bin/env bats
# rlock run ends exactly as its command: every status, every deadly signal.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

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

@test "-E does not change the status of a command that ran" {
  run -75 --separate-stderr rlock run -n -E 0 x -- sh -c 'exit 75'
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

@test "a shell sees 128 plus the number" {
  run -143 bash -c '"$RLOCK" run x -- sh -c "kill -s TERM \$\$"; exit $?'
}

@test "126: not executable, a folder, or no program at all" {
  echo 'exit 0' >plain
  run -126 --separate-stderr rlock run x -- ./plain
  assert_says ./plain
  mkdir folder
  run -126 --separate-stderr rlock run x -- ./folder
  assert_says ./folder
  printf '\177ELFgarbage' >program
  chmod +x program
  local got=0
  rlock run x -- ./program 2>said || got=$?  # 127 if a shell has to interpret it
  [[ $got =~ ^12[67]$ ]]
  grep -qF ./program said
  [[ $(redis srv exists x) == 0 ]]
}

@test "127: not found, in PATH and by path, or without its interpreter" {
  run -127 --separate-stderr rlock run x -- no-such-command-here
  assert_says no-such-command-here
  run -127 --separate-stderr rlock run x -- ./none
  assert_says ./none
  printf '#!/nonexistent/interpreter\n' >script
  chmod +x script
  run -127 --separate-stderr rlock run x -- ./script
  assert_says ./script
  [[ $(redis srv exists x) == 0 ]]
}

@test "a script without a #! line is run as a shell does, or refused as not executable" {
  printf 'exit 7\n' >script
  chmod +x script
  run --separate-stderr rlock run x -- ./script
  [[ $status == 7 || $status == 126 ]]
}

@test "a file in PATH that may not be executed is skipped, and a script without a #! line gets its arguments" {
  mkdir refused scripts
  echo 'exit 9' | tee refused/both >refused/one
  echo 'echo "$0 $*"; exit 7' >scripts/both
  chmod +x scripts/both
  PATH=/nowhere:$PWD/refused:$PWD/scripts:$PATH run -7 rlock run x -- both 1 "2 3"
  [[ $output == "$PWD/scripts/both 1 2 3" ]]
  PATH=$PWD/refused:$PWD/scripts:$PATH run -126 rlock run x -- one
}

@test "126 and 127 of the command itself are passed on without a message" {
  run -126 --separate-stderr rlock run x -- sh -c 'exit 126'
  [[ -z $stderr ]]
  run -127 --separate-stderr rlock run x -- sh -c 'exit 127'
  [[ -z $stderr ]]
}

@test "-c passes its shell's status on" {
  run -9 --separate-stderr rlock run x -c 'exit 9'
  SHELL=/bin/bash run -9 --separate-stderr rlock run x -c '[[ -n $BASH_VERSION ]] && exit 9'
  SHELL=/nonexistent/shell run -127 --separate-stderr rlock run x -c 'exit 9'
  assert_says /nonexistent/shell
}

@test "a job that was stopped and continued ends by its own status" {
  "$RLOCK" run x -- sh -c 'kill -s STOP $$; exit 5' 3>&- &
  local frontend=$! monitor command got=0
  stopped() {
    monitor=$(pgrep -o -P "$frontend") && command=$(pgrep -P "$monitor") && in_state "$command" T
  }
  wait_until stopped
  kill -s CONT "$frontend" "$command"
  wait "$frontend" || got=$?
  ((got == 5))
}

@test "127: a script with a missing interpreter names it, regardless of where the script is found" {
  cd "$BATS_TEST_TMPDIR"
  mkdir -p bin
  printf '#! /no/such/python3 -u\n' >script
  printf '#!/bin/sh\r\necho hello\r\n' >bin/dos
  printf '\177ELF' >binary
  chmod +x script bin/dos
  run -127 --separate-stderr rlock run a -- ./script
  [[ $stderr == "rlock: ./script: cannot be executed: its interpreter '/no/such/python3' was not found" ]]
  run -127 --separate-stderr rlock run a -- "$PWD/script"
  assert_says "interpreter '/no/such/python3' was not found"
  PATH=/nowhere:$PWD/bin:$PATH run -127 --separate-stderr rlock run a -- dos
  assert_says "interpreter '/bin/sh\\x0d' was not found; its lines end with CR LF"
  # A relative folder in PATH is relative to where we were started.
  PATH=bin:$PATH run -127 --separate-stderr rlock run a -- dos
  assert_says "interpreter '/bin/sh\\x0d' was not found"
  run -127 --separate-stderr rlock run a -- ./none
  [[ $stderr == 'rlock: ./none: command not found' ]]
  run -127 --separate-stderr rlock run a -- no-such-command-anywhere
  [[ $stderr == 'rlock: no-such-command-anywhere: command not found; what only a shell can run needs -c TEXT' ]]
}

@test "127: if the program cannot be read, nothing is guessed" {
  printf '#!/no/such/python3\n' >secret
  chmod 111 secret
  local as=()
  # Root can read everything.
  ((EUID != 0)) || as=(setpriv --bounding-set=-dac_override,-dac_read_search)
  run -127 --separate-stderr "${as[@]}" "$RLOCK" run a -- ./secret
  [[ $stderr == "rlock: ./secret: cannot be executed: what it needs to run was not found" ]]
}
