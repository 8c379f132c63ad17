#!/usr/bin/env python3
"""once_chaos.py RLOCK SECONDS WORKERS SEED: jobs with --once are killed, stopped and cut off, every twentieth reply is
lost, and their server forgets scripts and is restarted, at random. Half of the commands fail.

Exits with 0 if nothing was run again after a success that was remembered, no failure was ever remembered, and each
success that was not remembered had a message.
"""
import collections
import json
import os
import random
import socket
import sys
import threading

from chaos import LEASE, Job, Jobs, Server, gone, under_fire, verdict

rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
ODDS = {"kill": 0.1, "stop": 0.1, "cut off": 0.1, "forget scripts": 0.05, "crash": 0.02}
# Writes one line when it begins and one when it succeeds, which come in the order of what has happened.
COMMAND = 'echo "begin $1 $2" >>log; sleep "$3"; [ "$4" = ok ] || exit 1; echo "ok $1 $2" >>log'
lost = 0


def carry(source, target, loses):
    """Passes on what comes from the source, until a piece is to be lost: then both connections end."""
    global lost
    while True:
        try:
            piece = source.recv(65536)
        except OSError:
            piece = b""
        drop = loses and piece and random.random() < 0.05
        lost += bool(drop)
        if not piece or drop:
            break
        try:
            target.sendall(piece)
        except OSError:
            break
    for end in (source, target):
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def lose_replies(path, server):
    door = socket.socket(socket.AF_UNIX)
    door.bind(path)
    door.listen(128)

    def serve():
        while True:
            client, _ = door.accept()
            upstream = socket.socket(socket.AF_UNIX)
            try:
                upstream.connect(server.socket)
            except OSError:
                client.close()
                continue
            for ends in ((client, upstream, False), (upstream, client, True)):
                threading.Thread(target=carry, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()


class OnceJobs(Jobs):
    def start_one(self):
        number, key = len(self.all), f"key-{self.key}"
        # Another key about once in twelve jobs, so that most of them meet others that want the same.
        self.key += random.random() < 0.08
        run = [self.rlock, "run", "-k", "200ms", "--lease", f"{LEASE}s", "--status-fd", "3", "--once", key, "x", "--",
               "bash", "-c", COMMAND, "job", key, str(number), str(random.randrange(9) / 100),
               random.choice(("ok", "fails"))]
        with open(f"err-{number}", "w") as err:
            command = ["sh", "-c", 'exec "$@" 3>"$0"', f"status-{number}", *run]
            job = Job(number, command, key, err)
        self.all.append(job)
        self.running.append(job)


def events(number):
    """The status lines of a job; none if it was killed too early, and the last one may be cut off."""
    found = []
    if not os.path.exists(f"status-{number}"):
        return found
    for line in open(f"status-{number}"):
        try:
            found.append(json.loads(line))
        except ValueError:
            pass
    return found


def judge(jobs, records):
    succeeded, remembered, faults = collections.defaultdict(list), collections.defaultdict(list), collections.Counter()
    told = silent = 0
    ok = set()
    for line in open("log"):
        what, key, number = line.split()
        if what == "begin" and remembered.get(key):
            faults["run again after a success"] += 1
        if what == "ok":
            ok.add(int(number))
            succeeded[key].append(int(number))
            if any(event.get("remembered") for event in events(number)):
                remembered[key].append(int(number))
    faults["remembered twice"] = sum(len(some) > 1 for some in remembered.values())
    faults["a failure remembered"] = sum(key not in succeeded for key in records)
    for job in jobs.all:
        seen = events(job.number)
        end = seen[-1].get("result") if seen else None
        if end == "already-succeeded":
            told += 1
            faults["told of a success that never was"] += job.kind not in succeeded
        quiet = not os.path.getsize(f"err-{job.number}")
        if job.number in ok and job.process.returncode == 0 and job.number not in remembered[job.kind] and quiet:
            silent += 1
    faults["forgotten without a message"] = silent
    return succeeded, remembered, told, ok, faults


server = Server()
lose_replies("lossy", server)
os.environ["RLOCK_URL"] = "unix://" + os.path.abspath("lossy")
jobs = OnceJobs(rlock)
jobs.key = 0
try:
    under_fire(server, jobs, seconds, workers, jobs.start_one, ODDS)
    records = [key for key in server.cli("hkeys", "rlock:once:{x}").splitlines() if not key.startswith("\1")]
    timeless = server.cli("pttl", "rlock:once:{x}") == "-1"
    server.cli("del", "rlock:once:{x}", "rlock:totals:{x}")
    left = gone(server)
    succeeded, remembered, told, ok, faults = judge(jobs, records)
    begins = sum(line.startswith("begin") for line in open("log"))
    forgotten = len(ok) - sum(len(some) for some in remembered.values())
    verdict(f"{len(jobs.all)} jobs, {begins} ran, {len(ok)} succeeded, for {len(succeeded)} of {jobs.key + 1} keys; "
            f"{len(remembered)} reported as remembered, {forgotten} not, {told} told that another one did it; "
            f"{lost} replies lost, {server.restarts} restarts, ends {jobs.ends()}, keys left: {left or 'none'}",
            {**{what: number for what, number in faults.items()},
             "a record without an end": timeless, "nothing was remembered": not remembered, "nobody was told": not told,
             f"{len(jobs.running)} still waiting": jobs.running, "keys left": left,
             "an odd end": set(jobs.ends()) - {0, 1, -9, 74, 69}})
finally:
    jobs.end()
    server.stop()
