#!/usr/bin/env python3
"""ci_commands.py SOCKET SEED ROUNDS: no text that others have written becomes a command to a CI system.

Writes locks, waiters and histories whose every text consists of parts of such commands, shows them in each way that RLOCK
knows, and looks at each line as the runners do. Prints what a runner would execute; the status is then 1.
"""
import os
import random
import re
import subprocess
import sys

socket, seed, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance = random.Random(seed)
BLANK = "[ \t\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]*"  # what GitHub trims, and \r has ended a line
# The expressions of the runners' sources, without the lists of commands that they know.
RUNNERS = {
    "GitHub": re.compile(f"^{BLANK}::[A-Za-z-]+( .*)?::"),
    "GitHub, first version": re.compile(r"##\[[A-Za-z-]+[^]]*\]"),
    "Gitea, Forgejo": re.compile("^::([^ :]+)( .*)?::"),
    "act": re.compile("^::([^ ]+)( (.+))?::"),
    "act, as Azure": re.compile(r"^##\[([^ ]+)( (.+))?\]"),
    "Azure": re.compile(r"##vso\[[^]]*\]", re.IGNORECASE),
    "Azure, formats": re.compile(r"^ *##\[(group|endgroup|section|command|error|warning|debug)\]", re.IGNORECASE),
    "TeamCity": re.compile(r"##teamcity\["),
    "Buildkite": re.compile(r"^\s*(---|\+\+\+|~~~|\^\^\^ \+\+\+)"),
    "GitLab": re.compile(r"section_(start|end):\d+:[\w.-]+(\[.*\])?\r\x1b\[0K|^\s*section_(start|end):"),
    "Travis": re.compile(r"travis_(fold|time):\w+:\S+\r\x1b\[0K|^\s*travis_(fold|time):"),
    "systemd": re.compile(r"^<[0-7]>"),
}
COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")  # Buildkite gives jobs a terminal
PARTS = ["::", ":", "::", "##", "#", "[", "]", "[error]", "add-mask", "set-env name=PATH,x=", "add-mask::", "]x", "vso[",
         "##[add-mask]", "teamcity[", "task.complete", " ", " ", "\u3000", "--- ", "-", "+++ ", "~~~ ", "^^^ +++", "x",
         "section_start:1:x", "section_end:1:x", "travis_fold:start:x", "\r\x1b[0K", "<0>", "\n", "\r", "@", "", ""]


def text(most=5):
    return "".join(chance.choice(PARTS) for _ in range(chance.randint(0, most)))


def name():
    while True:
        found = "".join(c for c in text() + text() if c >= " ")
        if found and not found.startswith("-"):
            return found


def redis(*words):
    return subprocess.run(["redis-cli", "-s", socket, *map(str, words)], check=True, stdout=subprocess.PIPE).stdout


def fields():
    return [word for key in ("host", "user", "command", "reason", "why", "by", "url") for word in (key, text())]


def plant(lock, shared):
    """A lock as rlock writes it, held by one owner or two readers, with waiters and a history."""
    owners = [text() + ":1"]
    if shared:
        for _ in range(2):
            rlock("acquire", "-s", "--lease", "10m", lock)
        for key in redis("keys", "rlock:hold:*").decode().split("\n")[:-1]:
            redis("hset", key, *fields())
    else:
        redis("hset", lock, owners[0], 1)
        redis("pexpire", lock, 600000)
        redis("hset", f"rlock:holder:{{{lock}}}", "owner", owners[0], "lease", 600000, "since", 1700000000000, "token",
              text(), "pid", 1, *fields())
    for i in range(2):
        redis("eval", "return redis.call('hset', KEYS[1], ARGV[1], cmsgpack.pack({version = 2, alive = 9e12, since = 1, "
              "lease = '9999', hold = 'x', about = {unpack(ARGV, 2)}}))",
              1, f"rlock:waiters:{{{lock}}}", f"{i}{owners[0]}", *fields())
        redis("zadd", f"rlock:queue:{{{lock}}}", i, f"{i}{owners[0]}")
    redis("hset", f"rlock:once:{{{lock}}}", text() or "k", "0 9999999999999 1700000000000 1\n" + "\n".join(
        re.sub("[\r\n]", "", text()) for _ in range(3)))
    redis("rpush", f"redisson_lock_queue:{{{lock}}}", text(), text())
    for i, outcome in enumerate(("released", "lost", "forced", "expired", text())):
        redis("xadd", f"rlock:history:{{{lock}}}", f"{1700000000000 + i}-0", "outcome", outcome, "owner", text() + ":1",
              "end", chance.choice(("exited", "stopped", text())), "value", i, "held", 5, "once", text(),
              "leftovers", text(), *fields())


