#!/usr/bin/python3
"""epoch.py [N] [KIND...]: the failover campaign.

Each round makes a server forget locks in one of eight ways, while 20 jobs hold locks, 20 wait for these and 20 more come
right after. The command of each takes a flock(2), which tells exactly whether another one still runs; see witness.sh. N
rounds (20) of each kind have the epoch guard, and N do not, which shows that the round is dangerous. Kinds:

    killed     kill -9 of the master behind Sentinels, whose replicas lack the locks
    hung       the same master is stopped until another one has replaced it, and then continues
    cut-off    the network is cut between the master, with jobs beside it, and everything else (as root)
    switched   SENTINEL FAILOVER
    flushed    FLUSHALL on one server
    restarted  one server without an append-only file is killed and started again
    restored   one server starts with an older RDB file
    promoted   a replica is promoted by hand, after its master was stopped, and the jobs' address leads to it

More kinds are only run if they are named. Two may never overlap, without the guard either, because two replicas have
acknowledged each lock:

    acknowledged  killed, but the replicas have the locks, so none is lost
    fenced        cut-off when the jobs have their locks, with the rule of docs/servers.md: the failover takes longer than the
                  lease, the lag and two seconds together

`cut-off` has min-replicas-to-write 1 and min-replicas-max-lag 10, as rlock doctor requires. Two kinds overlap even with
the guard:

    unlimited  cut-off without these settings: the old master never stops granting locks
    longer     restored, with jobs whose leases are longer than those of the record and of all newcomers

Each job that has lost its lock ends with 74, and its fencing token is lower than those of all that have the lock after it.

Prints a line for each round and a table at the end. "Time to spare" is the shortest time from the end of the last command
that the server had forgotten until the next one of the same lock began, with the guard. The last line is `160 of 160 without
an overlap`. Exits with 1 if commands overlapped that may not, if a job lost its lock without a word, if a token was too
low, if a round could not be carried out, or if nothing was shown, because a kind forgot no lock or nothing overlapped
without the guard. LOCKS sets how many locks there are (20). RLOCK names the program, build/rlock if not set.
"""
import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True
import servers
from servers import Cable, Server, Watched, need, wait_until

JOBS = int(os.environ.get("LOCKS", 20))
LOST = 74
WITNESS = os.path.join(HERE, "..", "lib", "witness.sh")


class Job:
    def __init__(self, number, name, process):
        self.number, self.name, self.process = number, name, process
        self.started = time.time()

    def has_ended(self):
        return self.process.poll() is not None


class Jobs:
    """In the current folder. Their numbers are the ids in the log of witness.sh."""
    def __init__(self, guard, lease):
        self.all, self.lease = [], lease
        self.environment = {**os.environ, "RLOCK_EPOCH_GUARD": "true" if guard else "false"}
        for name in "log", "tokens":
            open(name, "w").close()
        self.messages = open("messages", "a")

    def start(self, url, name, seconds, network=servers.HERE, lease=None, options=()):
        number = len(self.all)
        process = subprocess.Popen(
            [*network.enter, RLOCK, "run", "--url", url, "--lease", f"{lease or self.lease}s", "-w", "10m", *options, name, "--",
             "bash", "-c", 'echo "$RLOCK_NAME $RLOCK_TOKEN" >>tokens; exec bash "$@"', "job", WITNESS, str(number), str(seconds),
             "alone", "place-" + name],
            stdin=subprocess.DEVNULL, stderr=self.messages, env=self.environment)
        job = Job(number, name, process)
        self.all.append(job)
        return job

    def start_each(self, url, seconds, *more):
        """One for each name."""
        return [self.start(url, f"job{number}", seconds, *more) for number in range(JOBS)]

    def begun(self):
        """When each job that ran began, by its number."""
        return {int(number): float(when) for what, number, when in map(str.split, open("log")) if what == "begin"}

    def all_began(self, jobs):
        """Or have ended: a slow machine loses locks."""
        begun = self.begun()
        return all(job.number in begun or job.has_ended() for job in jobs)

    def all_wait(self, jobs, server):
        begun, asked = self.begun(), server.redis.pipeline(transaction=False)
        for job in jobs:
            asked.zcard(f"rlock:queue:{{{job.name}}}")
        return all(waiting or job.number in begun or job.has_ended() for job, waiting in zip(jobs, asked.execute()))

    def overlaps(self):
        return sum(line.startswith("overlap") for line in open("log"))

    def too_low(self):
        """How many tokens are not larger than that of the first job with the lock."""
        first, found = {}, 0
        for name, token in map(str.split, open("tokens")):
            found += name in first and int(token) <= first[name]
            first.setdefault(name, int(token))
        return found

    def end(self):
        for job in self.all:
            if not job.has_ended():
                job.process.kill()
            job.process.wait()


