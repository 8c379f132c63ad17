#!/usr/bin/env python3
"""queue_chaos.py RLOCK SECONDS WORKERS SEED: waiters of one lock are killed, stopped and cut off, and their server
forgets scripts and is restarted, at random.

Exits with 0 if no two jobs ever ran at once, every living one got the lock in the end, nobody waited too long, and
nothing of the queue is left.
"""
import random
import sys

from chaos import LEASE, Jobs, Log, Server, bound_on_overtaking, bound_on_waits, gone, under_fire, verdict

rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
server, jobs = Server(), Jobs(rlock)
ODDS = {"kill": 0.25, "stop": 0.2, "cut off": 0.15, "forget scripts": 0.1, "crash": 0.01}


def start_one():
    jobs.start(["--lease", f"{LEASE}s", "x"], "alone", ["x.held"], random.randrange(9) / 100)


try:
    under_fire(server, jobs, seconds, workers, start_one, ODDS)
    left = gone(server)
    log, ends = Log(), jobs.ends()
    bound, longest = bound_on_waits(log, workers), log.longest_wait(jobs.all)
    overtaken, most = log.most_overtaken(jobs.all, jobs.all), bound_on_overtaking(workers)
    verdict(f"{len(jobs.all)} jobs, {len(log.begins)} ran, {log.overlaps} overlaps, {server.restarts} restarts, "
            f"ends {ends}, longest wait {longest:.1f} s (bound {bound:.0f} s), overtaken by {overtaken} at most "
            f"(bound {most}), keys left: {left or 'none'}",
            {"two at once": log.overlaps,
             "someone waited for too long": longest > bound,
             "someone was overtaken too often": overtaken > most,
             f"{len(jobs.running)} still waiting": jobs.running,
             "keys left": left,
             # 0: it ran. -9: we killed it. 74: the lock may have been lost while the server was unreachable. 69: the
             # server was unreachable at the start, or for longer than a lease.
             "an odd end": set(ends) - {0, -9, 74, 69}})
finally:
    jobs.end()
    server.stop()
