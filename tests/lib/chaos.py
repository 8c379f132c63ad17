#!/usr/bin/python3
"""chaos.py KIND RLOCK AMOUNT WORKERS SEED: for AMOUNT seconds WORKERS jobs under `rlock run` are alive, which are killed,
stopped and cut off at random, and their server forgets scripts and is restarted, in the current folder.

Prints figures from the jobs' logs (see witness.sh). Exits with 0 if nothing was wrong. The kinds are the classes below Fire.
"""
import collections
import json
import os
import random
import signal
import subprocess
import sys
import time

import servers
from servers import need, wait_until

RLOCK, AMOUNT, WORKERS = sys.argv[2], float(sys.argv[3]), int(sys.argv[4])
LEASE = 5  # seconds that a busy machine can keep; also the time for a waiter to take the lock that it was given
LONGEST_LOOK = 35  # after this long each waiter looks by itself, regardless of missed messages; see src/lock/wait.cc
BOUND = 60  # longer than any lease, grant and look together
SURE = ["--appendonly", "yes", "--appendfsync", "always"]


class Server(servers.Server):
    def __init__(self):
        super().__init__("server", *SURE)
        os.environ["RLOCK_URL"] = self.url()

    def cut_off(self):
        self.redis.execute_command("client", "kill", "type", random.choice(("pubsub", "normal")))

    def keys(self):
        """All keys except permanent ones: fencing tokens, and semaphores without a permit that lives. One that has ended
        stays there until the next request.
        """
        seconds, micros = self.redis.time()
        now = seconds * 1000 + micros // 1000
        keys = {key for key in self.redis.keys() if not key.startswith("redisson_lock_token:")}
        for key in sorted(keys):
            holder, permits = f"rlock:holder:{{{key}}}", f"{{{key}}}:timeout"
            if holder in keys and self.redis.hget(holder, "made") == "1" and not self.redis.zcount(permits, now, "+inf"):
                keys -= {key, holder, permits}
        return sorted(keys)


class Job:
    """One `rlock run`. Its number is the id in the log."""

    # Without messages, because one would come with each restart of the server.
    def __init__(self, number, command, kind, messages):
        self.number, self.kind = number, kind
        self.started = self.alive_since = time.time()  # alive: it was not stopped after that
        self.ended_at = None  # or killed
        self.process = subprocess.Popen(command, stderr=messages)

    def kill(self):
        self.process.kill()
        self.ended_at = time.time()


class Jobs:
    def __init__(self):
        self.all, self.running, self.stopped = [], [], []
        open("log", "w").close()  # there even if none of them ever runs

    def begin(self, command, kind="", messages=subprocess.DEVNULL):
        self.all.append(Job(len(self.all), command, kind, messages))
        self.running.append(self.all[-1])

    def start(self, options, rule, files, seconds, kind=""):
        """`options` are for rlock run, with the names; the rest is for witness.sh."""
        self.begin([RLOCK, "run", "-q", "-k", "200ms", "--lease", f"{LEASE}s", *options, "--", "bash",
                    servers.LIB + "/witness.sh", str(len(self.all)), str(seconds), rule, *files], kind)

    def collect(self):
        for job in [job for job in self.running if job.process.poll() is not None]:
            self.running.remove(job)
            job.ended_at = job.ended_at or time.time()

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
        return dict(collections.Counter(job.process.returncode for job in self.all if job.process.returncode is not None))


class Log:
    """The log of the jobs: when each began and ended, and how many found another one at the same time."""

    def __init__(self):
        self.begins, self.ends, self.overlaps = {}, {}, 0
        for what, number, when in map(str.split, open("log")):
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
        steps = [step for job in jobs if job.number in self.ends
                 for step in ((self.begins[job.number], 1), (self.ends[job.number], -1))]
        running = peak = 0
        for _, step in sorted(steps):
            running += step
            peak = max(peak, running)
        return peak

    def bound_on_waits(self):
        """Seconds that nobody who lives may wait. At worst it is told nothing, and looks by itself; the one that has the
        lock then has died with it; and everybody else stands in front. What a turn takes is what it took here, on the
        average, twice: on this machine, with faults like these.
        """
        times = sorted(self.begins.values())
        turn = (times[-1] - times[0]) / max(len(times) - 1, 1)
        return LONGEST_LOOK + LEASE + 2 * WORKERS * turn