def owners(server):
    """Who holds each lock there."""
    asked = server.redis.pipeline(transaction=False)
    for number in range(JOBS):
        asked.hkeys(f"job{number}")
    return {number: tuple(found) for number, found in enumerate(asked.execute()) if found}


def learns_nothing(replica):
    """From its next connection on."""
    replica.redis.config_set("masteruser", "nobody")
    replica.redis.config_set("masterauth", "nothing")


class Kind:
    """A way to make servers forget."""
    lease = 4  # seconds; the guard lasts as long, or 12 s longer behind Sentinels
    longer_lease = None  # of the holders
    options = ()  # of theirs
    always_safe = False  # without the guard, too

    def after(self):
        """When newcomers have been started."""


class Sentinels(Kind):
    """A kind with a master behind Sentinels. Its replicas are cut off before the locks are granted."""
    near = far = servers.HERE
    down_after = 500  # ms

    def __init__(self):
        self.servers = Watched(self.near, self.far, self.down_after)
        self.old = self.servers.m

    def url(self):
        return self.servers.url()

    def begin_to_forget(self):
        """The replicas learn nothing more: no user can read from the master, and they are stopped, so that the Sentinels
        do not see a replica without a master.
        """
        need(lambda: all(one.redis.exists(servers.GUARD) for one in self.servers.replicas), "the replicas have the record")
        for one in self.servers.replicas:
            learns_nothing(one)
            one.freeze()
        self.old.redis.execute_command("client", "kill", "type", "replica")

    def replicas_continue(self):
        for one in self.servers.replicas:
            one.thaw()

    def fail(self):
        """Returns the server that serves now."""
        self.break_master()
        return self.servers.other_master(self.old)

    def stop(self):
        self.servers.stop()


class Dead(Sentinels):
    """A failover takes about 3 s. Within a lease of 4 s, nearly every job would have been stopped by then."""
    lease = 8


class Killed(Dead):
    def break_master(self):
        self.old.kill()
        self.replicas_continue()


class Acknowledged(Killed):
    options = "--wait-replicas", "2"
    always_safe = True

    def begin_to_forget(self):
        pass


class Hung(Dead):
    def break_master(self):
        self.old.freeze()
        self.replicas_continue()

    def after(self):
        self.old.thaw()


class Switched(Sentinels):
    def break_master(self):
        self.replicas_continue()
        sentinel = self.servers.sentinels[0].redis
        need(lambda: self.accepts_failover(sentinel), "a Sentinel accepts the failover")

    def accepts_failover(self, sentinel):
        try:
            return sentinel.execute_command("sentinel", "failover", "mymaster")
        except servers.redis.ResponseError:  # it still takes the replicas for stopped
            return False


class CutOff(Sentinels):
    """The holders, and jobs that wait, are on the master's side, with one Sentinel."""
    replicas_to_write, lag = 1, 10

    def __init__(self):
        self.cable = Cable()
        self.near, self.far = self.cable.here, self.cable.there
        super().__init__()
        for one in (self.old, *self.servers.replicas):
            one.redis.config_set("min-replicas-to-write", self.replicas_to_write)
            one.redis.config_set("min-replicas-max-lag", self.lag)

    def begin_to_forget(self):
        need(lambda: all(one.redis.exists(servers.GUARD) for one in self.servers.replicas), "the replicas have the record")
        self.cable.cut()

    def break_master(self):
        pass

    def mend(self):
        self.cable.mend()

    def stop(self):
        super().stop()
        self.cable.stop()


class Fenced(CutOff):
    options, always_safe = Acknowledged.options, True
    lag, down_after = 1, 8000

    def begin_to_forget(self):
        pass

    def break_master(self):
        self.cable.cut()


class Unlimited(CutOff):
    replicas_to_write = 0


class Single(Kind):
    """A kind with one server. The jobs' address is a link to its socket."""
    def __init__(self):
        self.old = Server("a")
        self.old.accept_epoch()
        self.lead_to(self.old)

    def lead_to(self, server):
        os.symlink(server.socket, "new")
        os.rename("new", "live")

    def url(self):
        return "unix://" + os.path.abspath("live")

    def begin_to_forget(self):
        pass

    def stop(self):
        self.old.kill()


