#!/usr/bin/env python3
"""slots_chaos.py RLOCK SECONDS WORKERS SEED: one of those that share or wait for three slots is killed with -9 each
second.

Ends with 0 if there were never more than three at once, at least nine tenths of the slots' time were used, everyone who
lived had a slot in the end and nothing is left.

Ideal is that a slot is taken up as soon as it is given back, in the time that a job takes to start here under a free
lock: that is measured all the while, so that a busy machine does not matter. Who is killed costs nothing more: the
guards of one that runs end its tree and give its slot back at once; one that waits has none. Only one that was given a
slot and has not yet begun takes it along, until its lease ends: that is taken off the ideal, too.
"""
import json
import random
import subprocess
import sys
import time

from chaos import LEASE, Jobs, Log, Server, gone, verdict, wait_until

SLOTS = 3
rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
server, jobs = Server(), Jobs(rlock)


def start_one():
    jobs.start(["--lease", f"{LEASE}s", "--slots", str(SLOTS), "x"], "one-of",
               [f"slot{number}" for number in range(SLOTS)], random.randrange(150, 250) / 100)


def taken_along(job):
    """Seconds for which the server keeps a slot for one that was killed before it began."""
    if job.number in Log().begins:
        return 0
    status = subprocess.run([rlock, "status", "--json", "x"], capture_output=True, text=True).stdout
    return sum(holder["expires_in_ms"] / 1000 for holder in json.loads(status)[0].get("holders", [])
               if holder.get("pid") == job.process.pid)


def time_to_start():
    """Seconds until a job runs that need not wait."""
    begin = time.time()
    return float(subprocess.run([rlock, "run", "--slots", "1", "free", "--", "bash", "-c", "echo $EPOCHREALTIME"],
                                capture_output=True, text=True).stdout) - begin


def used(log, begin, end):
    """Seconds that jobs ran between the two, all together."""
    until = {job.number: log.ends.get(job.number, job.ended_at or end) for job in jobs.all}
    return sum(max(min(until[number], end) - max(began, begin), 0) for number, began in log.begins.items())


def leave_nothing():
    """A slot that was taken along comes back with the next one that is used."""
    subprocess.run([rlock, "run", "-q", "-n", "--slots", str(SLOTS), "x", "--", "true"], stderr=subprocess.DEVNULL)
    return not server.keys()


try:
    while len(jobs.running) < workers:
        start_one()
    wait_until(lambda: len(Log().begins) >= SLOTS, 10)
    begin, lost, starts = time.time(), 0, []
    while time.time() < begin + seconds:
        jobs.collect()
        while len(jobs.running) < workers:
            start_one()
        if time.time() > begin + len(starts) + 1:
            begun, runs = Log().begins, random.choice((True, False))
            victim = random.choice([job for job in jobs.running if (job.number in begun) == runs] or jobs.running)
            jobs.kill(victim)
            lost += taken_along(victim)
            starts.append(time_to_start())
        time.sleep(0.02)
    end = time.time()
    jobs.drain()
    wait_until(leave_nothing, 3 * LEASE)
    left = gone(server)
    log, ends = Log(), jobs.ends()
    start, hand_overs = sum(starts) / len(starts), sum(when > begin for when in log.begins.values())
    ideal = SLOTS * (end - begin) - lost - start * hand_overs
    ratio, peak = used(log, begin, end) / ideal, log.peak(jobs.all)
    verdict(f"{len(log.begins)} jobs, {len(starts)} killed, up to {peak} at once, {log.overlaps} overlaps, "
            f"ends {ends}, a start takes {start * 1000:.0f} ms, {ratio:.1%} of the ideal {ideal:.1f} slot-seconds "
            f"used, keys left: {left or 'none'}",
            {"more at once than there are slots": log.overlaps or peak > SLOTS,
             "slots stood empty": ratio < 0.9,
             f"{len(jobs.running)} still waiting": jobs.running,
             "keys left": left,
             "an odd end": set(ends) - {0, -9}})
finally:
    jobs.end()
    server.stop()
