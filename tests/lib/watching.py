#!/usr/bin/env python3
"""watching.py CASE: a user at a terminal watches `rlock status --watch`. $RLOCK is the program, at $RLOCK_URL."""
import os
import re
import signal
import subprocess
import sys
import termios
import time

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
    for other in "\x1b[C", "\x1bOD", "\x1b[H", "\x1b[6~", "\x1b[1;5C":  # right, left, Home, page down, Ctrl-right
        child.send(other)
        picture(child, r"name      b.*Esc back$")
    child.send("\x1b")
    picture(child, r"\n> b ")
    assert not echoes(child)
    child.send("q")
    assert ended(child) == 0


def modes():
    """Regardless of how it ends, the terminal's modes are restored."""
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
        seen = picture(child, r"^server")
        assert all(len(line) <= columns for line in seen.splitlines()), seen
        child.send("q")
        assert ended(child) == 0


def short():
    """Six lines, and more locks than that: the chosen one is always visible."""
    child = watch(lines=6)
    seen = picture(child, r"> a ")
    assert len(seen.splitlines()) == 6 and re.search(r"\n[0-9]+ more\nq quit", seen), seen
    child.send("jjjj")
    seen = picture(child, r"\n> m")
    assert len(seen.splitlines()) == 6, seen
    child.send("q")
    assert ended(child) == 0


def tiny():
    """A pane of a few columns, with colours, which is too narrow for labels."""
    for columns in (10, 3, 1):
        child = watch("a", columns=columns, lines=10, NO_COLOR="")
        seen = picture(child, "n|…")
        assert all(len(line) <= columns for line in seen.splitlines()), seen
        child.send("q")
        assert ended(child) == 0


def top():
    """Sorted by expiry, the screen shows what expires next, regardless of renewals, until the user moves."""
    child = watch(lines=6)
    child.send("sss")
    picture(child, r"by expiry")
    for number in range(1, 6):
        redis("pexpire", f"m{number}", str(100_000 + number))
    picture(child, r"\n> m1 .*\n  m2 ")
    redis("pexpire", "m1", "500000")
    picture(child, r"\n> m2 .*\n  m3 ")
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


PROMPT = "READY> "


def shell(program="/bin/dash", *options):
    """A dash, which does not change the terminal's modes, and rlock in it; returns the shell and rlock's pid."""
    child = pexpect.spawn(program, [*options, "-i"], dimensions=(24, 100), timeout=40, encoding="utf-8",
                          env={**os.environ, "TERM": "xterm", "NO_COLOR": "1", "PS1": PROMPT})
    child.expect_exact(PROMPT)
    child.sendline(f"{RLOCK} status --watch")
    picture(child, r"q quit")
    return child, os.tcgetpgrp(child.child_fd)


def state_of(pid):
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0]


def until(condition, what):
    end = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < end, "waited without success for: " + what
        time.sleep(0.02)


def says(child, line, text):
    child.sendline(line)
    child.expect_exact(text)
    child.expect_exact(PROMPT)


def stopped(child, pid):
    child.send("\x1a")
    child.expect_exact(PROMPT)
    until(lambda: state_of(pid) == "T", "the stop")


def stop_and_fg():
    """Ctrl-Z gives the terminal back to the shell with its modes, and fg takes it again, more than once."""
    child, pid = shell()
    for _ in range(2):
        assert not echoes(child)
        stopped(child, pid)
        assert echoes(child)
        says(child, "stty -ixon; echo he''re", "here")
        child.sendline("fg")
        picture(child, r"> a .*q quit")
        assert not echoes(child)
        child.send("j")
        picture(child, r"\n> b ")
        child.send("k")
    child.send("q")
    child.expect_exact(PROMPT)
    assert echoes(child)
    assert not termios.tcgetattr(child.child_fd)[0] & termios.IXON
    says(child, "echo status=$?=", "status=0=")


def stop_from_outside():
    """SIGSTOP leaves no time to restore anything. Bash does so, and fg restores our modes, not the former ones."""
    child, pid = shell("/bin/bash", "--norc", "--noprofile", "--noediting")
    os.kill(pid, signal.SIGSTOP)
    child.expect_exact(PROMPT)
    assert echoes(child)
    child.sendline("fg")
    picture(child, r"> a .*q quit")
    assert not echoes(child)
    child.send("q")
    child.expect_exact(PROMPT)
    assert echoes(child)


def background():
    """In the background it touches neither terminal nor input, and SIGTERM ends it; after fg the keys work again."""
    for how in "\x03", "kill":
        child, pid = shell()
        stopped(child, pid)
        child.sendline("bg")
        assert "q quit" not in picture(child, r"\na  ")
        assert echoes(child)
        says(child, "echo he''re", "here")
        assert state_of(pid) == "S"
        if how == "kill":
            child.sendline("kill %1; wait %1; echo status=$?=")
            child.expect_exact("status=143=")
            assert echoes(child)
            continue
        child.send("x")  # half a line
        child.send("\x15")
        child.sendline("fg")
        picture(child, r"\n> a .*q quit")
        assert not echoes(child)
        child.send(how)
        child.expect_exact(PROMPT)
        assert echoes(child)
        says(child, "echo status=$?=", "status=130=")


def nobody_to_go_on():
    """At a terminal without a shell Ctrl-Z stops nothing."""
    child = watch()
    picture(child, r"> a ")
    child.send("\x1a")
    child.send("j")
    picture(child, r"\n> b ")
    assert not echoes(child)
    child.send("q")
    assert ended(child) == 0


def redis(*command):
    subprocess.run(["redis-cli", "-s", os.environ["SOCKET"], *command], check=True, stdout=subprocess.DEVNULL)


def choice():
    """The chosen lock stays chosen; if it disappears, the next one is."""
    child = watch()
    picture(child, r"\n> a ")
    child.send("j")
    picture(child, r"\n> b ")
    subprocess.run([RLOCK, "acquire", "Above", "--lease", "10m"], check=True, stdout=subprocess.DEVNULL)
    seen = picture(child, r"\n  Above ")
    assert "\n  a " in seen and "\n> b " in seen, seen
    child.send("\r")
    picture(child, r"name      b\r")
    child.send("\x1b")
    for lock in "Above", "b":  # a cluster takes keys of one slot at a time
        redis("del", lock)
    picture(child, r"NAME[^\n]*\n  a [^\n]*\n> c ")
    child.send("q")
    assert ended(child) == 0


globals()[sys.argv[1]]()
