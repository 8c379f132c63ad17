#!/usr/bin/python3
"""nth_call.py [--memory-every N] [--lanes N] [SCENARIO ...]

Makes one call to the system fail, in each process of a job the first, then the second, and so on until none is left,
and then one allocation of memory after the other. After each of these runs it checks that

  - no command ran without the lock: the command compares its fencing token with the server's when it begins and ends;
  - no lock stays: each key has a TTL, apart from the last fencing token, and the lock is free when its lease has ended;
  - rlock is not silent: if its status is not the command's, it has said why;
  - the status is one that rlock(1) documents, and after those that say so, the command was not started;
  - no process is left, and none has crashed.

Prints for each scenario how many calls have failed, and each violation with the call that led to it; fails if there is
one. The program is build/rlock_failing (fail.c), or what FAILING names. The servers are real ones on Unix
sockets in a temporary folder, one for each lane, and end with the test.

  --memory-every N   let only every Nth allocation fail; 0: none. Default 1
  --lanes N          runs beside each other; default 12, because most of them wait
"""
import argparse
import ctypes
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../lib"))
sys.dont_write_bytecode = True
import servers
BUILD = os.path.join(HERE, "../../../build")
FAILING = os.path.abspath(os.environ.get("FAILING", os.path.join(BUILD, "rlock_failing")))
LEASE = 5  # seconds; the shortest of which rlock does not warn
BOUND = 30  # does not measure anything: a run that takes longer hangs
OWN_STATUS = 7
# The end of `rlock run` if a call fails: Redis, system, lost, not acquired, --on-acquire, not executable, not found.
NOT_STARTED = {69, 71, 75, 78, 126, 127}
DOCUMENTED = NOT_STARTED | {OWN_STATUS, 74}
# Each line: the token of the command's lock, and the last one that the server has granted while somebody has the lock.
LOOK = """echo "$RLOCK_TOKEN $(redis-cli -s s eval 'return redis.call("exists", "x") == 1 and
redis.call("get", "redisson_lock_token:{x}")' 0)" >>ran; """
CHECK = LOOK + f"exit {OWN_STATUS}"
LONG_CHECK = LOOK + "sleep 2; " + CHECK


class Lane(servers.Server):
    """A folder with a server of its own, in a process of its own that adopts what its jobs leave behind."""

    def __init__(self, folder):
        os.makedirs(folder)
        os.chdir(folder)
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        super().__init__(".")
        os.environ["RLOCK_URL"] = self.url()

    def others(self):
        """Our children apart from the server."""
        with open(f"/proc/self/task/{os.getpid()}/children") as file:
            return [pid for pid in map(int, file.read().split()) if pid != self.process.pid]

    def reap(self):
        for pid in self.others():
            try:
                os.waitpid(pid, os.WNOHANG)
            except ChildProcessError:
                pass
        return not self.others()