class Flushed(Single):
    def fail(self):
        self.old.redis.flushall()
        return self.old


class Restarted(Single):
    def fail(self):
        self.old.kill()
        self.old.start()
        return self.old


class Restored(Single):
    def begin_to_forget(self):
        self.old.redis.save()
        shutil.copy("a/dump.rdb", "old.rdb")

    def fail(self):
        self.old.kill()
        shutil.copy("old.rdb", "a/dump.rdb")
        self.old.start()
        return self.old


class Longer(Restored):
    longer_lease = 20


class Promoted(Single):
    def __init__(self):
        super().__init__()
        self.old.redis.config_set("port", servers.free_port())
        port = self.old.redis.config_get("port")["port"]
        self.replica = Server("b", "--replicaof", "127.0.0.1 " + port)
        need(self.replica.in_step, "the replica is in step")

    def begin_to_forget(self):
        need(lambda: self.replica.redis.exists(servers.GUARD), "the replica has the record")
        learns_nothing(self.replica)
        self.old.redis.execute_command("client", "kill", "type", "replica")

    def fail(self):
        self.old.kill()
        self.replica.redis.execute_command("replicaof", "no", "one")
        self.lead_to(self.replica)
        return self.replica

    def stop(self):
        self.replica.kill()
        super().stop()


KINDS = {"killed": Killed, "hung": Hung, "cut-off": CutOff, "switched": Switched, "flushed": Flushed,
         "restarted": Restarted, "restored": Restored, "promoted": Promoted}
OTHERS = {"acknowledged": Acknowledged, "fenced": Fenced, "unlimited": Unlimited, "longer": Longer}


def ends(jobs, seconds):
    """When each has ended, by the name of its lock."""
    found = {}

    def all_ended():
        for job in jobs:
            if job.name not in found and job.has_ended():
                found[job.name] = time.time()
        return len(found) == len(jobs)

    wait_until(all_ended, seconds)
    return found


def one_round(kind, jobs):
    """Fails once. Returns its figures."""
    cut = isinstance(kind, CutOff)
    near, far = (kind.near, kind.far) if cut else (servers.HERE, servers.HERE)
    # The record knows a lease of this length, and so do copies of it.
    first = jobs.start(kind.url(), "first", 0, near)
    need(first.has_ended, "the first job has ended")
    kind.begin_to_forget()
    holders = jobs.start_each(kind.url(), "infinity", near, kind.longer_lease, kind.options)
    need(lambda: jobs.all_began(holders), "all have their locks")
    waiters = jobs.start_each(kind.url(), 0.05, near)
    need(lambda: jobs.all_wait(waiters, kind.old), "all wait")

    before, failed_at = owners(kind.old), time.time()
    now = kind.fail()
    newcomers = jobs.start_each(kind.url(), 0.05, far)
    after = owners(now)
    kind.after()
    forgotten = [holder for number, holder in enumerate(holders) if before.get(number) != after.get(number)]

    # Those whose lock is known, and who can reach it, end when they are told to.
    lost = holders if cut else forgotten
    ended = ends(lost, 60)
    mended_at = failed_at
    if cut:
        kind.mend()
        mended_at = time.time()
    for job in holders:
        if not job.has_ended():
            job.process.terminate()
    need(lambda: all(job.has_ended() for job in waiters + newcomers), "everyone has had the lock", 120)
    begun = jobs.begun()
    silent = sum(job.process.wait() != LOST for job in lost)
    waits = [begun[job.number] - max(job.started, failed_at) for job in newcomers if job.number in begun]
    waits += [begun[job.number] - mended_at for job in waiters if job.number in begun]
    spare = min((begun[job.number] - ended[job.name] for job in waiters + newcomers if job.number in begun and job.name in ended),
                default=0)
    return {"forgotten": len(forgotten), "overlaps": jobs.overlaps(), "silent": silent, "too low": jobs.too_low(),
            "wait": round(max(waits), 1), "spare": round(spare, 1)}


def in_folder(kind, guard):
    """One round with servers of its own, in the current folder. Its figures."""
    servers_of = {**KINDS, **OTHERS}[kind]()
    jobs = Jobs(guard, servers_of.lease)
    try:
        return one_round(servers_of, jobs)
    finally:
        jobs.end()
        servers_of.stop()


