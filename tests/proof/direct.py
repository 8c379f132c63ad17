#!/usr/bin/python3
"""direct.py: a client that speaks rlock's scripts itself, because a section through the program costs a few processes, and
this one a few messages. It obeys the rules of docs/architecture.md, section 2: its deadline counts from before it sent
the last request that succeeded, and a section is over when the clock has been seen beyond it.

Its only argument is a JSON object:
    history, seed     where it writes its sections (see check.py), and what it does
    scripts           the folder with the scripts as lua/embed.cmake writes them
    unix | sentinels | cluster   the path of a server, or [[host, port] …]
    guard             what it says to the epoch guard; "" for none
    names             [[name, mode] …]; mode as in check.py
It works until it is killed.
"""
import hashlib
import json
import os
import random
import sys
import time
import uuid

import redis

LEASE = 5.0
# As in src/verbs/lease.cc, for a lease of 5 s or more: the rates of the clocks, a step, and the time to stop.
DEADLINE = LEASE * 0.99 - 0.5 - 1
ASK_AGAIN = 0.2  # seconds for which an answer of the Sentinels counts
RETRY = 0.05
SOON = {"socket_timeout": 1, "socket_connect_timeout": 1}
LAYOUTS = {"w": "plain", "r": "read_write", "W": "read_write", "s": "semaphore"}


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Failed(Exception):
    """No reply, or one that says that nothing was done."""


class One:
    """A server."""
    def __init__(self, path):
        self.redis = redis.Redis(unix_socket_path=path, **SOON)

    def call(self, *words):
        return self.redis.execute_command(*words)

    def stands(self):
        return True


class Behind:
    """The master that two Sentinels name."""
    def __init__(self, sentinels):
        self.sentinels = [redis.Redis(host=host, port=port, **SOON) for host, port in sentinels]
        self.asked, self.at, self.redis = 0, None, None

    def named(self):
        found = []
        for one in self.sentinels:
            try:
                found.append(tuple(one.execute_command("sentinel", "get-master-addr-by-name", "mymaster")))
            except redis.RedisError:
                continue
            if found.count(found[-1]) == 2:
                return found[-1]
        return None

    def follow(self):
        began = now()
        address = self.named()
        if not address:
            raise redis.ConnectionError("no two Sentinels agree")
        if address != self.at:
            server = redis.Redis(host=address[0].decode(), port=int(address[1]), **SOON)
            if server.execute_command("role")[0] not in (b"master", "master"):
                raise redis.ConnectionError("it is no master")
            self.redis, self.at = server, address
        self.asked = began

    def call(self, *words):
        if now() > self.asked + ASK_AGAIN:
            self.follow()
        return self.redis.execute_command(*words)

    def stands(self):
        """Whether the server that has answered is still the master."""
        if now() <= self.asked + ASK_AGAIN:
            return True
        asked = now()
        if self.named() != self.at:
            return False
        self.asked = asked
        return True


class InCluster:
    def __init__(self, nodes):
        self.nodes, self.redis = [redis.cluster.ClusterNode(host, port) for host, port in nodes], None

    def call(self, *words):
        if not self.redis:
            self.redis = redis.RedisCluster(startup_nodes=self.nodes, **SOON)
        try:
            return self.redis.execute_command(*words)
        except redis.ConnectionError:
            self.redis = None
            raise

    def stands(self):
        return True