class Run:
    """One run of a scenario, in which the call `fault` fails: (thread, kind, number), or none."""

    def __init__(self, lane, fault):
        self.lane, self.fault = lane, fault
        self.violations = []
        lane.redis.flushall()
        for file in "ran", "log", "err":
            open(file, "w").close()

    def start(self, *words):
        thread, kind, number = self.fault
        environment = dict(os.environ, FAIL_AT=f"{thread} {kind} {number}", FAIL_LOG=os.path.abspath("log"))
        return subprocess.Popen([FAILING, *words], env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=open("err", "a"), text=True)

    def end(self, process):
        try:
            out = process.communicate(timeout=BOUND)[0]
        except subprocess.TimeoutExpired:
            self.blame("it hangs, or keeps its caller's output open")
            process.kill()
            self.kill_others()
            out = process.communicate()[0]
        return process.returncode, out

    def kill_others(self):
        for pid in self.lane.others():
            os.kill(pid, signal.SIGKILL)

    def call(self, *words):
        return self.end(self.start(*words))

    def plain(self, *words):
        """The same program without failures."""
        return subprocess.run([FAILING, *words], capture_output=True, text=True).stdout.strip()

    def blame(self, text):
        self.violations.append(text)

    def log(self):
        with open("log") as file:
            return [line.split(" ", 1) for line in file.read().splitlines()]

    def check_command(self, status):
        with open("ran") as file:
            looks = [line.split() for line in file]
        for look in looks:
            if len(look) != 2 or look[0] != look[1]:
                self.blame(f"the command ran without the lock: tokens {look}")
        if status not in DOCUMENTED:
            self.blame(f"status {status}")
        if looks and status in NOT_STARTED and not self.out_of_memory():
            self.blame(f"status {status}, but the command has run")
        if not looks and status == OWN_STATUS:
            self.blame("the command's status, but it did not run")
        self.check_voice(status == OWN_STATUS)

    def out_of_memory(self):
        with open("err") as file:
            return "out of memory" in file.read()

    def check_voice(self, well):
        with open("err") as file:
            said = file.read()
        if not well and not said:
            self.blame("silence")
        killed = self.fault[1] == "calls" and "monitor of this job was killed" in said
        if "terminate called" in said or (killed and "cannot watch each other" not in said):
            self.blame("a crash")

    def check_rest(self):
        if not servers.wait_until(self.lane.reap, LEASE + 10):
            self.blame(f"processes are left: {self.lane.others()}")
            self.kill_others()
            servers.wait_until(self.lane.reap, BOUND)
        for key in self.lane.redis.keys():
            if self.lane.redis.pttl(key) == -1 and key != "redisson_lock_token:{x}":
                self.blame(f"{key} has no TTL")
        if not servers.wait_until(lambda: not self.lane.redis.exists("x"), LEASE + 10):
            self.blame("the lock stays held")


def run(one):
    one.check_command(one.call("run", "--lease", f"{LEASE}s", "x", "--", "sh", "-c", CHECK)[0])


def renew(one):
    """A job that renews, and listens for requests."""
    one.check_command(one.call("run", "--lease", f"{LEASE}s", "x", "--", "sh", "-c", LONG_CHECK)[0])


def wait(one):
    """A job that waits and is handed the lock."""
    owner = one.plain("acquire", "x", "--lease", "30s")
    waiter = one.start("run", "--lease", f"{LEASE}s", "-w", f"{BOUND}s", "x", "--", "sh", "-c", CHECK)
    servers.wait_until(lambda: waiter.poll() is not None or one.lane.redis.zcard("rlock:queue:{x}"), BOUND)
    time.sleep(0.02)  # it forks its guards; a release that comes before is only another order
    one.plain("release", "x", "--owner", owner)
    one.check_command(one.end(waiter)[0])


def acquire(one):
    status, out = one.call("acquire", "x", "--lease", f"{LEASE}s")
    check_owner(one, status, out)
    if status == 0:
        one.plain("release", "x", "--owner", out.strip())


def check_owner(one, status, out):
    if status == 0 and not one.lane.redis.hexists("x", out.strip()):
        one.blame("acquire printed an owner that does not hold the lock")
    if status not in NOT_STARTED | {0}:
        one.blame(f"status {status}")
    if status != 0 and out:
        one.blame("acquire failed, but printed an owner")
    one.check_voice(status == 0)


def release(one):
    owner = one.plain("acquire", "x", "--lease", f"{LEASE}s")
    status, _ = one.call("release", "x", "--owner", owner)
    if status == 0 and one.lane.redis.exists("x"):
        one.blame("released, but the lock is held")
    if status not in NOT_STARTED | {0}:
        one.blame(f"status {status}")
    one.check_voice(status == 0)


def keeper(one):
    """Acquires for a process, and that process ends after a second, when the keeper listens."""
    watched = subprocess.Popen(["sleep", "1000"])
    status, out = one.call("acquire", "x", "--lease", f"{LEASE}s", "--for-pid", str(watched.pid))
    check_owner(one, status, out)
    if status == 0:
        time.sleep(2)
    watched.kill()
    watched.wait()


