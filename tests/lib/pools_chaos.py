#!/usr/bin/env python3
"""pools_chaos.py RLOCK SECONDS WORKERS SEED: jobs for one to five of five named resources are
killed, stopped and cut off, and their server forgets scripts and is restarted, at random.

Exits with 0 if nobody ever found another one at a resource of its own, each had as many as it wanted, every living one
got them in the end, nobody waited too long, and nothing is left.
"""
import random
import sys

from chaos import LEASE, Jobs, Log, Server, bound_on_waits, gone, under_fire, verdict

RESOURCES = ["gpu0", "gpu1", "gpu2", "gpu3", "gpu4"]
rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
server, jobs = Server(), Jobs(rlock)
ODDS = {"kill": 0.2, "stop": 0.15, "cut off": 0.15, "forget scripts": 0.1, "crash": 0.01}


def start_one():
    takes = random.choice((1, 1, 1, 2, 2, 3, 5))
    jobs.start(["--lease", f"{LEASE}s", "--from", ",".join(RESOURCES), "--take", str(takes), "x"], "named",
               [str(takes)], LEASE - 2 if random.random() < 0.1 else random.randrange(30) / 100)  # some renew


try:
    under_fire(server, jobs, seconds, workers, start_one, ODDS)
    left = gone(server)
    log, ends = Log(), jobs.ends()
    bound, longest = bound_on_waits(log, workers) + LEASE, log.longest_wait(jobs.all)
    verdict(f"{len(jobs.all)} jobs, {len(log.begins)} ran, up to {log.peak(jobs.all)} at once, {log.overlaps} overlaps, "
            f"{server.restarts} restarts, ends {ends}, longest wait {longest:.1f} s (bound {bound:.0f} s), "
            f"keys left: {left or 'none'}",
            {"two at a resource, or another number of them": log.overlaps,
             "never two at once": log.peak(jobs.all) < 2,
             "someone waited for too long": longest > bound,
             f"{len(jobs.running)} still waiting": jobs.running,
             "keys left": left,
             # As in queue_chaos.py.
             "an odd end": set(ends) - {0, -9, 74, 69}})
finally:
    jobs.end()
    server.stop()