# By how many that come later anybody may be overtaken. A waiter that is cut off stands aside until it listens again, for a
# part of a second, and goes back to its place then: meanwhile others pass, as many as wait at most. Twice that, for it may
# be cut off again. One that starves is overtaken by all that come.
MOST_OVERTAKEN = 2 * WORKERS


class Fire:
    """Does one thing of `odds` to a job about every 50 ms, or to the server; then waits until all have ended. Subclasses
    have start_one(), and judge(), which returns figures, and what is a fault if it is true.
    """
    odds = {}
    may_end = {0, -9}  # it ran, or we killed it
    pause = 0.1

    def __init__(self):
        self.jobs, self.done, self.until = Jobs(), collections.Counter(), time.monotonic() + AMOUNT
        self.server = self.make_server()

    def make_server(self):
        return Server()

    def fill(self):
        self.jobs.collect()
        self.jobs.let_go()
        while len(self.jobs.running) < WORKERS:
            self.start_one()

    def disturb(self):
        victim = random.choice(self.jobs.running)
        what = random.choices(["nothing", *self.odds], [1 - sum(self.odds.values()), *self.odds.values()])[0]
        self.done[what] += 1
        if what == "kill":
            victim.kill()
        elif what == "stop":
            self.jobs.stop(victim, random.uniform(0.1, 3))
        elif what == "cut off":
            self.server.cut_off()
        elif what == "forget scripts":
            self.server.redis.script_flush()
        elif what == "crash":
            self.server.kill()
            self.server.start()

    def burn(self):
        while time.monotonic() < self.until:
            self.fill()
            self.disturb()
            time.sleep(random.uniform(0, self.pause))
        self.jobs.drain()

    def left(self):
        """Waits until nothing is left, as long as the holds of dead jobs may stay. Returns what is left then."""
        wait_until(lambda: not self.server.keys(), 3 * LEASE)
        return self.server.keys()

    def judge_waits(self, log, jobs, more=0):
        bound, longest = log.bound_on_waits() + more, log.longest_wait(jobs)
        return f"longest wait {longest:.1f} s (bound {bound:.0f} s)", {"someone waited for too long": longest > bound}

    def judge_order(self, log, jobs):
        waits, faults = self.judge_waits(log, jobs)
        most = log.most_overtaken(jobs, self.jobs.all)
        return (f"{waits}, overtaken by {most} at most (bound {MOST_OVERTAKEN})",
                {**faults, "someone was overtaken too often": most > MOST_OVERTAKEN})

    def well(self):
        """Prints the figures, and the faults. Whether there are none."""
        try:
            self.burn()
            left, log, ends = self.left(), Log(), self.jobs.ends()
            figures, faults = self.judge(log)
            print(f"{len(self.jobs.all)} jobs, {len(log.begins)} ran, {log.overlaps} overlaps, {figures}, ends {ends}, "
                  f"done {dict(self.done)}, keys left: {left or 'none'}")
            faults |= {"two at once": log.overlaps, f"{len(self.jobs.running)} still waiting": self.jobs.running,
                       "keys left": left, "an odd end": set(ends) - self.may_end}
            found = [what for what, is_one in faults.items() if is_one]
            if found:
                print("FAULTS: " + ", ".join(found))
            return not found
        finally:
            for job in self.jobs.running:
                job.process.kill()


# 74: the lock may have been lost while the server was unreachable. 69: the server was unreachable at the start, or for longer
# than a lease.
WITH_CRASHES = {0, -9, 74, 69}


class Queue(Fire):
    """One lock: no two jobs ever run at once, all that live get the lock in the end, and nobody waits too long."""
    odds = {"kill": 0.25, "stop": 0.2, "cut off": 0.15, "forget scripts": 0.1, "crash": 0.01}
    may_end = WITH_CRASHES

    def start_one(self):
        self.jobs.start(["x"], "alone", ["x.held"], random.randrange(9) / 100)

    def judge(self, log):
        return self.judge_order(log, self.jobs.all)


