"""The faults of `run`: what may happen to the servers of each topology, and to the jobs.

A topology has `urls` for rlock, an `environment`, `client_options` for direct.py (None: it has no such clients), `recipes`
of crowd.py, and `faults`. A fault is a function of a random number generator that does it. It returns None if it is not
possible now; otherwise how it is repaired, a function, and after how many seconds.
"""
import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import servers
from crowd import now
from servers import Clocked, Cluster, Watched

HERE = os.path.dirname(os.path.abspath(__file__))
ALL_KINDS = ("wait", "own", "do not wait", "wait in front", "supersede", "replace", "string", "read", "write", "slot",
             "several")
NAMES = {"plain": "p", "own": "o", "supersede": "u", "string": "t", "shared": "r", "slots": "s", "a": "a", "b": "b", "c": "c",
         "d": "d"}
# Most of the direct clients' locks are theirs alone, because every release to a waiter starts processes.
OWN_NAMES = [f"x{number}" for number in range(40)]
CLIENT_NAMES = [[name, "w"] for name in OWN_NAMES[:8]] + [["p", "w"], ["r", "r"], ["r", "W"], ["y", "r"], ["y", "W"],
                                                               ["z", "s3"], ["s", "s3"]]
NOTHING = (lambda: None, 0)


def note(*words):
    """For whoever looks for the cause of a violation."""
    with open("faults", "a") as out:
        print(now(), *words, file=out)


def send(pid, what):
    try:
        if pid:
            os.kill(pid, what)
    except ProcessLookupError:
        pass


class Fault:
    """`quiet`: for so many seconds nothing else of this sort happens to the servers; 0: it disturbs nobody for long."""
    def __init__(self, name, act, quiet=0):
        self.name, self.act, self.quiet = name, act, quiet


def faults_of_processes(crowd):
    """A job has one of them at most: two may be more than its guards promise to survive."""
    def choose(rng, running):
        fitting = [job for job in crowd.running if not job.harmed and bool(job.parts()[2]) == running]
        job = rng.choice(fitting) if fitting else None
        if job:
            job.harmed = True
            note("  at", job.name, *job.parts())
        return job

    def on_job(part, what, seconds=None, running=True):
        def act(rng):
            job = choose(rng, running)
            pid = job and job.parts()[part]
            if not pid:
                return None
            send(pid, what)
            return (lambda: send(pid, signal.SIGCONT), rng.uniform(*seconds)) if seconds else NOTHING

        return act

    def both_guards(rng):
        """The frontend is stopped first, so that it cannot act on the other's death."""
        job = choose(rng, True)
        if not job:
            return None
        frontend, monitor, _ = job.parts()
        send(frontend, signal.SIGSTOP)
        send(monitor, signal.SIGKILL)
        send(frontend, signal.SIGKILL)
        return NOTHING

    def client_killed(rng):
        if not crowd.clients:
            return None
        one = crowd.clients.pop(rng.randrange(len(crowd.clients)))
        one.kill()
        one.wait()
        return crowd.start_client, 0.1

    def client_stopped(rng):
        if not crowd.clients:
            return None
        one = rng.choice([one for one in crowd.clients if one.holds_long] or crowd.clients)
        one.send_signal(signal.SIGSTOP)
        return lambda: one.send_signal(signal.SIGCONT), rng.uniform(0.1, 8)

    stop, kill = signal.SIGSTOP, signal.SIGKILL
    return [Fault("kill -9 of a frontend", on_job(0, kill)), Fault("kill -9 of a monitor", on_job(1, kill)),
            Fault("kill -9 of a command", on_job(2, kill)), Fault("kill -9 of both guards", both_guards),
            Fault("kill -9 of a waiter", on_job(0, kill, running=False)),
            Fault("SIGTERM to a job", on_job(0, signal.SIGTERM)),
            Fault("a frontend is stopped", on_job(0, stop, (0.1, 7))),
            Fault("a monitor is stopped", on_job(1, stop, (0.1, 7))),
            Fault("a command is stopped", on_job(2, stop, (0.1, 7))),
            Fault("a waiter is stopped", on_job(0, stop, (0.1, 7), running=False)),
            Fault("kill -9 of a direct client", client_killed), Fault("a direct client is stopped", client_stopped)]


def run_on(pick, act):
    """A fault of a server that `pick` chooses, and that is over at once."""
    def fault(rng):
        server = pick(rng)
        if not server or not server.runs():
            return None
        act(server)
        return NOTHING

    return fault


def small_faults(pick):
    """They are repaired by rlock itself."""
    def closed(what):
        return run_on(pick, lambda server: servers.raw(server, "client", "kill", "type", what))

    return [Fault("connections are closed", closed("normal")), Fault("listeners are disconnected", closed("pubsub")),
            Fault("the scripts are forgotten", run_on(pick, lambda server: server.redis.script_flush()))]


