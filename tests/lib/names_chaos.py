#!/usr/bin/env python3
"""names_chaos.py RLOCK ROUNDS WORKERS SEED: WORKERS at a time take four names of six together, in any order.

Exits with 0 if each had its names to itself, all finished, and nothing is left.
"""
import random
import sys
import time

from chaos import BOUND, Jobs, Log, Server, gone, verdict

rlock, rounds, workers, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
server, jobs = Server(), Jobs(rlock)


def start_one():
    # Any two of them have a name in common.
    names = random.sample(["a", "b", "c", "d", "e", "f"], 4)
    jobs.start(names, "alone", [name + ".held" for name in names], random.randrange(3) / 100)


try:
    begun = time.time()
    stuck = []
    while (len(jobs.all) < rounds or jobs.running) and not stuck:
        while len(jobs.running) < workers and len(jobs.all) < rounds:
            start_one()
        time.sleep(0.005)
        jobs.collect()
        stuck = [job for job in jobs.running if time.time() > job.alive_since + BOUND]
    took = time.time() - begun
    left = gone(server)
    log, ends = Log(), jobs.ends()
    verdict(f"{len(log.ends)} rounds by {workers} workers in {took:.1f} s, {log.overlaps} overlaps, ends {ends}, "
            f"longest wait {log.longest_wait(jobs.all):.1f} s (bound {BOUND} s), keys left: {left or 'none'}",
            {"two at once": log.overlaps,
             f"{len(stuck)} have waited for too long": stuck,
             "keys left": left,
             "an odd end": set(ends) - {0}})
finally:
    jobs.end()
    server.stop()
