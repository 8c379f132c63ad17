#!/usr/bin/python3
"""session.py SCENARIO: a user at a terminal. Each scenario is a function below; it fails by an exception.

RLOCK is the program, RLOCK_URL its server, SOCKET that server's socket. Needs Debian's python3-pexpect.
"""
import os
import signal
import subprocess
import sys
import termios
import time

import pexpect

RLOCK = os.environ["RLOCK"]
PROMPT = "READY> "
# Counts the SIGINTs that it gets, and exits with their number at SIGUSR1.
COUNTER = ("import signal, sys\nseen = []\nsignal.signal(signal.SIGINT, lambda *_: seen.append(1))\n"
           "signal.signal(signal.SIGUSR1, lambda *_: sys.exit(40 + len(seen)))\nprint('counting', flush=True)\n"
           "while True: signal.pause()\n")


def shell(line=None, *expected):
    """An interactive bash with job control, on its own terminal, in which the line is entered."""
    child = pexpect.spawn("/bin/bash", ["--norc", "--noprofile", "-i"], timeout=10, encoding="utf-8",
                          env=dict(os.environ, PS1=PROMPT, TERM="xterm", HISTFILE="/dev/null"), dimensions=(24, 80))
    sees(child, PROMPT)
    do(child, "stty -echo", PROMPT)
    if line:
        do(child, line, *expected)
    return child


def sees(child, *texts):
    """One after the other."""
    for text in texts:
        child.expect_exact(text)


def do(child, line, *expected):
    child.sendline(line)
    sees(child, *expected)


def status(child):
    """Of the last command, once there is the prompt. What was shown before that is in child.shown."""
    sees(child, PROMPT)
    child.shown = child.before
    do(child, "echo status=$?=", "status=", "=")
    value = int(child.before)
    sees(child, PROMPT)
    return value


def ends(child, wanted):
    """The command ends with this status, and the lock is free."""
    found = status(child)
    assert found == wanted, (found, wanted)
    assert not held()


def ctrl_z(child, prompt=PROMPT):
    child.send("\x1a")
    sees(child, "Stopped", prompt)


def redis(*words):
    return subprocess.run(["redis-cli", "-s", os.environ["SOCKET"], *words], capture_output=True, text=True,
                          check=True).stdout.strip()


def held():
    return redis("exists", "job") == "1"


def lose():
    redis("del", "job", "rlock:holder:{job}")