def hangs(pick, quiet, shortest, longest):
    def act(rng):
        server = pick(rng)
        if not server or not server.runs():
            return None
        server.freeze()
        return server.thaw, rng.uniform(shortest, longest)

    return Fault("a server hangs", act, quiet)


def full(pick):
    def act(rng):
        server = pick(rng)
        if not server or not server.runs():
            return None
        server.redis.config_set("maxmemory", 1)
        return lambda: server.redis.config_set("maxmemory", 0), rng.uniform(0.5, 2)

    return Fault("a server is out of memory", act, 3)


class OneServer:
    recipes = ALL_KINDS
    environment = {"RLOCK_EPOCH_GUARD": "true"}

    def __init__(self):
        self.server = Clocked("a")
        self.server.accept_epoch()
        listen = os.path.abspath("link")
        self.link = subprocess.Popen([sys.executable, "-B", f"{HERE}/link.py", listen, self.server.socket],
                                     stdin=subprocess.PIPE, text=True)
        servers.need(lambda: os.path.exists(listen), "the link is there")
        self.urls = [self.server.url(), "unix://" + listen]
        self.client_options = {"unix": self.server.socket, "guard": {"lag": 0}, "names": CLIENT_NAMES, "own": OWN_NAMES}

    def order(self, words):
        def act(rng):
            self.link.stdin.write(words(rng) + "\n")
            self.link.stdin.flush()
            return NOTHING

        return act

    def killed(self, rng):
        self.server.kill()
        return self.server.start, rng.uniform(0, 1)

    def emptied(self, rng):
        self.server.kill()
        self.server.lose_data()
        return self.server.start, rng.uniform(0, 1)

    def flushed(self, rng):
        self.server.redis.flushall()
        return NOTHING

    def stepped(self, sign):
        def act(rng):
            self.server.step(sign * rng.randrange(50, 450))
            return NOTHING

        return act

    def faults(self):
        pick = lambda rng: self.server
        return [*small_faults(pick), hangs(pick, 4, 0.2, 3), full(pick),
                Fault("replies are lost", self.order(lambda rng: f"lose {rng.uniform(0.01, 0.2):.3f}")),
                Fault("replies are late", self.order(lambda rng: f"delay {rng.uniform(0.1, 1):.3f} {rng.uniform(0.05, 0.6):.3f}")),
                Fault("the network hangs", self.order(lambda rng: f"hole {rng.uniform(0.1, 3):.3f}")),
                Fault("the network is cut", self.order(lambda rng: "cut")),
                Fault("a server is killed, and starts with its file", self.killed, 8),
                Fault("a server is killed, and starts without data", self.emptied, 36),
                Fault("FLUSHALL", self.flushed, 34),
                Fault("the clock is stepped forward", self.stepped(1), 6),
                Fault("the clock is stepped back", self.stepped(-1), 6)]

    def stop(self):
        self.link.stdin.close()
        self.link.wait()
        self.server.kill()


class BehindSentinels:
    """A failover costs the lease and 12 s."""
    recipes = ALL_KINDS
    environment = {}

    def __init__(self):
        self.servers = Watched()
        self.urls = [self.servers.url()]
        self.client_options = {"sentinels": [[one.network.address, one.port] for one in self.servers.sentinels],
                               "guard": {"lag": 12000}, "names": CLIENT_NAMES, "own": OWN_NAMES}

    def data(self):
        return [self.servers.m, *self.servers.replicas]

    def master(self, rng):
        """The master, if all is well; otherwise None."""
        if not all(one.runs() for one in self.servers.all()):
            return None
        try:
            master = self.servers.master()
            roles = [one.role() for one in self.data()]
            return master if master and roles.count("slave") == 2 and all(
                one is master or one.in_step() for one in self.data()) else None
        except servers.redis.RedisError:
            return None

    def hung(self, rng):
        master = self.master(rng)
        if not master:
            return None
        master.freeze()
        servers.wait_until(lambda: self.servers.master() not in (master, None), 20)
        return master.thaw, rng.uniform(0, 3)

    def killed(self, rng):
        master = self.master(rng)
        if not master:
            return None
        master.kill()
        return master.start, rng.uniform(4, 8)

    def forgets(self, rng):
        """The replicas are cut off for a while before the master is killed."""
        master = self.master(rng)
        if not master:
            return None
        replicas = [one for one in self.data() if one is not master]
        for one in replicas:
            one.freeze()
        servers.raw(master, "client", "kill", "type", "replica")
        time.sleep(rng.uniform(0.1, 1))
        master.kill()
        for one in replicas:
            one.thaw()
        return master.start, rng.uniform(4, 8)

    def switched(self, rng):
        if not self.master(rng):
            return None
        try:
            servers.raw(self.servers.sentinels[0], "sentinel", "failover", "mymaster")
        except servers.redis.ResponseError:
            return None
        return NOTHING

    def stopped(self, group):
        def act(rng):
            if not self.master(rng):
                return None
            one = rng.choice(group() if callable(group) else group)
            one.freeze()
            return one.thaw, rng.uniform(0.5, 4)

        return act

    def replicas_now(self):
        return [one for one in self.data() if one.role() == "slave"]

    def faults(self):
        return [*small_faults(self.master), full(self.master),
                Fault("a master hangs until it is replaced, and comes back", self.hung, 26),
                Fault("a master is killed, and comes back as a replica", self.killed, 28),
                Fault("a master is killed whose last grants no replica knows", self.forgets, 28),
                Fault("SENTINEL FAILOVER", self.switched, 26),
                Fault("a Sentinel hangs", self.stopped(self.servers.sentinels), 5),
                Fault("a replica hangs", self.stopped(self.replicas_now), 5)]

    def stop(self):
        self.servers.stop()


