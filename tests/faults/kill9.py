#!/usr/bin/python3
"""kill9.py [--count N] [--victim frontend|monitor|command] [--p99 MS] [--lanes N]

Kills one process of a running job with SIGKILL, N times each, and checks what happens to the rest: a command, a
grandchild in its process group and a daemon in its own session, which all ignore SIGTERM. A second job waits for
the lock. Prints for each victim how long the tree survived it and when the second job got the lock, and fails if

  - a process of the tree survives,
  - the second job starts while one is alive,
  - the status of rlock is not the documented one,
  - the lock is not free at once (frontend, command), or is free before its lease has run out (monitor), or not then,
  - the monitor survives the frontend,
  - the 99th percentile of the time until the tree is dead exceeds --p99 (default 50 ms).

Starts its own redis-server on a Unix socket in a temporary folder, and stops it. RLOCK names the program, build/rlock if
not set.
"""
import argparse
import concurrent.futures
import os
import select
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
import servers

# Seconds. Short if the test waits for the lease of a killed monitor; long, so that a wrong wait would be noticed.
LEASE = {"frontend": 120.0, "monitor": 6.0, "command": 120.0}
AT_ONCE = 30.0  # does not measure how busy the machine is
TREE = """trap '' TERM
(trap '' TERM; exec sleep 1001) & echo $! >&{fd}
setsid bash -c 'trap "" TERM; echo $$ >&{fd}; exec sleep 1002' </dev/null >/dev/null 2>&1 &
echo $$ >&{fd}
exec {fd}>&-
exec sleep 1003"""
# The second job: which processes does it find alive?
SECOND = 'for pid in {pids}; do kill -0 $pid 2>/dev/null && echo "alive $pid"; done; echo begin'
STATUS = {"frontend": -signal.SIGKILL, "monitor": 74, "command": -signal.SIGKILL}


def read_pids(fd):
    text = b""
    while text.count(b"\n") < 3:
        if not select.select([fd], [], [], 10)[0]:
            raise RuntimeError(f"the tree did not start: {text!r}")
        more = os.read(fd, 100)
        if not more:
            raise RuntimeError(f"the job has ended: {text!r}")
        text += more
    return [int(word) for word in text.split()]


def survivors(name):
    """Processes that have the lock's name in their environment, apart from those of rlock itself."""
    wanted = f"RLOCK_NAME={name}\0".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if wanted in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def start_job(rlock, name, lease):
    # Not inheritable until here, because another thread's job must not get it.
    end, begin = os.pipe()
    job = subprocess.Popen(
        [rlock, "run", "--lease", f"{lease}s", "-k", "300ms", name, "--", "bash", "-c", TREE.format(fd=begin)],
        pass_fds=[begin], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(begin)
    try:
        return job, read_pids(end)
    finally:
        os.close(end)


def one_round(rlock, victim, number):
    name = f"kill9-{victim}-{number}"
    lease = LEASE[victim]
    job, pids = start_job(rlock, name, lease)
    monitor = servers.only_child(job.pid)
    target = {"frontend": job.pid, "monitor": monitor, "command": pids[-1]}
    # The last pid may be the daemon's, so look for the child.
    target["command"] = servers.only_child(monitor)
    second = subprocess.Popen(
        [rlock, "run", "--lease", f"{lease}s", name, "--", "sh", "-c", SECOND.format(pids=" ".join(map(str, pids)))],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    watched = select.poll()
    descriptors = {os.pidfd_open(pid) for pid in pids}
    for fd in descriptors:
        watched.register(fd, select.POLLIN)
    open_ones = set(descriptors)

    killed_at = time.monotonic()
    os.kill(target[victim], signal.SIGKILL)
    while open_ones and time.monotonic() < killed_at + 10:
        for fd, _ in watched.poll(1000):
            watched.unregister(fd)
            open_ones.discard(fd)
    dead_after = time.monotonic() - killed_at
    for fd in descriptors:
        os.close(fd)
    found = second.communicate(timeout=100)[0].split("\n")
    free_after = time.monotonic() - killed_at
    status = job.wait(timeout=100)

    faults = [line for line in found if line.startswith("alive")]
    faults += [f"survivor {pid}" for pid in survivors(name)]
    if open_ones:
        faults.append("the tree lives on")
    if "begin" not in found:
        faults.append("the second job did not run")
    if status != STATUS[victim]:
        faults.append(f"status {status}")
    if victim == "frontend" and not servers.wait_until(lambda: not os.path.exists(f"/proc/{monitor}")):
        faults.append("the monitor lives on")
    if victim == "monitor" and free_after < lease / 2:
        faults.append(f"the lock was free after {free_after:.1f} s already")
    if free_after > (lease + AT_ONCE if victim == "monitor" else AT_ONCE):
        faults.append(f"the lock was free only after {free_after:.1f} s")
    return dead_after * 1000, free_after * 1000, faults


def percentile(values, part):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--victim", choices=list(STATUS), action="append")
    parser.add_argument("--p99", type=float, default=50)
    parser.add_argument("--lanes", type=int, default=4)
    options = parser.parse_args()

    rlock = os.path.abspath(os.environ.get("RLOCK") or f"{os.path.dirname(__file__)}/../../build/rlock")
    failed = False
    with servers.beside_a_server("k9."):
        for victim in options.victim or list(STATUS):
            with concurrent.futures.ThreadPoolExecutor(options.lanes) as lanes:
                begun = [lanes.submit(one_round, rlock, victim, number) for number in range(options.count)]
                concurrent.futures.wait(begun, return_when=concurrent.futures.FIRST_EXCEPTION)
                lanes.shutdown(cancel_futures=True)
                rounds = [one.result() for one in begun if not one.cancelled()]
            dead = [r[0] for r in rounds]
            free = [r[1] for r in rounds]
            faults = [fault for r in rounds for fault in r[2]]
            p99 = percentile(dead, 0.99)
            print(f"kill -9 of the {victim:8} × {len(rounds)}: tree dead after p50 {percentile(dead, 0.5):.1f} "
                  f"p99 {p99:.1f} max {max(dead):.1f} ms, next job after p50 {percentile(free, 0.5):.0f} "
                  f"max {max(free):.0f} ms, {len(faults)} faults", flush=True)
            for fault in faults[:10]:
                print(f"  {fault}")
            failed = failed or bool(faults) or p99 > options.p99
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
