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

    stop, killed = signal.SIGSTOP, signal.SIGKILL
    return [Fault("kill -9 of a frontend", on_job(0, killed)), Fault("kill -9 of a monitor", on_job(1, killed)),
            Fault("kill -9 of a command", on_job(2, killed)), Fault("kill -9 of both guards", both_guards),
            Fault("kill -9 of a waiter", on_job(0, killed, running=False)),
            Fault("SIGTERM to a job", on_job(0, signal.SIGTERM)),
            Fault("a frontend is stopped", on_job(0, stop, (0.1, 7))),
            Fault("a monitor is stopped", on_job(1, stop, (0.1, 7))),
            Fault("a command is stopped", on_job(2, stop, (0.1, 7))),
            Fault("a waiter is stopped", on_job(0, stop, (0.1, 7), running=False)),
            Fault("kill -9 of a direct client", client_killed), Fault("a direct client is stopped", client_stopped)]


def run_on(pick, act, shortest=0, longest=0):
    """A fault of a running server that `pick` chooses. act(server, rng) returns the repair, if there is one."""
    def fault(rng):
        server = pick(rng)
        if not server or not server.runs():
            return None
        repair = act(server, rng)
        return (repair, rng.uniform(shortest, longest)) if longest else NOTHING

    return fault


def small_faults(pick):
    """They are repaired by rlock itself."""
    def closed(what):
        return run_on(pick, lambda server, _: servers.raw(server, "client", "kill", "type", what))

    return [Fault("connections are closed", closed("normal")), Fault("listeners are disconnected", closed("pubsub")),
            Fault("the scripts are forgotten", run_on(pick, lambda server, _: server.redis.script_flush()))]


def freeze(server, _):
    server.freeze()
    return server.thaw


def kill(server, _):
    server.kill()
    return server.start


def lose_data(server, _):
    server.kill()
    server.lose_data()
    return server.start


def fill(server, _):
    server.redis.config_set("maxmemory", 1)
    return lambda: server.redis.config_set("maxmemory", 0)


def hangs(pick):
    return Fault("a server hangs", run_on(pick, freeze, 0.2, 3), 4)


def full(pick):
    return Fault("a server is out of memory", run_on(pick, fill, 0.5, 2), 3)


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

    def always(self, act):
        """A fault of the server that may not be running."""
        return lambda rng: (act(self.server, rng), rng.uniform(0, 1))

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
        return [*small_faults(pick), hangs(pick), full(pick),
                Fault("replies are lost", self.order(lambda rng: f"lose {rng.uniform(0.01, 0.2):.3f}")),
                Fault("replies are late", self.order(lambda rng: f"delay {rng.uniform(0.1, 1):.3f} {rng.uniform(0.05, 0.6):.3f}")),
                Fault("the network hangs", self.order(lambda rng: f"hole {rng.uniform(0.1, 3):.3f}")),
                Fault("the network is cut", self.order(lambda rng: "cut")),
                Fault("a server is killed, and starts with its file", self.always(kill), 8),
                Fault("a server is killed, and starts without data", self.always(lose_data), 36),
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

    def hang(self, master, _):
        master.freeze()
        servers.wait_until(lambda: self.servers.master() not in (master, None), 20)
        return master.thaw

    def forget(self, master, rng):
        """The replicas are cut off for a while before the master is killed."""
        replicas = [one for one in self.data() if one is not master]
        for one in replicas:
            one.freeze()
        servers.raw(master, "client", "kill", "type", "replica")
        time.sleep(rng.uniform(0.1, 1))
        master.kill()
        for one in replicas:
            one.thaw()
        return master.start

    def switched(self, rng):
        if not self.master(rng):
            return None
        try:
            servers.raw(self.servers.sentinels[0], "sentinel", "failover", "mymaster")
        except servers.redis.ResponseError:
            return None
        return NOTHING

    def stopped(self, group):
        return run_on(lambda rng: self.master(rng) and rng.choice(group()), freeze, 0.5, 4)

    def replicas_now(self):
        return [one for one in self.data() if one.role() == "slave"]

    def faults(self):
        return [*small_faults(self.master), full(self.master),
                Fault("a master hangs until it is replaced, and comes back", run_on(self.master, self.hang, 0, 3), 26),
                Fault("a master is killed, and comes back as a replica", run_on(self.master, kill, 4, 8), 28),
                Fault("a master is killed whose last grants no replica knows", run_on(self.master, self.forget, 4, 8), 28),
                Fault("SENTINEL FAILOVER", self.switched, 26),
                Fault("a Sentinel hangs", self.stopped(lambda: self.servers.sentinels), 5),
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

    def moved(self, rng):
        if not self.any(rng):
            return None
        name = rng.choice([*NAMES.values(), *(name for name, _ in CLIENT_NAMES)])
        slot = servers.raw(self.servers.servers[0], "cluster", "keyslot", name)
        old = self.servers.keeper(slot)
        self.servers.move(slot, old, rng.choice([one for one in self.servers.servers if one is not old]))
        return NOTHING

    def faults(self):
        return [*small_faults(self.any), full(self.any), hangs(self.any),
                Fault("a server is killed, and starts with its file", run_on(self.any, kill, 0, 2), 6),
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

    def harm(self, act, bad_for, shortest=0, longest=0, at_most=1):
        """act(server, rng) returns the repair, if there is one. Bad for some seconds after that."""
        def fault(rng):
            server = self.good(rng, at_most)
            if not server:
                return None
            server.bad_until = float("inf")
            repair = act(server, rng)

            def mend():
                if longest:
                    repair()
                server.bad_until = time.monotonic() + bad_for

            return mend, rng.uniform(shortest, longest)

        return fault

    def faults(self):
        # A hold is put back where it is missing with the next renewal.
        back = 3
        flush = lambda server, _: server.redis.flushall()
        step = lambda server, rng: server.step(rng.choice((-1, 1)) * rng.randrange(1000, 10000))
        return [*small_faults(self.good), Fault("a server of the minority hangs", self.harm(freeze, back, 0.2, 6), 3),
                Fault("a server of the minority is killed, and starts with its file", self.harm(kill, self.NO_VOTE, 0.2, 3), 4),
                Fault("a server of the minority starts without its data", self.harm(lose_data, self.FLUSHED, 0.2, 3), 4),
                Fault("FLUSHALL on a server of the minority", self.harm(flush, self.FLUSHED), 4),
                Fault("the clock of a server of the minority is wrong by seconds", self.harm(step, self.NO_VOTE, at_most=0), 4),
                Fault("a server of the minority is out of memory", self.harm(fill, back, 0.5, 2), 3)]

    def stop(self):
        for one in self.servers:
            one.kill()


TOPOLOGIES = {"server": OneServer, "sentinel": BehindSentinels, "cluster": InCluster, "quorum": Quorum}
