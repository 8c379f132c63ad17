#!/usr/bin/env python3
"""stuck_pipe.py FD PROGRAM [ARG...]: runs the program with a pipe at FD that is full and that nobody reads."""
import os
import sys

reader, writer = os.pipe()
os.set_blocking(writer, False)
try:
    while True:
        os.write(writer, b"x" * 4096)
except BlockingIOError:
    os.set_blocking(writer, True)
os.dup2(writer, int(sys.argv[1]))
os.set_inheritable(int(sys.argv[1]), True)
# The reader stays open, but does not read.
os.set_inheritable(reader, True)
os.execvp(sys.argv[2], sys.argv[2:])
