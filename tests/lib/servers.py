"""Real servers, for tests in Python. Each has a folder of its own below the current one, listens on the Unix socket `s`
there, and ends with the script that started it, however that ends.
"""
import os
import random
import signal
import subprocess
import time

import redis

GUARD = "rlock:epoch"
SHORT = {"socket_timeout": 10, "decode_responses": True}


def wait_until(true, seconds=60):
    by = time.monotonic() + seconds
    while not true():
        if time.monotonic() > by:
            return False
        time.sleep(0.02)
    return True


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


class Network:
    """Where processes run: `address`, and the command with which they get there."""
    def __init__(self, address="127.0.0.1", enter=()):
        self.address, self.enter = address, list(enter)


HERE = Network()


class Cable:
    """Two networks, here and there, with a cable between them. REQUIRES: root."""
    def __init__(self):
        self.sleepers = [subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", "-n", "sleep", "infinity"])
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


class Server:
    """A redis-server. `options`: of its command line."""
    def __init__(self, name, *options, network=HERE, listens=False, program="redis-server", environment=()):
        self.name, self.network, self.program, self.options = name, network, program, list(options)
        self.environment = {**os.environ, **dict(environment)}
        self.folder = os.path.abspath(name)
        self.socket = self.folder + "/s"
        self.port = free_port() if listens else 0
        self.frozen = False
        os.makedirs(self.folder, exist_ok=True)
        self.redis = redis.Redis(unix_socket_path=self.socket, **SHORT)
        self.start()

    def command(self):
        return [self.program, "--port", str(self.port), "--bind", self.network.address, "--protected-mode", "no",
                "--unixsocket", self.socket, "--dir", self.folder, "--save", "", "--logfile", "log", *self.options]

    def start(self):
        self.process = subprocess.Popen([*self.network.enter, "setpriv", "--pdeathsig", "KILL", *self.command()],
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
        return [self.program, path, "--sentinel"]

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
