#!/usr/bin/env python3
"""pauses.py --rlock PROGRAM [--count N] [--longest MS]

Stops all three processes of a job for longer than the lease, like a pause of the whole machine, and continues them
in each of the six orders, N times. Prints how long the command ran after that, and fails if that was longer
than --longest (a second, which the safety margin leaves to the scheduler; 50 ms is the limit on a quiet machine), if the status is
not 74, or if anything is left.
"""
import argparse
import concurrent.futures
import itertools
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
import servers

LEASE = 3.0
# Writes the time about each millisecond.
BEATS = """import os, time
while True:
    os.write(1, b"%d\\n" % time.clock_gettime_ns(time.CLOCK_BOOTTIME))
    time.sleep(0.001)"""


def boot_time():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def one_round(rlock, order, folder):
    path = f"{folder}/beats-" + "-".join(order)
    with open(path, "wb") as beats:
        job = subprocess.Popen([rlock, "run", "-q", "--lease", f"{LEASE}s", "pause-" + "-".join(order), "--",
                                sys.executable, "-S", "-c", BEATS], stdout=beats, stderr=subprocess.DEVNULL)
    while os.path.getsize(path) < 100:
        time.sleep(0.01)
    monitor = servers.only_child(job.pid)
    command = servers.only_child(monitor)
    pids = {"frontend": job.pid, "monitor": monitor, "command": command}
    for pid in (monitor, job.pid, command):
        os.kill(pid, signal.SIGSTOP)
    time.sleep(LEASE + 0.1)
    begun = boot_time()
    for who in order:
        try:
            os.kill(pids[who], signal.SIGCONT)
        except ProcessLookupError:  # a guard that was continued before has killed it
            pass
    status = job.wait(timeout=60)
    with open(path, "rb") as beats:
        last = int(beats.read().split()[-1])
    left = [who for who, pid in pids.items() if who != "frontend" and os.path.exists(f"/proc/{pid}")]
    return max(0, last - begun) / 1e6, status, left


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rlock", required=True)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--longest", type=float, default=1000)
    options = parser.parse_args()
    rlock = os.path.abspath(options.rlock)
    failed = False
    with servers.beside_a_server("ps.") as folder:
        orders = list(itertools.permutations(("frontend", "monitor", "command")))
        with concurrent.futures.ThreadPoolExecutor(len(orders)) as lanes:
            several = list(lanes.map(
                lambda order: [one_round(rlock, order, folder) for _ in range(options.count)], orders))
        for order, rounds in zip(orders, several):
            ran = sorted(r[0] for r in rounds)
            faults = [f"status {r[1]}, left {r[2]}" for r in rounds if r[1] != 74 or r[2]]
            print(f"let go in the order {', '.join(order)}: the command ran on for p50 {ran[len(ran) // 2]:.1f} "
                  f"max {ran[-1]:.1f} ms in {len(ran)} rounds", *faults, flush=True)
            failed = failed or bool(faults) or ran[-1] > options.longest
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