class InCluster:
    recipes = ALL_KINDS
    environment = {}

    def __init__(self):
        self.servers = Cluster()
        self.urls = [self.servers.url()]
        self.client_options = {"cluster": [["127.0.0.1", one.port] for one in self.servers.servers], "guard": None,
                               "names": CLIENT_NAMES, "own": OWN_NAMES}

    def any(self, rng):
        """A server, if all are well; otherwise None."""
        if not all(one.runs() for one in self.servers.servers):
            return None
        return rng.choice(self.servers.servers)

    def killed(self, rng):
        server = self.any(rng)
        if not server:
            return None
        server.kill()
        return server.start, rng.uniform(0, 2)

    def moved(self, rng):
        if not self.any(rng):
            return None
        name = rng.choice([*NAMES.values(), *(name for name, _ in CLIENT_NAMES)])
        slot = servers.raw(self.servers.servers[0], "cluster", "keyslot", name)
        old = self.servers.keeper(slot)
        self.servers.move(slot, old, rng.choice([one for one in self.servers.servers if one is not old]))
        return NOTHING

    def faults(self):
        return [*small_faults(self.any), full(self.any), hangs(self.any, 4, 0.2, 3),
                Fault("a server is killed, and starts with its file", self.killed, 6),
                Fault("a slot moves to another server", self.moved, 1)]

    def stop(self):
        self.servers.stop()


class Quorum:
    """Five servers, of which two at most are bad at any time."""
    recipes = tuple(kind for kind in ALL_KINDS if kind not in ("slot", "replace", "wait in front"))  # there is no queue
    environment = {}
    client_options = None
    NO_VOTE = 9  # seconds from a restart until the server votes again
    FLUSHED = 31  # and from when it has lost its data

    def __init__(self):
        self.servers = [Clocked(f"q{number}", aged=True) for number in range(1, 6)]
        for one in self.servers:
            one.accept_epoch()
            one.bad_until = 0
        self.urls = [" ".join(one.url() for one in self.servers)]

    def good(self, rng, at_most=1):
        """One that is not bad, if no more than `at_most` are."""
        bad = [one for one in self.servers if one.bad_until > time.monotonic()]
        return rng.choice([one for one in self.servers if one not in bad]) if len(bad) <= at_most else None

    def harm(self, act, bad_for, at_most=1):
        """act(server, rng) returns the repair. Bad for some seconds after that."""
        def fault(rng):
            server = self.good(rng, at_most)
            if not server:
                return None
            server.bad_until = float("inf")
            repair, after = act(server, rng) or NOTHING

            def mend():
                repair()
                server.bad_until = time.monotonic() + bad_for

            return mend, after

        return fault

    def hangs(self, server, rng):
        server.freeze()
        return server.thaw, rng.uniform(0.2, 6)

    def killed(self, server, rng):
        server.kill()
        return server.start, rng.uniform(0.2, 3)

    def emptied(self, server, rng):
        server.kill()
        server.lose_data()
        return server.start, rng.uniform(0.2, 3)

    def flushed(self, server, rng):
        server.redis.flushall()

    def out_of_time(self, server, rng):
        server.step(rng.choice((-1, 1)) * rng.randrange(1000, 10000))

    def out_of_memory(self, server, rng):
        server.redis.config_set("maxmemory", 1)
        return lambda: server.redis.config_set("maxmemory", 0), rng.uniform(0.5, 2)

    def faults(self):
        # A hold is put back where it is missing with the next renewal.
        back = 3
        return [*small_faults(self.good), Fault("a server of the minority hangs", self.harm(self.hangs, back), 3),
                Fault("a server of the minority is killed, and starts with its file", self.harm(self.killed, self.NO_VOTE), 4),
                Fault("a server of the minority starts without its data", self.harm(self.emptied, self.FLUSHED), 4),
                Fault("FLUSHALL on a server of the minority", self.harm(self.flushed, self.FLUSHED), 4),
                Fault("the clock of a server of the minority is wrong by seconds", self.harm(self.out_of_time, self.NO_VOTE, 0), 4),
                Fault("a server of the minority is out of memory", self.harm(self.out_of_memory, back), 3)]

    def stop(self):
        for one in self.servers:
            one.kill()


TOPOLOGIES = {"server": OneServer, "sentinel": BehindSentinels, "cluster": InCluster, "quorum": Quorum}
