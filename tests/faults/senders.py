#!/usr/bin/env python3
"""senders.py --rlock PROGRAM --counter PROGRAM --trials N [--slow] [--isolate] WAY: signals `rlock run` in one of the ways in which shells, CI runners and
service managers do, and counts what the command receives (lib/counter.c). Each time it must be one signal.

process        kill(2) of the process that was started
group          kill(2) of its process group, as GitLab's shell executor and Buildkite's agent do
both, reverse  the process and then its group, as timeout(1) does; or the group first
timeout        by timeout(1)
all            all processes of the job one by one, as process 1 does with those of a cgroup; all_back: the youngest first.
               REQUIRES: this is process 1
names          all processes whose command line has the lock's name in it, as pkill(1) with -f does: they are rlock's own
program        all processes of the program, as `kill $(pidof rlock)` does; program_back: the youngest first
terminal       Ctrl-C

With --isolate, the command is in a PID namespace of its own. With --slow, the processes are held up whenever they look which signals are pending (by strace),
and the monitor also before that, in the process group.
"""
import argparse
import collections
import os
import pty
import signal
import subprocess
import sys
import time
import uuid

parser = argparse.ArgumentParser()
parser.add_argument("--rlock", required=True)
parser.add_argument("--counter", required=True)
parser.add_argument("--trials", type=int, required=True)
parser.add_argument("--slow", action="store_true")
parser.add_argument("--isolate", action="store_true")
parser.add_argument("way")
options = parser.parse_args()


def descendants(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = [int(child) for child in file.read().split()]
    return [pid, *(below for child in children for below in descendants(child))]


def read_to(output, mark):
    text = b""
    while not text.endswith(mark):
        byte = os.read(output, 1)
        if not byte:
            raise RuntimeError(f"it ended: {text}")
        text += byte
    return text


def send(way, name, top, frontend, terminal):
    if way == "terminal":
        os.write(terminal, b"\x03")
    elif way == "timeout":
        os.kill(top, signal.SIGALRM)  # its time is over
    elif way == "names":
        subprocess.run(["pkill", "-f", name], check=True)
    if way in ("process", "both"):
        os.kill(frontend, signal.SIGTERM)
    if way in ("group", "both", "reverse"):
        os.killpg(frontend, signal.SIGTERM)
    if way == "reverse":
        os.kill(frontend, signal.SIGTERM)
    if way.startswith(("all", "program")):
        for pid in sorted(descendants(frontend), reverse=way.endswith("back")):
            if way.startswith("all") or os.path.samefile(f"/proc/{pid}/exe", options.rlock):
                os.kill(pid, signal.SIGTERM)


def trial(way):
    name = f"job-{uuid.uuid4()}"
    line = [options.rlock, "run", *(["--isolate"] if options.isolate else []), name, "--", options.counter]
    if options.slow:
        line = ["strace", "-DDD", "-f", "-qq", "-o", "/dev/null", "-e", "trace=rt_sigpending,setsid", "-e", "signal=none",
                "-e", "inject=rt_sigpending:delay_enter=100000", "-e", "inject=setsid:delay_enter=300000", *line]
    output, writer = os.pipe()
    terminal = -1
    if way == "terminal":
        pid, terminal = pty.fork()
        if pid == 0:
            os.dup2(writer, 1)
            os.execvp(line[0], line)
        top = frontend = pid
    else:
        if way == "timeout":
            line = ["timeout", "1m", *line]
        top = frontend = subprocess.Popen(line, stdout=writer, start_new_session=True).pid
    os.close(writer)
    read_to(output, b"ready")
    if way == "timeout":
        frontend = descendants(top)[1]
    # A signal to the group comes twice until there is a witness, the frontend's second child (docs/architecture.md).
    while not options.slow and len(open(f"/proc/{frontend}/task/{frontend}/children").read().split()) < 2:
        time.sleep(0.001)
    send(way, name, top, frontend, terminal)
    seen = read_to(output, b"+")
    # It goes the way that another signal would have gone, after it.
    os.kill(frontend, signal.SIGUSR1)
    seen += read_to(output, b"\n")
    os.waitpid(top, 0)
    os.close(output)
    if terminal >= 0:
        os.close(terminal)
    return int(seen[seen.index(b"=") + 1 :])


counts = collections.Counter(trial(options.way) for _ in range(options.trials))
print(f"{options.way}: {dict(counts)}")
sys.exit(set(counts) != {1})