def job(lock):
    """Real jobs, with texts from their command lines: one that holds, and slots with names."""
    resources = ",".join({re.sub("[,\r\n\x1b]", "", text()) or "r" for _ in range(3)})
    rlock("acquire", lock, "--lease", "10m", "--reason", text())
    rlock("acquire", "--from", resources, "--lease", "10m", "--reason", text(), lock + "pool")
    rlock("run", "--history", "--once", text() or "k", "--reason", text(), lock + "once", "--", "true")
    rlock("run", "--history", lock + "failed", "--", "sh", "-c", "exit 3", text())


def rlock(*arguments):
    done = subprocess.run([os.environ["RLOCK"], *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return done.stdout.decode()


def shown(locks):
    """Everything that may be in a job's log."""
    one = chance.choice(locks)
    yield from (("status", name) for name in locks)
    yield from (("status",), ("status", "-v", *locks), ("status", "--json"), ("status", "--names"), ("status", "--html"))
    yield from (("status", "--prometheus"), ("status", "--succeeded-within", "1h", *locks), ("status", "--is-held", *locks))
    yield from (("history",), ("history", "--json"), ("history", "--html"))
    yield from (("history", "--failed", one), ("doctor",), ("doctor", "--json"), ("config", f"--config={one}"))
    yield from (("run", "-n", "-v", one, "--", "true"), ("run", "-n", "--log-format", "json", one, "--", "true"))
    yield from (("run", "--status-fd", "1", "-w", "1s", *locks, "--", "true"), ("release", one, "--owner", text() + ":1"))
    yield from (("renew", one, "--owner", text() + ":1"), ("acquire", "--export", one, one + "2", one + "\n3"))
    yield from (("run", "-n", one, text(), text()), ("run", text() + "\n"), (text(),), ("run", "--" + text(), one))
    yield from (("release", "--forget", one, text()), ("acquire", "--export", "--lease", "1m", name(), name()))
    yield from (("force-unlock", "--yes", "--slot", text() or "x", one), ("force-unlock", "--yes", "--now", one))
    yield ("force-unlock", "--yes", "--now", one)


def obeyed(output):
    for line in re.split("\r\n|\n|\r", output):  # as .NET reads lines
        for plain in {line, COLOURS.sub("", line)}:
            for runner, command in RUNNERS.items():
                if command.search(plain):
                    yield runner, plain
    for runner in "GitLab", "Travis":
        if RUNNERS[runner].search(output):
            yield runner, output


wrong = said = 0
for _ in range(rounds):
    redis("flushall")
    locks = [name() for _ in range(3)]
    for number, lock in enumerate(locks):
        plant(lock, number == 2) if number else job(lock)
    for arguments in shown(locks):
        arguments = [word.replace("\0", "") for word in arguments]
        output = rlock(*arguments)
        said += len(output) > 0
        for runner, line in obeyed(output):
            wrong += 1
            print(f"seed {seed}: {runner}: rlock {arguments}: {line!r}")
assert said > 20 * rounds, "it shows nothing"
sys.exit(wrong > 0)
