"""Real servers, for tests in Python. Each has a folder of its own below the current one, listens on the Unix socket `s`
there, and ends with the script that started it, however that ends.
"""
import contextlib
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time

import redis

LIB = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.environ.get("REDIS_SERVER", "redis-server")
GUARD = "rlock:epoch"
SHORT = {"socket_timeout": 10, "decode_responses": True}


def wait_until(true, seconds=60):
    by = time.monotonic() + seconds
    while not true():
        if time.monotonic() > by:
            return False
        time.sleep(0.02)
    return True


@contextlib.contextmanager
def beside_a_server(prefix):
    """In a folder of its own, with a server that RLOCK_URL names."""
    folder = tempfile.mkdtemp(prefix=prefix)
    os.chdir(folder)
    server = Server("server")
    os.environ["RLOCK_URL"] = server.url()
    try:
        yield folder
    finally:
        server.kill()
        shutil.rmtree(folder)


def only_child(pid):
    """The oldest child of a process: the monitor of a frontend, the command of a monitor."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return int(file.read().split()[0])


def need(true, what, seconds=60):
    """Waits; raises if it never becomes true."""
    if not wait_until(true, seconds):
        raise RuntimeError("waited in vain until " + what)


def free_port():
    """Not one that the kernel gives to clients; the number + 10000 is free, too, because a cluster uses it."""
    used = open("/proc/net/tcp").read()
    while True:
        port = random.SystemRandom().randrange(10000, 22000)
        if f":{port:04X} " not in used and f":{port + 10000:04X} " not in used:
            return port


def ends_with_us(what="KILL"):
    """The start of a command that is sent this signal when the thread that has started it ends, however that comes."""
    return ["setpriv", "--pdeathsig", what]


class Network:
    """Where processes run: `address`, and the command with which they get there."""
    def __init__(self, address="127.0.0.1", enter=()):
        self.address, self.enter = address, list(enter)


HERE = Network()


class Cable:
    """Two networks, here and there, with a cable between them. REQUIRES: root."""
    def __init__(self):
        self.sleepers = [subprocess.Popen([*ends_with_us(), "unshare", "-n", "sleep", "infinity"])
                         for _ in range(2)]
        own = os.readlink("/proc/self/ns/net")
        need(lambda: all(os.readlink(f"/proc/{one.pid}/ns/net") != own for one in self.sleepers), "there are networks")
        self.here, self.there = (Network(f"192.0.2.{number}", ["nsenter", "-t", str(one.pid), "-n", "--"])
                                 for number, one in enumerate(self.sleepers, 1))
        self.ip(self.here, "link add cable type veth peer name cable netns " + str(self.sleepers[1].pid))
        for side in (self.here, self.there):
            self.ip(side, f"addr add {side.address}/24 dev cable")
            self.ip(side, "link set lo up")
        self.mend()

    def ip(self, side, words):
        subprocess.run([*side.enter, "ip", *words.split()], check=True)

    def cut(self):
        self.ip(self.here, "link set cable down")

    def mend(self):
        for side in (self.here, self.there):
            self.ip(side, "link set cable up")

    def stop(self):
        for one in self.sleepers:
            one.kill()
            one.wait()


# What it has answered is in the file even if the server is killed, though not after a crash of the machine.
KEEPS = ["--appendonly", "yes", "--appendfsync", "no"]


class Server:
    """A redis-server. `options`: of its command line."""
    def __init__(self, name, *options, network=HERE, listens=False, environment=()):
        self.name, self.network, self.options = name, network, list(options)
        self.environment = {**os.environ, **dict(environment)}
        self.folder = os.path.abspath(name)
        self.socket = self.folder + "/s"
        self.port = free_port() if listens else 0
        self.frozen = False
        os.makedirs(self.folder, exist_ok=True)
        self.redis = redis.Redis(unix_socket_path=self.socket, **SHORT)
        self.start()

    def command(self):
        return [PROGRAM, "--port", str(self.port), "--bind", self.network.address, "--protected-mode", "no",
                "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--logfile", "log", *self.options]

    def start(self):
        self.process = subprocess.Popen([*self.network.enter, *ends_with_us(), *self.command()],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, env=self.environment)
        need(self.answers, f"{self.name} answers")

    def answers(self):
        try:
            return self.redis.ping()
        except redis.RedisError:
            return False

    def url(self):
        return "unix://" + self.socket

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.frozen = False

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)
        self.frozen = False

    def runs(self):
        return not self.frozen and self.process.poll() is None

    def accept_epoch(self):
        """It has forgotten nothing, so the epoch guard lets it grant locks at once."""
        life = self.redis.info("replication")["master_replid"]
        self.redis.hset(GUARD, mapping={"life": life, "since": 0, "cause": "accepted", "longest": 0, "before": 0})

    def role(self):
        return self.redis.role()[0]

    def in_step(self):
        return self.redis.info("replication")["master_link_status"] == "up"


class Sentinel(Server):
    """One of the Sentinels that watch `master`."""
    def __init__(self, name, master, quorum, down_after, network=HERE):
        self.watched = (f"sentinel monitor mymaster {master.network.address} {master.port} {quorum}\n"
                        f"sentinel down-after-milliseconds mymaster {down_after}\n"
                        "sentinel failover-timeout mymaster 3000\n")
        super().__init__(name, network=network, listens=True)

    def command(self):
        path = self.folder + "/sentinel.conf"
        if not os.path.exists(path):
            with open(path, "w") as out:
                out.write(f"port {self.port}\nbind {self.network.address}\ndir {self.folder}\nlogfile log\n"
                          f"unixsocket {self.socket}\nprotected-mode no\n{self.watched}")
        return [PROGRAM, path, "--sentinel"]

    def master(self):
        """Its address."""
        address, port = self.redis.execute_command("sentinel", "get-master-addr-by-name", "mymaster")
        return address, int(port)

    def knows(self, replicas, others):
        words = self.redis.execute_command("sentinel", "master", "mymaster")
        found = dict(zip(words[::2], words[1::2])) if isinstance(words, list) else words
        return int(found["num-slaves"]) == replicas and int(found["num-other-sentinels"]) == others


class Watched:
    """A master (m) with two replicas (r1, r2), watched by three Sentinels (s1 to s3). The master and s1 are `near`, the
    others `far`. A server that does not answer for `down_after` ms is down.
    """
    def __init__(self, near=HERE, far=HERE, down_after=500):
        self.m = Server("m", network=near, listens=True)
        self.m.accept_epoch()
        self.replicas = [Server(name, "--replicaof", f"{near.address} {self.m.port}", network=far, listens=True)
                         for name in ("r1", "r2")]
        for one in self.replicas:
            need(one.in_step, "a replica is in step")
        self.sentinels = [Sentinel(name, self.m, 2, down_after, network)
                          for name, network in (("s1", near), ("s2", far), ("s3", far))]
        for one in self.sentinels:
            need(lambda: one.knows(2, 2), "the Sentinels know each other")

    def url(self):
        return "redis+sentinel://" + ",".join(f"{one.network.address}:{one.port}" for one in self.sentinels) + "/mymaster"

    def all(self):
        return [self.m, *self.replicas, *self.sentinels]

    def master(self):
        """The one that two Sentinels name; None if they do not agree."""
        named = [one.master() for one in self.sentinels if not one.frozen]
        for server in (self.m, *self.replicas):
            if named.count((server.network.address, server.port)) >= 2:
                return server
        return None

    def other_master(self, old):
        """Waits for a master that is not `old`, knows it, and returns it."""
        def is_there():
            now = self.master()
            return now and now is not old and now.role() == "master"

        need(is_there, "there is another master")
        return self.master()

    def stop(self):
        for one in reversed(self.all()):
            one.kill()


class Cluster:
    """Three masters (c1 to c3) without replicas, which keep their data. A server is missed only after 5 s."""
    def __init__(self):
        self.servers = [Server(f"c{number}", *KEEPS, "--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf",
                               "--cluster-node-timeout", "5000", "--cluster-require-full-coverage", "no", listens=True) for number in range(1, 4)]
        for number, one in enumerate(self.servers):
            one.id = self.ask(one, "myid")
            self.ask(one, "addslots", *range(16384 * number // 3, 16384 * (number + 1) // 3))
            self.ask(one, "set-config-epoch", number + 1)
            self.ask(one, "meet", "127.0.0.1", self.servers[0].port)
        need(lambda: all("cluster_state:ok" in self.ask(one, "info") and "cluster_known_nodes:3" in self.ask(one, "info")
                         for one in self.servers), "the cluster is ready")

    @staticmethod
    def ask(server, *words):
        """As text, as it comes."""
        return raw(server, "cluster", *words)

    def url(self):
        return "redis+cluster://" + ",".join(f"127.0.0.1:{one.port}" for one in self.servers)

    def keeper(self, slot):
        """The server that has the slot, as c1 knows."""
        for low, high, master, *_ in raw(self.servers[0], "cluster", "slots"):
            if low <= slot <= high:
                return next(one for one in self.servers if one.port == master[1])
        return None

    def move(self, slot, old, new):
        """With its keys, as redis-cli does."""
        self.ask(new, "setslot", slot, "importing", old.id)
        self.ask(old, "setslot", slot, "migrating", new.id)
        for key in raw(old, "cluster", "getkeysinslot", slot, 1000):
            raw(old, "migrate", "127.0.0.1", new.port, key, 0, 5000)
        for one in (new, old, *self.servers):
            self.ask(one, "setslot", slot, "node", new.id)

    def stop(self):
        for one in self.servers:
            one.kill()


def raw(server, *words):
    """The reply as it is: the library would make something else of some."""
    line = server.redis.connection_pool.get_connection("raw")
    try:
        line.send_command(*words)
        return line.read_response()
    finally:
        server.redis.connection_pool.release(line)


def shim(name):
    """A library for LD_PRELOAD, from tests/lib/NAME_shim.c."""
    library = os.path.abspath(name + ".so")
    if not os.path.exists(library):
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, f"{LIB}/{name}_shim.c"], check=True)
    return library


class Clocked(Server):
    """A server that keeps its data, and whose clock can be wrong. `aged`: it claims to have been up for an hour when it is
    started for the first time.
    """
    def __init__(self, name, aged=False, **more):
        self.clock, self.offset = open(name + ".clock", "w+"), 0
        self.step(0)
        preload = ([shim("aged")] if aged else []) + [shim("clock")]
        super().__init__(name, *KEEPS, **more,
                         environment={"LD_PRELOAD": ":".join(preload), "CLOCK_SHIM_FILE": os.path.abspath(self.clock.name), "AGED_SECONDS": "3600"})
        self.environment["LD_PRELOAD"] = shim("clock")

    def step(self, ms):
        self.offset += ms
        self.clock.seek(0)
        self.clock.write(f"{self.offset:<20}")
        self.clock.flush()

    def lose_data(self):
        """REQUIRES: it does not run."""
        shutil.rmtree(self.folder)
        os.mkdir(self.folder)
