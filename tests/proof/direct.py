#!/usr/bin/python3
"""direct.py: a client that speaks rlock's scripts itself, because a section through the program costs a few processes, and
this one a few messages. It obeys the rules of docs/proof.md, The timing proof: its deadline counts from before it sent
the last request that succeeded, and a section is over when the clock has been seen beyond it.

Its only argument is a JSON object:
    history, seed     where it writes its sections (see check.py), and what it does
    script            the script as lua/embed.cmake writes it
    unix | sentinels | cluster   the path of a server, or [[host, port] …]
    guard             what it asks of the epoch guard; null for nothing
    names             [[name, mode] …]; mode as in check.py
    own               names of plain locks; it takes several of these at a time, with one exchange; if there are none, it
                      holds locks for long
It works until it is killed.
"""
import hashlib
import json
import os
import random
import sys
import time
import uuid

import msgpack
import redis

LEASE = 5.0
# As in src/verbs/lease.cc, for a lease of 5 s or more: the rates of the clocks, a step, and the time to stop.
DEADLINE = LEASE * 0.99 - 0.5 - 1
ASK_AGAIN = 0.2  # seconds for which an answer of the Sentinels counts
RETRY = 0.05
AT_ONCE = 8
SHORT = 0.0005
SOON = {"socket_timeout": 1, "socket_connect_timeout": 1}
LAYOUTS = {"w": "plain", "r": "read_write", "W": "read_write", "s": "semaphore"}


def now():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def at_once(server, commands):
    """The replies; an error in place of one that failed."""
    pipe = server.pipeline(transaction=False)
    for words in commands:
        pipe.execute_command(*words)
    return pipe.execute(raise_on_error=False)


class Failed(Exception):
    """No reply, or one that says that nothing was done."""


class One:
    """A server."""
    def __init__(self, path):
        self.redis = redis.Redis(unix_socket_path=path, **SOON)

    def call(self, *words):
        return self.redis.execute_command(*words)

    def call_all(self, commands):
        return at_once(self.redis, commands)

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
        return self.server().execute_command(*words)

    def call_all(self, commands):
        return at_once(self.server(), commands)

    def server(self):
        if now() > self.asked + ASK_AGAIN:
            self.follow()
        return self.redis

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

    def call_all(self, commands):
        return [self.call(*words) for words in commands]

    def stands(self):
        return True