class Readers(Fire):
    """Readers and writers of one lock, three to one: writers are always alone, readers are not, no writer waits too long."""
    odds = {"kill": 0.04, "stop": 0.04, "cut off": 0.03, "forget scripts": 0.03}

    def start_one(self):
        option, rule, kind = ("-x", "alone", "writer") if random.random() < 0.25 else ("-s", "beside", "reader")
        self.jobs.start([option, "x"], rule, ["x.held"], random.randrange(5, 20) / 100, kind)

    def judge(self, log):
        readers, writers = ([job for job in self.jobs.all if job.kind == kind] for kind in ("reader", "writer"))
        figures, faults = self.judge_order(log, writers)
        peak = log.peak(readers)
        return (f"{len(readers)} readers, up to {peak} at once, {len(writers)} writers: {figures}",
                {**faults, "readers were alone": peak < 2})


class Pools(Fire):
    """One to five of five named resources: nobody finds another one at a resource of its own, and each has as many as it
    wants."""
    odds = {"kill": 0.2, "stop": 0.15, "cut off": 0.15, "forget scripts": 0.1, "crash": 0.01}
    may_end = WITH_CRASHES

    def start_one(self):
        takes = str(random.choice((1, 1, 1, 2, 2, 3, 5)))
        seconds = LEASE - 2 if random.random() < 0.1 else random.randrange(30) / 100  # some renew
        self.jobs.start(["--from", "gpu0,gpu1,gpu2,gpu3,gpu4", "--take", takes, "x"], "named", [takes], seconds)

    def judge(self, log):
        figures, faults = self.judge_waits(log, self.jobs.all, LEASE)
        peak = log.peak(self.jobs.all)
        return f"up to {peak} at once, {figures}", {**faults, "never two at once": peak < 2}


class Slots(Fire):
    """One of those that share or wait for three slots is killed each second: there are never more than three at once, and at
    least nine tenths of the slots' time are used.

    Ideal is that a slot is taken up as soon as it is given back, in the time that a job takes to start here under a free
    lock: that is measured all the while, so that a busy machine does not matter. Who is killed costs nothing more: the
    guards of one that runs end its tree and give its slot back at once; one that waits has none. Only one that was given a
    slot and has not yet begun takes it along, until its lease ends: that is taken off the ideal, too.
    """
    slots = 3

    def start_one(self):
        self.jobs.start(["--slots", str(self.slots), "x"], "one-of", [f"slot{number}" for number in range(self.slots)],
                        random.randrange(150, 250) / 100)

    def taken_along(self, job):
        """Seconds for which the server keeps a slot for one that was killed before it began."""
        if job.number in Log().begins:
            return 0
        status = subprocess.run([RLOCK, "status", "--json", "x"], capture_output=True, text=True).stdout
        return sum(holder["expires_in_ms"] / 1000 for holder in json.loads(status)[0].get("holders", [])
                   if holder.get("pid") == job.process.pid)

    def time_to_start(self):
        """Seconds until a job runs that need not wait."""
        begin = time.time()
        return float(subprocess.run([RLOCK, "run", "--slots", "1", "free", "--", "bash", "-c", "echo $EPOCHREALTIME"],
                                    capture_output=True, text=True).stdout) - begin

    def burn(self):
        self.fill()
        wait_until(lambda: len(Log().begins) >= self.slots, 10)
        self.begin, self.lost, self.starts = time.time(), 0, []
        while time.time() < self.begin + AMOUNT:
            self.fill()
            if time.time() > self.begin + len(self.starts) + 1:
                begun, runs = Log().begins, random.choice((True, False))
                victim = random.choice([job for job in self.jobs.running if (job.number in begun) == runs] or self.jobs.running)
                victim.kill()
                self.lost += self.taken_along(victim)
                self.starts.append(self.time_to_start())
            time.sleep(0.02)
        self.end = time.time()
        self.jobs.drain()

    def left(self):
        def nothing():
            """A slot that was taken along comes back with the next one that is used."""
            subprocess.run([RLOCK, "run", "-q", "-n", "--slots", str(self.slots), "x", "--", "true"], stderr=subprocess.DEVNULL)
            return not self.server.keys()

        wait_until(nothing, 3 * LEASE)
        return super().left()

    def used(self, log):
        """Seconds that jobs ran, all together."""
        until = {job.number: log.ends.get(job.number, job.ended_at or self.end) for job in self.jobs.all}
        return sum(max(min(until[number], self.end) - max(began, self.begin), 0) for number, began in log.begins.items())

    def judge(self, log):
        start = sum(self.starts) / len(self.starts)
        hand_overs = sum(when > self.begin for when in log.begins.values())
        ideal = self.slots * (self.end - self.begin) - self.lost - start * hand_overs
        ratio, peak = self.used(log) / ideal, log.peak(self.jobs.all)
        return (f"{len(self.starts)} killed, up to {peak} at once, a start takes {start * 1000:.0f} ms, {ratio:.1%} of the "
                f"ideal {ideal:.1f} slot-seconds used",
                {"more at once than there are slots": peak > self.slots, "slots stood empty": ratio < 0.9})