class Locks:
    """The verbs."""
    def __init__(self, client, scripts, guard):
        self.client, self.guard = client, guard
        self.texts = {name[:-4]: open(f"{scripts}/{name}").read() for name in os.listdir(scripts) if name.endswith(".lua")}

    def script(self, verb, layout, name, more_keys, words, guarded):
        tag = "{" + name + "}"
        channel = {"plain": "redisson_lock__channel:", "read_write": "redisson_rwlock:", "semaphore": "redisson_sc:"}[layout]
        keys = [name, "redisson_lock_token:" + tag, "rlock:holder:" + tag, "rlock:queue:" + tag, "rlock:waiters:" + tag,
                tag + ":timeout", *more_keys]
        first = "rlock " + verb
        if guarded and self.guard:
            keys.append("rlock:epoch")
            first += ", guard " + self.guard
        text = self.texts[f"{verb}_{layout}"]
        rest = [len(keys), *keys, first, channel + tag, f"rlock:grant:{tag}:", f"rlock:hold:{tag}:", *words]
        try:
            return self.twice("EVALSHA", hashlib.sha1(text.encode()).hexdigest(), *rest)
        except redis.exceptions.NoScriptError:  # so it has not run
            return self.twice("EVAL", text, *rest)

    def twice(self, *words):
        """Sent again if the reply was lost, which every script allows."""
        for last in (False, True):
            try:
                return self.client.call(*words)
            except (redis.ConnectionError, redis.TimeoutError, OSError) as error:
                if last:
                    raise Failed(error) from error
            except redis.exceptions.NoScriptError:
                raise
            except redis.RedisError as error:  # out of memory, a replica, a cluster that is down
                raise Failed(error) from error

    def acquire(self, layout, name, mode, owner):
        """The token; None if it is not available."""
        reply = self.script("acquire", layout, name, [], [owner, int(LEASE * 1000), owner.split(":")[0], "", mode, 2, "pid",
                                                          os.getpid()], True)
        if reply[0] == b"granted" and not self.client.stands():
            self.release(layout, name, owner)
            return None
        return int(reply[2]) if reply[0] == b"granted" else None

    def renew(self, layout, name, owner):
        return self.script("renew", layout, name, [], [owner, int(LEASE * 1000)], True)[0] == b"renewed"

    def release(self, layout, name, owner):
        request = uuid.uuid4().hex
        self.script("release", layout, name, [f"rlock:hold:{{{name}}}:{request}:released"],
                    [owner, owner.split(":")[0], 0, 10000], False)


class Worker:
    def __init__(self, options, client):
        self.locks = Locks(client, options["scripts"], options["guard"])
        self.names, self.random = options["names"], random.Random(options["seed"])
        self.history = os.open(options["history"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.count = 0

    def hold(self, layout, name, owner, began, seconds):
        """Executes for so long, if it may. The time of its last instruction."""
        deadline, renew_at, last = began + DEADLINE, began + LEASE / 3, now()
        first = last
        while last < first + seconds:
            time.sleep(min(0.02, seconds))
            seen = now()
            if seen >= deadline:
                return last
            last = seen
            if last >= renew_at:
                sent = now()
                try:
                    if not self.locks.renew(layout, name, owner):
                        return last
                    deadline, renew_at = sent + DEADLINE, sent + LEASE / 3
                except Failed:
                    renew_at = now() + LEASE / 15
        return last

    def section(self):
        name, mode = self.random.choice(self.names)
        layout = LAYOUTS[mode[0]]
        asked = {"w": "", "r": "read", "W": "write", "s": mode[1:]}[mode[0]]
        owner = str(uuid.uuid4()) + ":0"
        sent = now()
        token = self.locks.acquire(layout, name, asked, owner)
        begin = now()
        if token is None or begin >= sent + DEADLINE:
            time.sleep(self.random.uniform(0, 0.01))
            return
        kind = self.random.random()
        seconds = 0 if kind < 0.97 else self.random.uniform(0, 0.05) if kind < 0.998 else self.random.uniform(1, 8)
        end = self.hold(layout, name, owner, sent, seconds) if seconds else begin
        self.count += 1
        line = f"section d{os.getpid()}-{self.count} {name} {mode.lower()} {begin * 1e9:.0f} {end * 1e9:.0f} {token}\n"
        os.write(self.history, line.encode())
        if self.random.random() < 0.9999:  # otherwise its lease has to end
            self.locks.release(layout, name, owner)

    def work(self):
        while True:
            try:
                self.section()
            except Failed:
                time.sleep(RETRY)


def main(options):
    if "unix" in options:
        client = One(options["unix"])
    elif "sentinels" in options:
        client = Behind(options["sentinels"])
    else:
        client = InCluster(options["cluster"])
    Worker(options, client).work()


main(json.loads(sys.argv[1]))