class Locks:
    """The verbs."""
    def __init__(self, client, script, guard):
        self.client, self.guard = client, guard
        self.text = open(script).read()
        self.digest = hashlib.sha1(self.text.encode()).hexdigest()

    def words(self, verb, layout, name, more_keys, request, guarded):
        tag = "{" + name + "}"
        keys = [name, "redisson_lock_token:" + tag, "rlock:holder:" + tag, "rlock:queue:" + tag, "rlock:waiters:" + tag,
                tag + ":timeout", *more_keys]
        if guarded and self.guard is not None:
            keys.append("rlock:epoch")
            request["guard"] = self.guard
        return ["EVALSHA", self.digest, len(keys), *keys, "rlock " + verb, msgpack.packb({"layout": layout, **request})]

    def script(self, *description):
        words = self.words(*description)
        try:
            return msgpack.unpackb(self.twice(*words))
        except redis.exceptions.NoScriptError:  # so it has not run
            return msgpack.unpackb(self.twice("EVAL", self.text, *words[2:]))

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

    @staticmethod
    def to_acquire(layout, name, want, owner):
        request = {"owner": owner, "lease": str(int(LEASE * 1000)), "hold": owner.split(":")[0], "want": want,
                   "about": ["pid", str(os.getpid())]}
        return "acquire", layout, name, [], request, True

    @staticmethod
    def to_release(layout, name, owner):
        sent = uuid.uuid4().hex
        request = {"owner": owner, "hold": owner.split(":")[0], "keep": "0", "id": sent, "remember": "10000"}
        return "release", layout, name, [f"rlock:hold:{{{name}}}:{sent}:released"], request, False

    def several(self, holds):
        """Acquires a free plain lock for each (name, owner): the tokens; None for one that was not granted."""
        replies = self.client.call_all([self.words(*self.to_acquire("plain", name, {}, owner)) for name, owner in holds])
        tokens = [isinstance(reply, bytes) and msgpack.unpackb(reply).get("token") for reply in replies]
        if any(isinstance(reply, redis.exceptions.NoScriptError) for reply in replies):
            self.script(*self.to_acquire("plain", "load", {}, str(uuid.uuid4()) + ":0"))
        stands = any(tokens) and self.client.stands()
        return [int(token) if token and stands else None for token in tokens]

    def release_several(self, holds):
        replies = self.client.call_all([self.words(*self.to_release("plain", name, owner)) for name, owner in holds])
        for hold, reply in zip(holds, replies):
            if isinstance(reply, redis.exceptions.NoScriptError):
                self.release("plain", *hold)

    def acquire(self, layout, name, want, owner):
        """The token; None if it is not available."""
        reply = self.script(*self.to_acquire(layout, name, want, owner))
        if reply["outcome"] == "granted" and not self.client.stands():
            self.release(layout, name, owner)
            return None
        return int(reply["token"]) if reply["outcome"] == "granted" else None

    def renew(self, layout, name, owner):
        request = {"owner": owner, "lease": str(int(LEASE * 1000))}
        return self.script("renew", layout, name, [], request, True)["outcome"] == "renewed"

    def release(self, layout, name, owner):
        self.script(*self.to_release(layout, name, owner))


class Worker:
    def __init__(self, options, client):
        self.locks = Locks(client, options["script"], options["guard"])
        self.names, self.own, self.random = options["names"], options["own"], random.Random(options["seed"])
        self.history = os.open(options["history"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.count = 0

    def hold(self, layout, name, owner, sent, seconds):
        """Executes for so long, if it may. The time of its last instruction. `sent`: when the request was."""
        deadline, renew_at, last = sent + DEADLINE, sent + LEASE / 3, now()
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
        want = {"w": {}, "r": {"mode": "read"}, "W": {"mode": "write"}}.get(mode[0]) or {"slots": int(mode[1:] or 0)}
        owner = str(uuid.uuid4()) + ":0"
        sent = now()
        token = self.locks.acquire(layout, name, want, owner)
        begin = now()
        if token is None or begin >= sent + DEADLINE:
            time.sleep(self.random.uniform(0, 0.01))
            return
        seconds = self.random.uniform(0, 8) if not self.own else SHORT if self.random.random() < 0.97 else 0.05
        end = self.hold(layout, name, owner, sent, seconds)
        os.write(self.history, self.line(name, mode, begin, end, token))
        if self.random.random() < 0.9999:  # otherwise its lease has to end
            self.locks.release(layout, name, owner)

    def line(self, name, mode, begin, end, token):
        self.count += 1
        text = f"section d{os.getpid()}-{self.count} {name} {mode.lower()} {begin * 1e9:.0f} {end * 1e9:.0f} {token}\n"
        return text.encode()

    def several(self):
        """Short ones, of its own names."""
        holds = [(name, str(uuid.uuid4()) + ":0") for name in self.random.sample(self.own, AT_ONCE)]
        sent = now()
        tokens = self.locks.several(holds)
        begin = now()
        time.sleep(SHORT)
        end = now()
        if end < sent + DEADLINE:
            lines = [self.line(name, "w", begin, end, token) for (name, _), token in zip(holds, tokens) if token is not None]
            os.write(self.history, b"".join(lines))
        self.locks.release_several(holds)

    def work(self):
        while True:
            try:
                self.section()
                for _ in range(4 if self.own else 0):
                    self.several()
            except (Failed, redis.RedisError, OSError):
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
