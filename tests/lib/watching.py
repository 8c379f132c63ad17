#!/usr/bin/env python3
"""watching.py CASE: a user at a terminal watches `rlock status --watch`. $RLOCK is the program, at $RLOCK_URL."""
import os
import re
import sys
import termios
import time

import pexpect

from session import PROMPT, RLOCK, do, sees

CLEAR = "\x1b[H\x1b[2J"


def watch(*arguments, columns=100, lines=24, **environment):
    child = pexpect.spawn(RLOCK, ["status", "--watch", *arguments], dimensions=(lines, columns), timeout=40,
                          encoding="utf-8", env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", **environment})
    child.expect_exact(CLEAR)
    return child


def picture(child, wanted):
    """The next whole picture that matches."""
    for _ in range(40):
        child.expect_exact(CLEAR)
        if re.search(wanted, child.before, re.S):
            return child.before.replace("\r\n", "\n")
    raise AssertionError(f"not drawn: {wanted}: {child.before!r}")


def interrupt(child):
    child.send("\x03")
    child.expect(pexpect.EOF)
    child.wait()
    assert child.signalstatus == 2, child.exitstatus


def all_of_them():
    """Three locks: a, b with a waiter, c, as `rlock status` shows them."""
    child = watch()
    seen = picture(child, r"\nc ")
    assert re.match(r"NAME.*\na .*\nb .*\nc .*\n$", seen, re.S), seen
    interrupt(child)


def narrow():
    for columns in (20, 10, 7, 1):  # with colours, too narrow for labels
        for names, colour in ((), "1"), (("a",), ""):
            child = watch(*names, columns=columns, lines=10, NO_COLOR=colour)
            seen = picture(child, "a|n|…")
            assert all(len(re.sub("\x1b\\[[0-9]*m", "", line)) <= columns for line in seen.splitlines()), seen
            assert len(seen.splitlines()) < 10, seen
            interrupt(child)


def short():
    """Six lines, and more locks than that."""
    child = watch(lines=6)
    seen = picture(child, r"\na ")
    assert len(seen.splitlines()) == 5 and seen.endswith("\n5 more lines\n"), seen
    interrupt(child)


def moving():
    child = watch("a")
    first = picture(child, r"for ([0-9]+)s")
    text = re.search(r"for ([0-9]+s)", first)[1]
    for _ in range(40):
        if f"for {text}" not in picture(child, r"for [0-9]+s"):
            break
    else:
        raise AssertionError("the time stands still")
    interrupt(child)


def colours():
    child = watch("a", NO_COLOR="")
    picture(child, "state     \x1b\\[33mheld\x1b\\[0m")
    interrupt(child)
    child = watch("a", NO_COLOR="", TERM="dumb")
    assert "\x1b" not in picture(child, "state     held")
    interrupt(child)


def background():
    """Ctrl-Z and fg work; in the background it does not draw."""
    child = pexpect.spawn("/bin/dash", ["-i"], dimensions=(24, 100), timeout=40, encoding="utf-8",
                          env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "PS1": PROMPT})
    sees(child, PROMPT)
    modes = termios.tcgetattr(child.child_fd)
    do(child, f"{RLOCK} status --watch")
    picture(child, r"\na ")
    child.send("\x1a")
    sees(child, PROMPT)
    assert termios.tcgetattr(child.child_fd) == modes
    do(child, "bg", PROMPT)
    time.sleep(2.5)  # two looks
    do(child, "echo he''re", "here")
    assert CLEAR not in child.before, child.before
    sees(child, PROMPT)
    do(child, "fg")
    picture(child, r"\na ")
    child.send("\x03")
    sees(child, PROMPT)
    do(child, "echo status=$?=", "status=130=")


globals()[sys.argv[1]]()