class Once(Fire):
    """Jobs with --once, half of which fail; every twentieth reply is lost. Nothing is run again after a success that was
    remembered, no failure is ever remembered, and each success that was not remembered has a message.
    """
    odds = {"kill": 0.1, "stop": 0.1, "cut off": 0.1, "forget scripts": 0.05, "crash": 0.02}
    may_end = WITH_CRASHES | {1}
    # Writes one line when it begins and one when it succeeds, which come in the order of what has happened.
    command = 'echo "begin $1 $2" >>runs; sleep "$3"; [ "$4" = ok ] || exit 1; echo "ok $1 $2" >>runs'
    key = 0

    def make_server(self):
        server = Server()
        self.proxy = subprocess.Popen([*servers.ends_with_us(), sys.executable, servers.LIB + "/proxy.py", "lossy",
                                       server.socket, "passed"],
                                      env={**os.environ, "PROXY_LOSES": "0.05"}, stderr=subprocess.DEVNULL)
        need(lambda: os.path.exists("lossy"), "the proxy listens")
        os.environ["RLOCK_URL"] = "unix://" + os.path.abspath("lossy")
        return server

    def start_one(self):
        number, key = len(self.jobs.all), f"key-{self.key}"
        # Another key about once in twelve jobs, so that most of them meet others that want the same.
        self.key += random.random() < 0.08
        command = ["sh", "-c", 'exec "$@" 3>"$0"', f"status-{number}", RLOCK, "run", "-k", "200ms", "--lease", f"{LEASE}s",
                   "--status-fd", "3", "--once", key, "x", "--", "bash", "-c", self.command, "job", key, str(number),
                   str(random.randrange(9) / 100), random.choice(("ok", "fails"))]
        with open(f"err-{number}", "w") as err:
            self.jobs.begin(command, key, err)

    @staticmethod
    def events(job):
        """The status lines of a job; none if it was killed too early, and the last one may be cut off."""
        found = []
        if os.path.exists(f"status-{job}"):
            for line in open(f"status-{job}"):
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
        return found

    def left(self):
        self.records = [key for key in self.server.redis.hkeys("rlock:once:{x}") if not key.startswith("\1")]
        self.timeless = self.server.redis.pttl("rlock:once:{x}") == -1
        self.server.redis.delete("rlock:once:{x}", "rlock:totals:{x}")
        return super().left()

    def judge(self, log):
        succeeded, remembered, faults = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
        begins = told = 0
        for what, key, number in map(str.split, open("runs")):
            if what == "begin":
                begins += 1
                faults["run again after a success"] += bool(remembered.get(key))
            else:
                succeeded[key].append(int(number))
                if any(event.get("remembered") for event in self.events(number)):
                    remembered[key].append(int(number))
        faults["remembered twice"] = sum(len(some) > 1 for some in remembered.values())
        faults["a failure remembered"] = sum(key not in succeeded for key in self.records)
        for job in self.jobs.all:
            seen = self.events(job.number)
            if seen and seen[-1].get("result") == "already-succeeded":
                told += 1
                faults["told of a success that never was"] += job.kind not in succeeded
            forgotten = job.number in succeeded[job.kind] and job.number not in remembered[job.kind]
            if forgotten and job.process.returncode == 0 and not os.path.getsize(f"err-{job.number}"):
                faults["forgotten without a message"] += 1
        ok, known = (sum(map(len, some.values())) for some in (succeeded, remembered))
        lost = sum("lost" in line for line in open("passed"))
        return (f"{begins} began, {ok} succeeded, {known} of them are remembered, for {self.key + 1} keys, {told} told that "
                f"another one did it; {lost} replies lost",
                {**faults, "a record without an end": self.timeless, "nothing was remembered": not known,
                 "nobody was told": not told, "no reply was lost": not lost})


if __name__ == "__main__":
    random.seed(int(sys.argv[5]))
    kinds = {one.__name__.lower(): one for one in Fire.__subclasses__()}
    sys.exit(not kinds[sys.argv[1]]().well())
