#!/usr/bin/env python3
"""deadlock_chaos.py RLOCK SECONDS WORKERS SEED: workers nest two or three locks of each kind in any order, so that they
wait for each other again and again.

Ends with 0 if everybody got on: each job had all of its locks in the end, or gave up in a deadlock that there was,
according to what the jobs have written down themselves, and nothing is left.
"""
import collections
import os
import random
import subprocess
import sys
import threading
import time

from chaos import BOUND, Server, gone, verdict

rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
server = Server()
KINDS = {"a": "plain", "b": "plain", "d": "shared", "s": "slots", "t": "slots"}
SLOTS = 2
SURE = 0.5  # before a job ended, it had seen the deadlock for a second
Step = collections.namedtuple("Step", "event job level time")
# Writes the step down, in one write, and goes on.
NOTE = 'echo "$0 $1 $2 $(date +%s.%N)" >>log; shift 2; exec "$@"'


class Job:
    """Nested runs, one in the other. `wants`: (lock, reads) for each, the outermost first. Some take so long that the
    others look for a deadlock, and must not find one."""

    def __init__(self, number, wants):
        self.number, self.wants, self.lasts = number, wants, random.choice(["0.05", "0.05", "0.05", "3"])
        self.asked, self.got, self.ended, self.messages = {}, {}, None, ""

    def words(self):
        words = ["sleep", self.lasts]
        for level, (name, reads) in reversed(list(enumerate(self.wants))):
            kind = {"plain": [], "shared": ["-s" if reads else "-x"], "slots": ["--slots", str(SLOTS)]}[KINDS[name]]
            note = lambda event: ["sh", "-c", NOTE, event, str(self.number), str(level)]
            words = [*note("asked"), rlock, "run", *kind, name, "--", *note("got"), "sh", "-c", 'sleep 0.1; "$@"', "-", *words]
        return words

    def run(self):
        began = time.time()
        job = subprocess.run(self.words(), stderr=subprocess.PIPE, text=True)
        self.ended, self.took, self.status, self.messages = time.time(), time.time() - began, job.returncode, job.stderr

    def level_at(self, when):
        """(how many locks it holds, whether it waits for the next one), or None if it does not run."""
        if not self.asked or when < self.asked[0] or when >= self.ended:
            return None
        held = sum(1 for at in self.got.values() if at <= when)
        return held, any(level not in self.got and at <= when - SURE / 2 or self.got.get(level, 0) > when
                         for level, at in self.asked.items() if at <= when)


def take_log(jobs):
    with open("log") as log:
        for event, job, level, at in (line.split() for line in log):
            getattr(jobs[int(job)], event)[int(level)] = float(at)


def is_stuck(victim, jobs, when):
    """Whether it would wait forever if everybody who can go on did so and ended."""
    holds, waits = {}, {}
    for job in jobs:
        held, waiting = job.level_at(when) or (0, False)
        if held:
            holds[job] = job.wants[:held]
        if waiting and held < len(job.wants):
            waits[job] = (job.asked[held], job.wants[held])

    def available(want):
        others = [reads for held in holds.values() for name, reads in held if name == want[0]]
        kind = KINDS[want[0]]
        return len(others) < SLOTS if kind == "slots" else not others or kind == "shared" and want[1] and all(others)

    moved = True
    while moved:
        moved = False
        for job in [job for job in holds if job not in waits]:
            del holds[job]
            moved = True
        for name in KINDS:  # the first waiters get what is available
            for job, (_, want) in sorted(((job, it) for job, it in waits.items() if it[1][0] == name), key=lambda it: it[1][0]):
                if not available(want):
                    break
                holds.setdefault(job, []).append(want)
                del waits[job]
                moved = True
    return victim in waits


def wants():
    names = random.sample(sorted(KINDS), random.choice([2, 2, 3]))
    return [(name, KINDS[name] == "shared" and random.random() < 0.5) for name in names]


def work(jobs, guard, end):
    while time.time() < end:
        with guard:
            job = Job(len(jobs), wants())
            jobs.append(job)
        job.run()


try:
    random.seed(seed)
    os.environ["LC_ALL"] = "C"
    jobs, guard, end = [], threading.Lock(), time.time() + seconds
    threads = [threading.Thread(target=work, args=(jobs, guard, end)) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    left = gone(server)
    take_log(jobs)
    victims = [job for job in jobs if job.status == 75]
    false = [job for job in victims if not is_stuck(job, jobs, job.ended - SURE)]
    odd = [job for job in jobs if job.status not in (0, 75)]
    silent = [job for job in victims if "not acquired: deadlock: you hold " not in job.messages]
    longest = max(job.took for job in jobs)
    for job in false + odd + silent:
        print(job.number, job.wants, job.status, job.messages)
    verdict(f"{len(jobs)} jobs, {len(victims)} deadlocks, {len(false)} false, longest job {longest:.1f} s (bound {BOUND} s), "
            f"keys left: {left or 'none'}",
            {"a job gave up without a deadlock": false,
             "a job gave up without saying why": silent,
             "a job ended in another way": odd,
             "there was no deadlock": not victims and len(jobs) > 60,
             "a job waited for too long": longest > BOUND,
             "keys are left": left})
finally:
    server.stop()