def until(condition, what, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited without success for: " + what
        time.sleep(0.02)


def past_the_lease():
    """Waits longer than any lease here lasts without a renewal."""
    end = time.monotonic() + 2.5
    until(lambda: time.monotonic() > end or not held(), "2.5 s")
    assert held(), "the lock was not kept"


def command_of(child, program):
    """The pid of the program that runs below the shell."""
    def find():
        out = subprocess.run(["ps", "-A", "-o", "pid=,sid=,args="], capture_output=True, text=True).stdout
        for line in out.splitlines():
            pid, session, args = line.split(None, 2)
            if int(session) == child.pid and args.startswith(program):
                return int(pid)
        return None
    until(find, program)
    return find()


def in_folder(name, text):
    """The path of a file with this text."""
    path = os.path.join(os.environ["FOLDER"], name)
    with open(path, "w") as file:
        file.write(text)
    return path


def program(name, text):
    """A command."""
    return "/usr/bin/python3 " + in_folder(name, text)


def ctrl_c(key="\x03", wanted=130):
    child = shell(f"{RLOCK} run job -- sleep 100")
    command_of(child, "sleep 100")
    child.send(key)
    ends(child, wanted)


def ctrl_backslash():
    ctrl_c("\x1c", 131)


def counting():
    return program("counter.py", COUNTER)


def ctrl_c_once():
    child = shell(f"{RLOCK} run job -- {counting()}", "counting")
    child.sendintr()
    time.sleep(0.2)  # a second delivery would come within this
    os.kill(command_of(child, "/usr/bin/python3"), signal.SIGUSR1)
    ends(child, 41)


def ctrl_c_in_a_loop():
    child = shell(f"for i in 1 2 3; do {RLOCK} run job -- sleep 100; echo round $i; done")
    command_of(child, "sleep 100")
    child.sendintr()
    sees(child, PROMPT)
    assert "round" not in child.before, child.before
    assert not held()


def ctrl_c_while_waiting():
    child = shell(f"{RLOCK} run job -- touch {os.environ['FOLDER']}/started", "waiting for job")
    child.sendintr()
    assert status(child) == 130
    assert not os.path.exists(os.environ["FOLDER"] + "/started")


def pending(pid, number):
    with open(f"/proc/{pid}/status") as file:
        mask = next(int(line.split()[1], 16) for line in file if line.startswith("ShdPnd"))
    return mask >> (number - 1) & 1 == 1


def ctrl_c_before_the_command(slowly=""):
    # strace(1) stops rlock when it has written its line about the grant, until Ctrl-C has reached it.
    child = shell()
    stop = f"strace -qq -o /dev/null -e trace=write,sendmsg -e inject=write:signal=STOP:when=1 {slowly}"
    fifo = os.environ["FOLDER"] + "/fifo"
    os.mkfifo(fifo)
    with open(os.open(fifo, os.O_RDWR)) as events:
        for _ in range(3):
            do(child, f"{stop} {RLOCK} run -q --status-fd 5 job -- sh -c 'echo FINI''SHED' 5<>{fifo}")
            assert "acquired" in events.readline()
            frontend = command_of(child, RLOCK)
            child.sendintr()
            until(lambda: pending(frontend, signal.SIGINT), "Ctrl-C")
            os.kill(frontend, signal.SIGCONT)
            ends(child, 130)
            assert "FINISHED" not in child.shown, child.shown
            while '"exit"' not in events.readline():
                pass


def ctrl_c_before_the_command_slowly():
    # strace(1) delays what rlock says to the guards: a command that started would have ended before.
    ctrl_c_before_the_command("-e inject=sendmsg:delay_enter=300000")


def ctrl_c_before_the_guards():
    # strace(1) delays each process before its first prctl(2): here it is the frontend, which already has the lock.
    child = shell()
    slow = "strace -f -qq -o /dev/null -e trace=prctl -e inject=prctl:delay_enter=400000"
    do(child, f"{slow} {RLOCK} run -q job -- sh -c 'sleep 3; echo FINI''SHED'")
    until(held, "the lock")
    child.sendintr()
    assert status(child) == 130
    assert "FINISHED" not in child.shown, child.shown
    until(lambda: not held(), "the release")


def ctrl_c_as_the_command_begins():
    # strace(1) delays the frontend before it learns that the command exists, which has already received its Ctrl-C; and
    # the monitor just as long before it learns of that signal.
    child = shell()
    slow = "strace -f -qq -o /dev/null -e trace=recvmsg -e inject=recvmsg:delay_enter=800000:when=1"
    do(child, f"{slow} {RLOCK} run -q job -- {counting()}", "counting")
    child.sendintr()
    # The signal that asks goes the way of a second delivery, after it: through the frontend.
    os.kill(parent_of(parent_of(command_of(child, "/usr/bin/python3"))), signal.SIGUSR1)
    ends(child, 41)


def hook_at_a_terminal():
    """A hook uses the terminal like the command: it may print, set modes, and be stopped by Ctrl-Z."""
    child = shell("stty tostop", PROMPT)
    do(child, f"{RLOCK} run --hook-timeout 20s --lease 2s --on-acquire 'stty -a </dev/tty >/dev/null && echo hook-up; sleep 1' "
              "job -- echo comm''and", "hook-up")
    ctrl_z(child)
    past_the_lease()
    do(child, "fg", "command")
    ends(child, 0)


def hook_of_a_nested_job():
    child = shell(f"{RLOCK} run outer -- {RLOCK} run --on-acquire 'stty -a </dev/tty >/dev/null && echo hook-up' job -- "
                  "echo comm''and", "hook-up", "command")
    ends(child, 0)


def second_ctrl_c_ends_the_grace():
    child = shell(f"{RLOCK} run -k 8s --lease 1m job -- bash -c 'trap \"exit 3\" INT; (trap \"\" INT TERM; echo up; exec sleep 1000) & "
                  "while :; do sleep 0.1; done'", "up")
    begun = time.monotonic()
    child.sendintr()  # ends the command; its background process ignores the SIGTERM that it gets then
    time.sleep(0.5)
    assert held()
    child.sendintr()
    # The command ended before the second one, so that was for rlock: a loop in a shell ends with it.
    ends(child, 130)
    assert time.monotonic() - begun < 6, "the second Ctrl-C was not heard"


def ctrl_z_then(resume):
    child = shell(f"{RLOCK} run -q --lease 2s job -- sh -c 'echo up; read answer; echo got $answer; exit 5'", "up")
    ctrl_z(child)
    past_the_lease()
    do(child, resume)
    return child


def ctrl_z_fg():
    child = ctrl_z_then("fg")
    time.sleep(0.1)
    do(child, "hello", "got hello")
    ends(child, 5)


def ctrl_z_bg_fg():
    # It reads the terminal in the background, which stops it.
    child = ctrl_z_then("bg")
    sees(child, PROMPT)
    until(lambda: "Stopped" in (do(child, "jobs", PROMPT) or child.before), "SIGTTIN")
    past_the_lease()
    # On a very busy machine the shell may see an earlier stop.
    for _ in range(3):
        do(child, "fg")
        try:
            child.expect_exact(PROMPT, timeout=1)
        except pexpect.TIMEOUT:
            break
    do(child, "hello", "got hello")
    ends(child, 5)


def settles(pid, wanted, act):
    """Acts, and waits until the process has reached that state."""
    def switches():
        with open(f"/proc/{pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("voluntary"))
    before = switches()
    act()
    until(lambda: switches() > before and state_of(pid) == wanted, f"state {wanted} of {pid}")


def parent_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def a_stop_that_is_over():
    # A slow monitor: the frontend, stopped itself, reads its report of a stop only when fg has ended that, and the
    # monitor has not seen that end.
    child = shell(f"{RLOCK} run job -- sh -c 'echo u''p; read answer; echo got $answer; exit 5'", "up")
    ctrl_z(child)
    command = command_of(child, "sh -c")
    monitor = parent_of(command)
    frontend = parent_of(monitor)
    settles(monitor, "T", lambda: os.kill(monitor, signal.SIGSTOP))
    settles(command, "T", lambda: os.kill(command, signal.SIGCONT))  # it reads, in the background
    settles(monitor, "S", lambda: os.kill(monitor, signal.SIGCONT))
    settles(monitor, "T", lambda: os.kill(monitor, signal.SIGSTOP))
    do(child, "fg")
    time.sleep(0.5)  # a second stop would come within this
    assert state_of(frontend) != "T", "the job was stopped again"
    do(child, "hello", "got hello")
    os.kill(monitor, signal.SIGCONT)
    ends(child, 5)


def background():
    child = shell(f"{RLOCK} run job -- sh -c 'read answer; exit 6' &", PROMPT)
    until(lambda: "Stopped" in (do(child, "jobs", PROMPT) or child.before), "SIGTTIN")
    assert held()
    do(child, "fg")
    time.sleep(0.1)
    do(child, "hello")
    ends(child, 6)


def a_shell_as_the_command():
    child = shell(f"PS1='inner> ' {RLOCK} run job -- bash --norc --noprofile -i", "inner> ")
    inner = command_of(child, "bash --norc")
    until(lambda: state_of(inner) == "S", "the shell reads")  # readline forgets a prompt that Ctrl-C interrupts
    child.sendintr()
    sees(child, "inner> ")
    do(child, "sleep 100")
    command_of(child, "sleep 100")
    ctrl_z(child, "inner> ")
    do(child, "fg", "sleep 100")
    child.sendintr()
    sees(child, "inner> ")
    assert held()
    do(child, "exit 7")
    ends(child, 7)


def full_screen():
    child = shell()
    path = in_folder("text", "".join(f"line {n}\n" for n in range(1, 500)))
    do(child, f"stty -a | md5sum; {RLOCK} run job -- less {path}", "line 1")
    child.send("G")
    sees(child, "line 499")
    ctrl_z(child)
    do(child, "fg", "line 499")
    child.send("q")
    ends(child, 0)
    # As before: input is a line, and Ctrl-C works.
    do(child, "cat")
    command_of(child, "cat")
    child.sendintr()
    ends(child, 130)


# A full-screen program: it takes over the terminal, and restores it and exits at "q"; SIGTERM does nothing.
DRAWER = ("import os, signal, sys, termios, tty\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
          "before = termios.tcgetattr(0)\ntty.setraw(0)\nos.write(1, b'DRAWN')\n"
          "while os.read(0, 1) != b'q': pass\n"
          "termios.tcsetattr(0, termios.TCSANOW, before)\nprint('GIVEN BACK', flush=True)\n")


def drawer():
    return program("drawer.py", DRAWER)


def messages_while_somebody_draws():
    """Messages that are not urgent wait until a program that draws on the terminal has ended."""
    child = shell(f"{RLOCK} -v run --lease 1s job -- {drawer()}", "DRAWN")
    until(held, "the lock")
    past_the_lease()  # renewed several times, which is reported
    child.send("q")
    sees(child, "GIVEN BACK")
    assert "renewed" not in child.before, child.before
    sees(child, "renewed for 1s")
    ends(child, 0)


def a_loss_while_somebody_draws():
    """An error is shown at once, and again after the program has ended and cleared its screen."""
    child = shell(f"{RLOCK} run --lease 3s job -- {drawer()}", "DRAWN")
    until(held, "the lock")
    lose()
    sees(child, "the lock is lost")
    child.send("q")
    sees(child, "GIVEN BACK", "the lock is lost")
    ends(child, 74)


def a_loss_at_a_prompt():
    """A shell that edits its line has modes like a program that draws, but clears nothing."""
    child = shell(f"{RLOCK} run --lease 3s job -- sleep 1000 &", PROMPT)
    until(held, "the lock")
    lose()
    sees(child, "the lock is lost")
    do(child, "wait; echo ALL OF IT''", "ALL OF IT\r")
    assert "the lock is lost" not in child.before, child.before


def held_back_only_while_somebody_draws():
    child = shell(f"{RLOCK} -v run --lease 1s job -- sh -c 'echo u''p; exec sleep 1000'", "up", "renewed for 1s")
    child.sendintr()
    ends(child, 130)


def is_the_same(child):
    child.expect_exact(["THE SAME", "OTHERS"])
    assert child.after == "THE SAME", child.buffer
    sees(child, PROMPT)


def modes_come_back(options, why, wanted, again, times=1, slowed_by=""):
    """A program that draws is killed, in a script: the next command finds the terminal as it was, and the user reads why
    once more, because the program's screen may have swallowed it."""
    child = shell()
    script = in_folder("script", f"""a=$(stty -g </dev/tty)
        {slowed_by} {RLOCK} run -k 100ms {options} job -- {drawer()}
        s=$? b=$(stty -g </dev/tty)
        stty sane </dev/tty
        echo status=$s=
        [ "$a" = "$b" ] && echo THE SAME || echo "OTHERS: $a $b"
        """)
    do(child, "sh " + script, "DRAWN")
    why(child)
    sees(child, f"status={wanted}=")
    assert child.before.count(again) == times, child.before
    is_the_same(child)


def modes_after_a_loss():
    def is_lost(child):
        lose()
        sees(child, "the lock is lost", "stopping the command")  # urgent: while the program still draws
    modes_come_back("--lease 3s", is_lost, 74, "rlock: job: the lock is lost: ")
    modes_come_back("--lease 3s --log-format json", is_lost, 74, "job: the lock is lost: ", times=0)


def modes_after_max_hold(limit="500ms", slowed_by=""):
    modes_come_back("--max-hold " + limit, lambda child: sees(child, "the limit of --max-hold"), 124, "rlock: job: held for ",
                    slowed_by=slowed_by)


def modes_of_a_command_that_is_faster():
    """It draws before the frontend gets a turn: strace(1) delays only the frontend, each time that it reads the modes."""
    modes_after_max_hold("2s", "strace -qq -o /dev/null -e trace=ioctl -e inject=ioctl:delay_enter=500000")


def modes_after_the_monitor_was_killed():
    def kill(child):
        rlocks = subprocess.run(["pgrep", "-f", f"{os.environ['FOLDER']}/drawer.py"], capture_output=True, text=True).stdout.split()
        pids = [int(pid) for pid in rlocks if os.readlink(f"/proc/{pid}/exe") == os.path.realpath(RLOCK)]
        # The frontend is the parent of the monitor.
        os.kill(next(pid for pid in pids if parent_of(pid) in pids), signal.SIGKILL)
    modes_come_back("--lease 2s", kill, 74, "rlock: job: the monitor of this job was killed\r\n")
    until(lambda: not held(), "the end of the lease")


# A pager: it takes over the terminal before or after the job has started, and restores it or not, as its argument says.
PAGER = ("import os, sys, termios, time, tty\nfolder, early = os.environ['FOLDER'], sys.argv[1] == 'early'\n"
         "def wait_for(name):\n    while not os.path.exists(folder + '/' + name): time.sleep(0.02)\n"
         "terminal = os.open('/dev/tty', os.O_RDWR)\nbefore = termios.tcgetattr(terminal)\n"
         "early or wait_for('begun')\n"
         "tty.setraw(terminal)\nraw = termios.tcgetattr(terminal)\nopen(folder + '/drawn', 'w').close()\n"
         "wait_for('begun')\n"
         "if early: termios.tcsetattr(terminal, termios.TCSANOW, before)\n"
         "wanted = before if early else raw\nprint('PA' + 'GING', flush=True)\nsys.stdin.read()\nwait_for('ended')\n"
         "found = termios.tcgetattr(terminal)\ntermios.tcsetattr(terminal, termios.TCSANOW, before)\n"
         "print('THE SAME' if found == wanted else 'OTHERS', flush=True)\n")


def modes_of_a_pager(when):
    """The output of a job that is stopped goes to a pager, which may set the modes before the job has started."""
    child = shell()
    folder = os.environ["FOLDER"]
    for name in "drawn", "begun", "ended":
        if os.path.exists(f"{folder}/{name}"):
            os.remove(f"{folder}/{name}")
    first = f"until [ -e {folder}/drawn ]; do sleep 0.02; done" if when == "early" else ":"
    do(child, f"({first}; {RLOCK} run -k 100ms --lease 3s job -- sh -c 'touch {folder}/begun; exec sleep 1000'; touch {folder}/ended) | "
              f"{program('pager.py', PAGER)} {when}", "PAGING")
    lose()
    is_the_same(child)


def modes_of_pagers_are_left_alone():
    modes_of_a_pager("early")
    modes_of_a_pager("late")


def a_shell_that_was_killed():
    """An interactive shell as the command has changed modes and foreground; both are restored when it is killed."""
    child = shell()
    script = in_folder("script", f"{RLOCK} run --max-hold 1s -k 100ms job -- env PS1='inner> ' bash --norc --noprofile -i\n"
                                 "read answer && echo got $answer\n")
    do(child, f"sh {script}", "inner> ", "the limit of --max-hold")
    until(lambda: not held(), "the release")
    do(child, "hello", "got hello", PROMPT)


def modes_of_others_are_left_alone():
    """The job was stopped, and its shell reads a line, with its own modes, when the lock is lost."""
    child = shell(f"{RLOCK} run -k 100ms --lease 3s job -- {drawer()}", "DRAWN")
    pid = command_of(child, "/usr/bin/python3")
    os.kill(pid, signal.SIGSTOP)
    sees(child, "Stopped", PROMPT)
    before = termios.tcgetattr(child.child_fd)
    lose()
    sees(child, "the lock is lost")
    until(lambda: not os.path.exists(f"/proc/{pid}"), "the end of the command")
    frontend_gone = lambda: f"{os.environ['FOLDER']}/drawer.py" not in subprocess.run(["ps", "-A", "-o", "args="], capture_output=True,
                                                              text=True).stdout
    until(frontend_gone, "the end of rlock")
    assert termios.tcgetattr(child.child_fd) == before


def stopped_by_the_same_signal():
    child = shell()
    for how, wanted in ("\x1a", 148), (signal.SIGSTOP, 147), (signal.SIGTTOU, 150):
        do(child, f"{RLOCK} run job -- sh -c 'echo u''p; exec sleep 1000'", "up")
        pid = command_of(child, "sleep 1000")
        child.send(how) if isinstance(how, str) else os.kill(pid, how)
        sees(child, "Stopped")
        found = status(child)
        assert found == wanted, (found, wanted)
        do(child, "fg", "sleep 1000")
        until(lambda: state_of(pid) == "S", "SIGCONT")
        child.sendintr()
        ends(child, 130)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def stopped_where_the_kernel_stops_nobody():
    """In an orphaned group the kernel ignores SIGTSTP. The command has left it, so SIGTSTP stops it."""
    text = "import os, time\nos.setpgid(0, 0)\nprint('up', flush=True)\ntime.sleep(1000)\n"
    child = pexpect.spawn(RLOCK, ["run", "job", "--", "/usr/bin/python3", "-c",
                                  "import subprocess, sys, time\nsubprocess.run([sys.executable, '-c', sys.argv[1]])", text],
                          timeout=10, encoding="utf-8")
    sees(child, "up")
    inner = command_of(child, "/usr/bin/python3 -c import subprocess")
    os.kill(inner, signal.SIGSTOP)
    until(lambda: state_of(child.pid) == "T", "the stop of rlock")
    os.kill(inner, signal.SIGCONT)
    until(lambda: state_of(child.pid) == "S", "its going on")
    child.sendintr()
    is_over(child)


def is_over(child):
    child.expect(pexpect.EOF)
    child.close()
    assert not held()


def window_size():
    child = shell(f"{RLOCK} run job -- bash -c 'trap \"stty size; echo changed\" WINCH; trap exit INT; echo up; while :; do sleep 0.05; done'",
                  "up")
    child.setwinsize(33, 99)
    sees(child, "33 99", "changed")
    try:
        child.expect_exact("changed", timeout=0.5)
    except pexpect.TIMEOUT:
        pass
    else:
        raise AssertionError("SIGWINCH came twice")
    child.sendintr()
    sees(child, PROMPT)


def terminal_closes():
    child = shell(f"{RLOCK} run job -- bash -c '(trap \"\" HUP; exec sleep 1234) & echo up; wait'", "up")
    sleeper = command_of(child, "sleep 1234")
    child.close(force=False)
    all_is_over(sleeper)


def all_is_over(process):
    until(lambda: not held() and not os.path.exists(f"/proc/{process}"), "the release, and the end of the tree")


def shell_goes_away():
    """A shell that exits without notifying its jobs: the kernel hangs up on those that are stopped."""
    child = pexpect.spawn("/bin/dash", ["-i"], timeout=10, encoding="utf-8", env=dict(os.environ, PS1=PROMPT))
    do(child, f"{RLOCK} run job -- sh -c 'echo u''p; exec sleep 1234'", "up\r\n")
    sleeper = command_of(child, "sleep 1234")
    child.send("\x1a")
    sees(child, "Stopped")
    os.kill(child.pid, signal.SIGKILL)
    all_is_over(sleeper)


def without_a_shell(text, *options):
    """rlock as the first process at a terminal, as with `ssh -t HOST rlock run ...`."""
    child = pexpect.spawn(RLOCK, ["run", *options, "job", "--", "bash", "-c", text], timeout=10, encoding="utf-8")
    sees(child, "up")
    return child


def ctrl_z_without_a_shell(*options):
    child = without_a_shell("(sleep 1000 &); echo up; read; echo going on; read; exit 7", *options)
    child.send("\x1a")
    do(child, "", "going on")
    child.send("\x1a")
    child.sendline("")
    is_over(child)
    assert child.exitstatus == 7, child.exitstatus


def ctrl_z_without_a_shell_isolated():
    ctrl_z_without_a_shell("--isolate")


def ctrl_c_without_a_shell():
    child = without_a_shell("echo up; exec sleep 1000")
    child.sendintr()
    is_over(child)
    assert child.signalstatus == signal.SIGINT, (child.exitstatus, child.signalstatus)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
