#!/usr/bin/env python3
"""terminal.py TEXT ANSWER COMMAND [ARG...]: runs COMMAND on its own terminal.

When its output contains TEXT, ANSWER is typed, or sent if it is a signal ("SIGTERM"). What COMMAND wrote is
printed, and its status is ours: 128 + the signal if it died of one. It is killed after 40 s. The variable MEANWHILE has
what a shell executes before ANSWER is typed.
"""
import os
import pty
import select
import signal
import subprocess
import sys
import time

text, answer, command = sys.argv[1].encode(), sys.argv[2], sys.argv[3:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen, answered, end = b"", False, time.monotonic() + 40
while True:
    ready = select.select([terminal], [], [], max(0.0, end - time.monotonic()))[0]
    if not ready:
        os.kill(pid, signal.SIGKILL)
        sys.stderr.write("terminal.py: killed after 40 s\n")
        break
    try:
        data = os.read(terminal, 4096)
    except OSError:  # Linux reports EIO when the last writer has ended
        break
    if not data:
        break
    seen += data
    if not answered and text in seen:
        answered = True
        subprocess.run(os.environ.get("MEANWHILE", ""), shell=True, check=True, stdout=subprocess.DEVNULL)
        if answer.startswith("SIG"):
            os.kill(pid, getattr(signal, answer))
        else:
            os.write(terminal, answer.encode() + b"\n")
status = os.waitpid(pid, 0)[1]
sys.stdout.write(seen.decode(errors="replace").replace("\r\n", "\n"))
sys.stdout.flush()
sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))
