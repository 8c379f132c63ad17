#!/usr/bin/env python3
"""readers_chaos.py RLOCK SECONDS WORKERS SEED: readers and writers of one lock, three to one, are killed, stopped and
cut off now and then, and their server forgets scripts.

Ends with 0 if writers were always alone, readers were not, no writer waited for too long, everyone who lived had the
lock in the end and nothing is left.
"""
import random
import sys

from chaos import LEASE, Jobs, Log, Server, bound_on_overtaking, bound_on_waits, gone, under_fire, verdict

rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
random.seed(int(seed))
server, jobs = Server(), Jobs(rlock)
ODDS = {"kill": 0.04, "stop": 0.04, "cut off": 0.03, "forget scripts": 0.03}


def start_one():
    writes = random.random() < 0.25
    jobs.start(["--lease", f"{LEASE}s", "-x" if writes else "-s", "x"], "alone" if writes else "beside", ["x.held"],
               random.randrange(5, 20) / 100, "writer" if writes else "reader")


try:
    under_fire(server, jobs, seconds, workers, start_one, ODDS)
    left = gone(server)
    log = Log()
    readers, writers = ([job for job in jobs.all if job.kind == kind] for kind in ("reader", "writer"))
    bound, longest = bound_on_waits(log, workers), log.longest_wait(writers)
    peak, ends = log.peak(readers), jobs.ends()
    overtaken, most = log.most_overtaken(writers, jobs.all), bound_on_overtaking(workers)
    verdict(f"{len(readers)} readers, up to {peak} at once, {len(writers)} writers, {log.overlaps} overlaps, "
            f"ends {ends}, longest wait of a writer {longest:.1f} s (bound {bound:.0f} s), overtaken by {overtaken} "
            f"at most (bound {most}); longest wait of a reader {log.longest_wait(readers):.1f} s, "
            f"keys left: {left or 'none'}",
            {"a writer was not alone": log.overlaps,
             "readers were alone": peak < 2,
             "a writer waited for too long": longest > bound,
             "a writer was overtaken too often": overtaken > most,
             f"{len(jobs.running)} still waiting": jobs.running,
             "keys left": left,
             "an odd end": set(ends) - {0, -9}})
finally:
    jobs.end()
    server.stop()
