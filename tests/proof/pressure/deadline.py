#!/usr/bin/env python3
"""deadline.py [--rlock PROGRAM] [--rounds N] [--lease SECONDS] [--fifo]

How long after its deadline does a tree execute its last instruction if the guards get neither memory nor processors?
docs/proof.md, The timing proof, allows one second: K.

A job of six processes that ignore SIGTERM runs under a lock that is not renewed, as in bench/deadline, whose parts this
uses. Until the deadline,

  calm       nothing else happens
  reclaimed  the kernel takes the memory of both guards away again and again: the program's pages, and with swap also
             its data. The guards are in a memory group of their own (cgroups v1 or v2)
  crowded    eight busy loops per processor run
  favoured   one busy loop per processor runs at the highest priority of ordinary processes (nice -20), which gets 87 times
             as much as a guard
  both       reclaimed and favoured
  fifo       with --fifo only: one busy loop per processor has a real-time priority, which leaves 5 % to all others
             (sched(7), sched_rt_runtime_us). Disturbs everything else on the machine

Prints a Markdown table: from the deadline to the last instruction, median and worst; the pages of the guards that were
read from the disk again after the deadline, at most; and how much of the lease was left, at least. Needs root. Ends with 1
if a tree lived longer than K allows.
"""
import argparse
import contextlib
import importlib.machinery
import os
import shutil
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
BENCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../bench")
sys.path.insert(0, BENCH)
import common

bench = importlib.machinery.SourceFileLoader("deadline", f"{BENCH}/deadline").load_module()

K = 1000  # ms
BUSY = "while True: pass"


class MemoryGroup:
    """A group of processes whose memory can be reclaimed."""

    def __init__(self):
        unified = "/sys/fs/cgroup/cgroup.controllers"
        self.v2 = os.path.exists(unified)
        self.path = f"/sys/fs/cgroup/{'' if self.v2 else 'memory/'}rlock-pressure-{os.getpid()}"
        os.mkdir(self.path)

    def enter(self):
        """For a child before it executes a program."""
        with open(os.path.join(self.path, "cgroup.procs"), "w") as file:
            file.write(str(os.getpid()))
        set_priority(0)

    def reclaim(self):
        name, amount = ("memory.reclaim", "1G") if self.v2 else ("memory.force_empty", "0")
        with contextlib.suppress(OSError), open(os.path.join(self.path, name), "w") as file:  # not all can be reclaimed
            file.write(amount)

    def remove(self):
        common.until(lambda: not open(os.path.join(self.path, "cgroup.procs")).read(), 30, "the group is in use")
        os.rmdir(self.path)


def of_guard(pid):
    """Its resident memory in KiB, and the pages that it had to read."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return int(fields[21]) * 4, int(fields[9])


def set_priority(value):
    os.setpriority(os.PRIO_PROCESS, 0, value)


def set_real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))


@contextlib.contextmanager
def busy(count, begin):
    loops = [subprocess.Popen([sys.executable, "-c", BUSY], preexec_fn=begin) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


class Round:
    def __init__(self, server, crowd, rlock, lease):
        self.server, self.crowd, self.lease = server, crowd, lease
        # A copy of its own, so that its pages belong to its group only.
        self.program = os.path.join(server.folder, "rlock")
        shutil.copy(rlock, self.program)

    def forget_program(self):
        """Out of the cache, where its pages would belong to another group."""
        with open(self.program, "rb") as file:
            os.fsync(file)
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def run(self, reclaims, loops):
        """How late the last instruction was, what was left of the lease, the pages that were read, and the memory before."""
        self.forget_program()
        group, found = MemoryGroup(), []

        def press(job, deadline):
            begun = os.path.join(self.server.folder, "last")
            common.until(lambda: bench.children(job.pid) and os.path.exists(begun), 60, "the tree does not start")
            guards = [job.pid, *bench.children(job.pid)]
            with busy(*loops):
                kib, before = self.press(group, guards, deadline, reclaims)
                found[:] = max(0, sum(self.faults_until_the_end(guards, job)) - before), kib

        times = bench.one(self.server, self.crowd, self.program, self.lease, press, group.enter)
        group.remove()
        return *times, *found

    def press(self, group, guards, deadline, reclaims):
        """Returns the memory of the guards just before the deadline, in KiB, and how many pages they have read by then."""
        left = 0, 0
        while time.time() * 1000 < deadline - 60:
            if reclaims:
                group.reclaim()
            with contextlib.suppress(OSError):  # the deadline may have come meanwhile
                numbers = [of_guard(pid) for pid in guards]
                left = sum(kib for kib, _ in numbers), sum(pages for _, pages in numbers)
            time.sleep(0.02)
        return left

    def faults_until_the_end(self, guards, job):
        pages = dict.fromkeys(guards, 0)
        while job.poll() is None:
            for pid in guards:
                with contextlib.suppress(OSError, IndexError):
                    pages[pid] = of_guard(pid)[1]
            time.sleep(0.002)
        return pages.values()


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", 1)[0])
    parser.add_argument("--rlock", default=os.path.join(common.HERE, "../build/rlock"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--lease", type=float, default=2)
    parser.add_argument("--fifo", action="store_true")
    options = parser.parse_args()
    processors = os.cpu_count()
    nothing, favoured = (0, None), (processors, lambda: set_priority(-20))
    rows = {"calm": (False, nothing), "reclaimed": (True, nothing), "crowded": (False, (processors * 8, lambda: set_priority(0))),
            "favoured": (False, favoured), "both": (True, favoured)}
    if options.fifo:
        rows["fifo"] = False, (processors, set_real_time)
    worst = 0
    with common.Server() as server:
        crowd = common.built(server.folder, "crowd")
        set_priority(-20)  # so that this program can do what it is for
        one = Round(server, crowd, options.rlock, int(options.lease * 1000))
        print("| pressure | p50 | worst | pages read, most | memory of the guards before | left of the lease, least |\n"
              "|---|---|---|---|---|---|", flush=True)
        for name, (reclaims, loops) in rows.items():
            found = [one.run(reclaims, loops) for _ in range(options.rounds)]
            late, left, pages, kib = zip(*found)
            worst = max(worst, *late)
            print(f"| {name} | {statistics.median(late):.1f} ms | {max(late):.1f} ms | {max(pages)} | "
                  f"{statistics.median(kib):.0f} KiB | {min(left):.0f} ms |", flush=True)
    return 1 if worst > K else 0


if __name__ == "__main__":
    sys.exit(main())
