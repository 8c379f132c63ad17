#!/usr/bin/env python3
"""signals.py --rlock PROGRAM --server PID PHASE: sends every catchable signal to `rlock run` in one of its phases.

waiting    the lock is held by another (job, see the caller): a signal that ends a process ends rlock, and no command
           is started; the others change nothing
running    the command receives each signal exactly once
releasing  the server does not answer the release (the caller does not take part): the status is the command's own
ignored    signals that are ignored when rlock is started stay ignored in the command, which receives none
"""
import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time

# Stopping is tested at a terminal (session.py); SIGCHLD of rlock concerns its own children.
LEFT_OUT = {signal.SIGKILL, signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGCHLD}
ALL = [s for s in signal.valid_signals() if s not in LEFT_OUT]
HARMLESS = {signal.SIGCONT, signal.SIGWINCH, signal.SIGURG}  # their default action ends nothing
# Records each signal that it gets, and exits with 9 when the file "go" exists and it has received one.
WITNESS = """import os, signal, sys, time
for s in signal.valid_signals():
    if s not in (9, 19, 17, 20, 21, 22):
        if signal.getsignal(s) != signal.SIG_IGN or s in (13, 25): signal.signal(s, lambda n, f: os.write(1, b'%d\\n' % n))
os.write(1, b'ready\\n')  # a print could be interrupted
while not os.path.exists('go'): time.sleep(0.002)
sys.exit(9)
"""


def until(condition, what):
    end = time.monotonic() + 60
    while not condition():
        if time.monotonic() > end:
            raise RuntimeError(f"waited without success for: {what}")
        time.sleep(0.002)


def lines_of(path):
    with open(path) as file:
        return file.read().split()


def start(options, *command, ignored=None):
    def dispositions():
        # A shell that runs these tests in the background has INT and QUIT ignored.
        for other in ALL:
            signal.signal(other, signal.SIG_IGN if other == ignored else signal.SIG_DFL)

    with open("out", "w") as out, open("err", "w") as err:
        options.job = subprocess.Popen([options.rlock, "run", "-v", "--server-timeout", "1m", "job", "--", *command], stdout=out, stderr=err,
                                       preexec_fn=dispositions, restore_signals=False)
    return options.job


def waiting(options, sig):
    job = start(options, "touch", "started")
    until(lambda: "waiting for job" in open("err").read(), "the waiting line")
    job.send_signal(sig)
    if sig in HARMLESS:
        time.sleep(0.02)
        assert job.poll() is None, "it ended"
        job.terminate()
        assert job.wait(60) == -signal.SIGTERM
    else:
        assert job.wait(60) == -sig, f"status {job.returncode}"
    assert not os.path.exists("started"), "the command was started"


def running(options, sig):
    job = start(options, sys.executable, "-S", "-c", WITNESS)
    until(lambda: "ready" in lines_of("out"), "the command")
    job.send_signal(sig)
    until(lambda: len(lines_of("out")) > 1, f"signal {sig}")
    open("go", "w").close()
    assert job.wait(60) == 9, f"status {job.returncode}"
    assert lines_of("out") == ["ready", str(int(sig))], lines_of("out")


def children_of(pid):
    return subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()


def releasing(options, sig):
    # The command stops the server at its end, so the release gets no answer until its time is over.
    job = start(options, "sh", "-c", f"kill -STOP {options.server}; exit 9")
    stat = f"/proc/{options.server}/stat"
    until(lambda: open(stat).read().split()[2] == "T", "the last act of the command")
    monitor = children_of(job.pid)[0]
    until(lambda: not children_of(monitor), "the end of the command")
    job.send_signal(sig)
    time.sleep(0.01)
    os.kill(options.server, signal.SIGCONT)
    assert job.wait(60) == 9, f"status {job.returncode}"


def ignored(options, sig):
    job = start(options, sys.executable, "-S", "-c", WITNESS, ignored=sig)
    until(lambda: "ready" in lines_of("out"), "the command")
    pythons_own = sig in (signal.SIGPIPE, signal.SIGXFSZ)
    job.send_signal(sig)
    if pythons_own:  # otherwise it would die of them at its end
        until(lambda: len(lines_of("out")) > 1, f"signal {sig}")
    else:
        time.sleep(0.01)
    open("go", "w").close()
    assert job.wait(60) == 9, f"status {job.returncode}"
    if not pythons_own:
        assert lines_of("out") == ["ready"], lines_of("out")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rlock", required=True)
    parser.add_argument("--server", type=int, required=True)
    parser.add_argument("phase", choices=("waiting", "running", "releasing", "ignored"))
    options = parser.parse_args()
    faults = 0
    for sig in ALL:
        folder = tempfile.mkdtemp(dir=".")
        os.chdir(folder)
        try:
            globals()[options.phase](options, sig)
        except (AssertionError, RuntimeError, IndexError, subprocess.TimeoutExpired) as error:
            os.kill(options.server, signal.SIGCONT)
            faults += 1
            print(f"{signal.Signals(sig).name if sig in iter(signal.Signals) else sig}: {error}: {open('err').read()}")
            options.job.kill()
            options.job.wait()
        os.chdir("..")
    print(f"{options.phase}: {len(ALL)} signals, {faults} faults")
    return faults > 0


if __name__ == "__main__":
    sys.exit(main())
