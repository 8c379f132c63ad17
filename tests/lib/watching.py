#!/usr/bin/env python3
"""watching.py CASE: somebody at a terminal looks at `rlock status --watch`. $RLOCK is the program, at $RLOCK_URL."""
import os
import re
import sys
import termios

import pexpect

RLOCK = os.environ["RLOCK"]
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


def echoes(child):
    modes = termios.tcgetattr(child.child_fd)[3]
    return bool(modes & termios.ECHO) and bool(modes & termios.ICANON)


def ended(child):
    child.expect(pexpect.EOF)
    child.wait()
    return child.exitstatus if child.exitstatus is not None else 128 + child.signalstatus


def keys():
    """Three locks: a, b with a waiter, c."""
    child = watch()
    seen = picture(child, r"> a ")
    assert re.search(r"NAME.*> a .*\n  b .*\n  c .*\nq quit  s sort \(by name\)  j k Enter show one$", seen, re.S), seen
    child.send("ss")
    seen = picture(child, r"by waiters")
    assert re.search(r"\n> b .*\n  [ac] ", seen), seen
    child.send("ss")
    picture(child, r"by name")
    child.send("j")
    picture(child, r"\n> b ")
    child.send("\x1b[B")
    picture(child, r"\n> c ")
    child.send("jk\r")
    seen = picture(child, r"name      b")
    assert "waiting   1. " in seen and seen.endswith("q quit  Esc back"), seen
    child.send("\x1b")
    picture(child, r"\n> b ")
    assert not echoes(child)
    child.send("q")
    assert ended(child) == 0


def modes():
    """However it ends, the terminal has its modes back."""
    for how, status in (("q", 0), ("\x03", 130), ("kill", 143)):
        child = watch("a")
        picture(child, r"q quit$")
        shell = termios.tcgetattr(child.child_fd)[3]
        assert not shell & termios.ECHO
        if how == "kill":
            child.kill(15)
        else:
            child.send(how)
        seen = ended(child)
        assert seen == status, (how, seen)
        assert echoes(child), how


def narrow():
    for columns in (20, 7):
        child = watch(columns=columns, lines=10)
        seen = picture(child, r"> a")
        assert all(len(line) <= columns for line in seen.splitlines()), seen
        assert len(seen.splitlines()) <= 10, seen
        child.send("\r")
        seen = picture(child, r"^name")
        assert all(len(line) <= columns for line in seen.splitlines()), seen
        child.send("q")
        assert ended(child) == 0


def short():
    """Six lines, and more locks than that: the chosen one is always seen."""
    child = watch(lines=6)
    seen = picture(child, r"> a ")
    assert len(seen.splitlines()) == 6 and re.search(r"\n[0-9]+ more\nq quit", seen), seen
    child.send("jjjj")
    seen = picture(child, r"\n> m")
    assert len(seen.splitlines()) == 6, seen
    child.send("q")
    assert ended(child) == 0


def moving():
    child = watch("a")
    first = picture(child, r"for ([0-9]+)s")
    text = re.search(r"for ([0-9]+s)", first)[1]
    for _ in range(40):
        if f"for {text}" not in picture(child, r"for [0-9]+s"):
            break
    else:
        raise AssertionError("the time stands still")
    child.send("q")
    assert ended(child) == 0


def colours():
    child = watch("a", NO_COLOR="")
    picture(child, "state     \x1b\\[33mheld\x1b\\[0m")
    child.send("q")
    assert ended(child) == 0
    child = watch("a", NO_COLOR="", TERM="dumb")
    assert "\x1b" not in picture(child, "state     held")
    child.send("q")
    assert ended(child) == 0


globals()[sys.argv[1]]()
