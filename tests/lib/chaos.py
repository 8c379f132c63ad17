"""What the *_chaos.py scripts share: a real server in the current folder, jobs under `rlock run` that are killed,
stopped and cut off at random, and figures from the jobs' logs (see witness.sh).
"""
import os
import random
import signal
import subprocess
import sys
import time

import servers
from servers import wait_until

WITNESS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "witness.sh")
LEASE = 5  # seconds that a busy machine can keep; also the time for a waiter to take the lock that it was given
LONGEST_LOOK = 35  # after this long each waiter looks by itself, regardless of missed messages; see src/lock/wait.cc
BOUND = 60  # longer than any lease, grant and look together


class Server(servers.Server):
    def __init__(self):
        self.restarts = 0
        super().__init__("server", "--appendonly", "yes", "--appendfsync", "always")
        os.environ["RLOCK_URL"] = self.url()

    def cli(self, *words):
        return subprocess.run(["redis-cli", "-s", self.socket, *words], capture_output=True, text=True).stdout.strip()

    def crash(self):
        self.kill()
        self.start()
        self.restarts += 1

    def keys(self):
        """All keys except permanent ones: fencing tokens, and unused semaphores."""
        keys = [key for key in self.cli("keys", "*").split() if not key.startswith("redisson_lock_token:")]
        idle = [key for key in keys if self.cli("hget", f"rlock:holder:{{{key}}}", "made") == "1"
                and f"{{{key}}}:timeout" not in keys]
        return [key for key in keys if key not in idle and key not in [f"rlock:holder:{{{key}}}" for key in idle]]

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Job:
    """One `rlock run`. Its number is the id in the log."""

    # Without messages, because one would come with each restart of the server.
    def __init__(self, number, command, kind, messages=subprocess.DEVNULL):
        self.number, self.kind = number, kind
        self.started = self.alive_since = time.time()  # alive: it was not stopped after that
        self.ended_at = None  # or killed
        self.process = subprocess.Popen(command, stderr=messages)


class Jobs:
    def __init__(self, rlock):
        self.rlock = rlock
        self.all, self.running, self.stopped = [], [], []
        open("log", "w").close()  # there even if none of them ever runs

    def start(self, options, rule, files, seconds, kind=""):
        """`options` are for rlock run, with the names; the rest is for witness.sh."""
        number = len(self.all)
        job = Job(number, [self.rlock, "run", "-q", "-k", "200ms", *options, "--", "bash", WITNESS, str(number),
                           str(seconds), rule, *files], kind)
        self.all.append(job)
        self.running.append(job)
        return job

    def collect(self):
        for job in [job for job in self.running if job.process.poll() is not None]:
            self.running.remove(job)
            job.ended_at = job.ended_at or time.time()

    def kill(self, job):
        job.process.kill()
        job.ended_at = time.time()

    def stop(self, job, seconds):
        job.process.send_signal(signal.SIGSTOP)
        job.alive_since = float("inf")
        self.stopped.append((time.monotonic() + seconds, job))

    def let_go(self, everyone=False):
        for entry in [entry for entry in self.stopped if everyone or entry[0] < time.monotonic()]:
            self.stopped.remove(entry)
            entry[1].process.send_signal(signal.SIGCONT)
            if not any(job is entry[1] for _, job in self.stopped):
                entry[1].alive_since = time.time()

    def drain(self):
        """From now on nothing disturbs them: every living job gets the lock and ends."""
        self.let_go(everyone=True)

        def none_left():
            self.collect()
            return not self.running

        wait_until(none_left, BOUND)

    def ends(self):
        """The number of jobs for each exit status."""
        statuses = [job.process.returncode for job in self.all if job.process.returncode is not None]
        return {status: statuses.count(status) for status in sorted(set(statuses))}

    def end(self):
        for job in self.running:
            job.process.kill()


def under_fire(server, jobs, seconds, workers, start_one, odds):
    """Keeps that many jobs alive with start_one(), and does one thing of `odds` to one of them about every 50 ms, or to
    the server. Then waits until all have ended.
    """
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        jobs.collect()
        jobs.let_go()
        while len(jobs.running) < workers:
            start_one()
        victim = random.choice(jobs.running)
        what = random.choices(["nothing", *odds], [1 - sum(odds.values()), *odds.values()])[0]
        if what == "kill":
            jobs.kill(victim)
        elif what == "stop":
            jobs.stop(victim, random.uniform(0.1, 3))
        elif what == "cut off":
            server.cli("client", "kill", "type", random.choice(("pubsub", "normal")))
        elif what == "forget scripts":
            server.cli("script", "flush")
        elif what == "crash":
            server.crash()
        time.sleep(random.uniform(0, 0.1))
    jobs.drain()


class Log:
    """The log of the jobs: when each began and ended, and how many found another one at the same time."""

    def __init__(self):
        self.begins, self.ends, self.overlaps = {}, {}, 0
        for line in open("log"):
            what, number, when = line.split()
            if what == "overlap":
                self.overlaps += 1
            else:
                (self.begins if what == "begin" else self.ends)[int(number)] = float(when)

    def waited_until(self, job):
        return self.begins.get(job.number, job.ended_at or time.time())

    def longest_wait(self, jobs):
        """Seconds from when a job was started, or was let go for the last time, until it began, ended or was killed."""
        return max((self.waited_until(job) - job.alive_since for job in jobs), default=0)

    def most_overtaken(self, jobs, everybody):
        """How many began before one of the jobs, although they came later: by a second, for a job is not in the queue
        as soon as it is started.
        """
        began = [(other.started, self.begins[other.number]) for other in everybody if other.number in self.begins]
        return max((sum(started > job.alive_since + 1 and begin < self.waited_until(job) for started, begin in began)
                    for job in jobs), default=0)

    def peak(self, jobs):
        """How many of them ran at once, of those that finished."""
        steps = []
        for job in jobs:
            if job.number in self.ends:
                steps += [(self.begins[job.number], 1), (self.ends[job.number], -1)]
        running = peak = 0
        for _, step in sorted(steps):
            running += step
            peak = max(peak, running)
        return peak


def bound_on_waits(log, workers):
    """Seconds that nobody who lives may wait. At worst it is told nothing, and looks by itself; the one that has the
    lock then has died with it; and everybody else stands in front. What a turn takes is what it took here, on the
    average, twice: on this machine, with faults like these.
    """
    times = sorted(log.begins.values())
    turn = (times[-1] - times[0]) / max(len(times) - 1, 1)
    return LONGEST_LOOK + LEASE + 2 * workers * turn


def bound_on_overtaking(workers):
    """By how many that come later anybody may be overtaken. A waiter that is cut off stands aside until it listens
    again, for a part of a second, and goes back to its place then: meanwhile others pass, as many as wait at most.
    Twice that, for it may be cut off again. One that starves is overtaken by all that come.
    """
    return 2 * workers


def gone(server):
    """Waits until nothing is left, as long as the holds of dead jobs may stay. Returns what is left then."""
    wait_until(lambda: not server.keys(), 3 * LEASE)
    return server.keys()


def verdict(figures, faults):
    """Prints both, and exits with 1 if a fault is true. The faults are pairs of a description and its truth."""
    print(figures)
    found = [what for what, is_one in faults.items() if is_one]
    if found:
        print("FAULTS: " + ", ".join(found))
    sys.exit(bool(found))