SCENARIOS = {one.__name__: one for one in (run, wait, acquire, release, keeper, renew)}


class Count:
    """How the calls of one thread fail, one after the other, until two runs in a row had none left."""

    def __init__(self, thread, kind, step):
        self.thread, self.kind, self.step = thread, kind, step
        self.next, self.missed = step, 0

    def over(self):
        return self.missed >= 2


def perform(scenario, fault):
    one = Run(LANE, fault)
    SCENARIOS[scenario](one)
    one.check_rest()
    with open("err") as file:
        said = file.read().strip()
    failed = [which for what, which in one.log() if what == "failed"]
    return fault, failed, [which for what, which in one.log() if what == "thread"], one.violations, said


def begin_lane(folder, numbers):
    global LANE
    with numbers.get_lock():
        numbers.value += 1
        number = numbers.value
    LANE = Lane(os.path.join(folder, str(number)))


class Walk:
    """All failures of one scenario."""

    def __init__(self, pool, scenario, steps):
        self.pool, self.scenario, self.steps = pool, scenario, steps
        self.counts, self.known = [], set()
        self.failed, self.violations, self.names = {kind: 0 for kind in steps}, 0, {}

    def discover(self, threads):
        for thread in threads:
            if thread not in self.known:
                self.known.add(thread)
                self.counts += [Count(thread, kind, step) for kind, step in self.steps.items()]

    def take(self, result):
        (thread, kind, number), failed, threads, violations, said = result
        self.discover(threads)
        self.failed[kind] = self.failed.get(kind, 0) + len(failed)
        for name in failed:
            self.names[name] = self.names.get(name, 0) + 1
        for violation in violations:
            self.violations += 1
            print(f"  {self.scenario}, {failed or 'nothing'} ({thread} {kind} {number}): {violation}; said: {said!r}",
                  flush=True)
        return bool(failed)

    def go(self, lanes):
        self.take(self.pool.apply(perform, (self.scenario, ("0", "none", 0))))
        running = []
        while running or any(not count.over() for count in self.counts):
            for count in self.counts:
                while not count.over() and len(running) < lanes:
                    fault = (count.thread, count.kind, count.next)
                    running.append((count, self.pool.apply_async(perform, (self.scenario, fault))))
                    count.next += count.step
            ended = [entry for entry in running if entry[1].ready()]
            for entry in ended:
                running.remove(entry)
                count = entry[0]
                count.missed = 0 if self.take(entry[1].get()) else count.missed + 1
            if not ended:
                time.sleep(0.002)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n", 1)[0])
    parser.add_argument("--memory-every", type=int, default=1)
    parser.add_argument("--lanes", type=int, default=12)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=", ".join(SCENARIOS))
    options = parser.parse_args()
    steps = {"calls": 1}
    if options.memory_every:
        steps["memory"] = options.memory_every
    # A warning about one of these would look like a message about the failure.
    for variable in [name for name in os.environ if name.startswith("RLOCK_")]:
        del os.environ[variable]
    folder = tempfile.mkdtemp(prefix="nth.")
    violations = 0
    context = multiprocessing.get_context("fork")
    pool = context.Pool(options.lanes, begin_lane, (os.path.abspath(folder), context.Value("i", 0)))
    try:
        for scenario in options.scenarios or SCENARIOS:
            began = time.monotonic()
            walk = Walk(pool, scenario, steps)
            walk.go(options.lanes)
            violations += walk.violations
            print(f"{scenario}: {walk.failed.get('calls')} calls and {walk.failed.get('memory', 0)} allocations failed in "
                  f"{len(walk.known)} threads, {walk.violations} violations ({time.monotonic() - began:.0f} s)", flush=True)
            print("  " + ", ".join(f"{name} {count}" for name, count in sorted(walk.names.items())), flush=True)
    finally:
        pool.terminate()
        pool.join()
        shutil.rmtree(folder)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