def rounds(kind, count):
    """Prints the figures of each round as a line of JSON. One that a busy machine was too slow for is repeated."""
    top, left, number = os.getcwd(), [(kind, guard) for _ in range(count) for guard in (True, False)], 0
    while left and number < 3 * count + 3:
        number += 1
        os.mkdir(f"{top}/{number}")
        os.chdir(f"{top}/{number}")
        guard = left[0][1]
        try:
            figures = in_folder(*left[0])
            left.pop(0)
        except (RuntimeError, servers.redis.RedisError) as error:
            figures = {"error": str(error)}
        os.chdir(top)
        if "error" not in figures and not (guard and figures["overlaps"]) and not figures["silent"] + figures["too low"]:
            shutil.rmtree(f"{top}/{number}", ignore_errors=True)
        print(json.dumps({"guard": guard, **figures}), flush=True)


class Row:
    """The figures of a kind."""
    def __init__(self, kind):
        self.kind, self.results = kind, []
        self.always_safe = {**KINDS, **OTHERS}[kind].always_safe

    def of(self, guard, what):
        return [one[what] for one in self.results if one["guard"] is guard and "error" not in one]

    def good(self):
        return self.of(True, "overlaps").count(0)

    def sum(self, what):
        return sum(self.of(True, what) + self.of(False, what))

    def faults(self):
        """What may not be in any round, and what the kind has not shown."""
        for what in "silent", "too low":
            if self.sum(what):
                yield f"{self.sum(what)} {what}"
        if self.always_safe and self.sum("overlaps"):
            yield "an overlap"
        if not self.always_safe and not self.sum("forgotten"):
            yield "no grant was forgotten, so nothing is shown"

    def cells(self):
        return (self.kind, len(self.of(True, "wait")), self.sum("forgotten"), sum(self.of(True, "overlaps")),
                sum(self.of(False, "overlaps")), *(f"{max(self.of(guard, 'wait'), default=0)} s" for guard in (True, False)),
                f"{min(self.of(True, 'spare'), default=0)} s")


HEADINGS = ("kind        ", "failovers", "grants forgotten", "overlaps with the guard", "without it", "longest wait with the guard",
            "without it", "time to spare")


def show(rows):
    print()
    for cells in (HEADINGS, *(row.cells() for row in rows)):
        print(" | ".join(str(cell).ljust(len(heading)) for cell, heading in zip(cells, HEADINGS)))


def campaign(count, kinds):
    """All kinds at the same time, because they mostly wait. Returns whether all is well."""
    def follow(row):
        os.mkdir(row.kind)
        command = [*servers.ends_with_us("TERM"), sys.executable, "-B", os.path.abspath(__file__), "--rounds", str(count), row.kind]
        with subprocess.Popen(command, cwd=row.kind, stdout=subprocess.PIPE, text=True) as running:
            for line in running.stdout:
                row.results.append(json.loads(line))
                print(time.strftime("%T"), row.kind, line.strip(), flush=True)
        if running.returncode != 0:
            print(f"{row.kind}: a round failed", flush=True)
        return running.returncode == 0

    rows = [Row(kind) for kind in kinds]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as lanes:
        return rows, all(list(lanes.map(follow, rows)))


def main():
    words = sys.argv[1:]
    count = int(words.pop(0)) if words and words[0].isdigit() else 20
    kinds = words or list(KINDS)
    if {"cut-off", "fenced", "unlimited"} & set(kinds) and os.getuid() != 0:
        sys.exit("only root can cut a network; name the other kinds")
    folder = tempfile.mkdtemp(prefix="ep.")
    os.chdir(folder)
    rows, completed = campaign(count, kinds)
    show(rows)
    without = sum(sum(row.of(False, "overlaps")) for row in rows)
    good = sum(row.good() for row in rows)
    wanted = count * len(kinds)
    faults = [f"{row.kind}: {fault}" for row in rows for fault in row.faults()]
    faults += ["nothing overlapped without the guard, so nothing is shown"] * (not without)
    for fault in faults:
        print(fault)
    well = completed and good == wanted and not faults
    if well:
        os.chdir("/")
        shutil.rmtree(folder, ignore_errors=True)
    else:
        print(f"what is left is in {folder}")
    print(f"{good} of {wanted} without an overlap")
    sys.exit(not well)


RLOCK = os.environ["RLOCK"] = os.path.abspath(os.environ.get("RLOCK") or f"{HERE}/../../build/rlock")
signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # which ends the jobs
if sys.argv[1:2] == ["--rounds"]:
    rounds(sys.argv[3], int(sys.argv[2]))
else:
    main()
