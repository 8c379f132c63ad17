"""Locks of Python libraries behind the line protocol of tests/interop/README.md: driver.py LIBRARY URL [URL ...]"""
import importlib.metadata
import json
import logging
import random
import sys
import time
import uuid

import redis

logging.disable()  # python-redis-lock logs each attempt that fails
library, urls = sys.argv[1], sys.argv[2:]
# A waiter may wait long: BLPOP.
servers = [redis.Redis.from_url(url, socket_timeout=None) for url in urls]


class RedisPy:
    def __init__(self, name, ttl):
        self.lock = servers[0].lock(name, timeout=ttl / 1000)

    def attempt(self):
        return self.lock.acquire(blocking=False)

    def wait(self):
        return self.lock.acquire()

    def extend(self, ttl):
        return self.lock.extend(ttl / 1000, replace_ttl=True)

    def unlock(self):
        self.lock.release()
        return True


class RedlockPy:
    def __init__(self, name, ttl):
        import redlock
        self.name, self.ttl = name, ttl
        self.once = redlock.Redlock(servers, retry_count=1, retry_delay=0.001)

    def attempt(self):
        self.lock = self.once.lock(self.name, self.ttl)
        return bool(self.lock)

    def wait(self):
        # It cannot wait forever, and clients that wait equally long would collide again and again.
        while not self.attempt():
            time.sleep(random.uniform(0, 0.2))
        return True

    def extend(self, _):
        raise NotImplementedError("redlock-py extends no lock")

    def unlock(self):
        self.once.unlock(self.lock)  # without a result
        return True


class Pottery:
    def __init__(self, name, ttl):
        import pottery
        self.lock = pottery.Redlock(key=name, masters=set(servers), auto_release_time=ttl / 1000)

    def attempt(self):
        return self.lock.acquire(blocking=False)

    def wait(self):
        return self.lock.acquire()

    def extend(self, ttl):
        self.lock.auto_release_time = ttl / 1000
        self.lock.extend()
        return True

    def unlock(self):
        self.lock.release()
        return True


class PythonRedisLock:
    def __init__(self, name, ttl):
        import redis_lock
        self.lock = redis_lock.Lock(servers[0], name, expire=max(1, ttl // 1000))

    def attempt(self):
        return self.lock.acquire(blocking=False)

    def wait(self):
        return self.lock.acquire()

    def extend(self, ttl):
        self.lock.extend(ttl // 1000)
        return True

    def unlock(self):
        self.lock.release()
        return True

    def force(self):
        self.lock.reset()
        return True


class OnMajority:
    """The commands of a library that no registry here has, as its source sends them to each server."""

    RELEASE = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1])"

    def __init__(self, name, ttl):
        self.name, self.ttl, self.value = self.key_of(name), ttl, str(uuid.uuid4())

    def on_all(self, send):
        return sum(bool(send(server)) for server in servers) > len(servers) // 2

    def attempt(self):
        if self.on_all(self.take):
            return True
        self.unlock()
        return False

    def wait(self):
        while not self.attempt():
            time.sleep(self.pause())
        return True

    def unlock(self):
        return self.on_all(lambda server: server.eval(self.RELEASE, 1, self.name, self.value))


class RedlockRb(OnMajority):
    """redlock-rb: one script takes the key and extends it."""

    LOCK = """local value = redis.call('get', KEYS[1])
        return (value == ARGV[1] or not value and ARGV[3] == 'yes') and redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])"""

    @staticmethod
    def key_of(name):
        return name

    @staticmethod
    def pause():
        return random.uniform(0.2, 0.25)

    def take(self, server, new="yes"):
        return server.eval(self.LOCK, 1, self.name, self.value, self.ttl, new)

    def extend(self, ttl):
        self.ttl = ttl
        return self.on_all(lambda server: self.take(server, "no"))


class RedlockNet(OnMajority):
    """RedLock.net: an extension also takes a key that has expired."""

    EXTEND = """local value = redis.call('get', KEYS[1])
        return (value == ARGV[1] or not value) and redis.call('set', KEYS[1], ARGV[1], 'px', ARGV[2])"""

    @staticmethod
    def key_of(name):
        # Its format is an option.
        return name if name == "counter" else "redlock:" + name

    @staticmethod
    def pause():
        return random.uniform(0, 0.4)

    def take(self, server):
        return server.set(self.name, self.value, px=self.ttl, nx=True)

    def extend(self, ttl):
        return self.on_all(lambda server: server.eval(self.EXTEND, 1, self.name, self.value, ttl))


libraries = {"redis-py": RedisPy, "redlock-py": RedlockPy, "pottery": Pottery, "python-redis-lock": PythonRedisLock,
             "redlock-rb": RedlockRb, "redlock-net": RedlockNet}
BY_WIRE_FORM = ("redlock-rb", "redlock-net")


def sections(name, count, path, ttl):
    for _ in range(int(count)):
        lock = libraries[library](name, int(ttl))
        lock.wait()
        with open(path) as file:
            number = int(file.read())
        time.sleep(0.001)
        with open(path, "w") as file:
            file.write(str(number + 1))
        lock.unlock()
    return True


current = None


def perform(command, words):
    global current
    if command in ("try", "lock"):
        lock = libraries[library](words[0], int(words[1]))
        ok = lock.attempt() if command == "try" else lock.wait()
        if ok:
            current = lock
        return bool(ok)
    if command == "force":
        return libraries[library](words[0], 600000).force()
    if command == "sections":
        return sections(*words)
    return bool(current.extend(int(words[0])) if command == "extend" else current.unlock())


def say(**words):
    print(json.dumps(words), flush=True)


version = "wire form" if library in BY_WIRE_FORM else \
    importlib.metadata.version("redis" if library == "redis-py" else library)
say(event="ready", version=version)
for line in sys.stdin:
    command, *words = line.split()
    if command == "quit":
        break
    try:
        ok, error = perform(command, words), ""
    except Exception as thrown:  # a library's exception is its answer
        ok, error = False, f"{type(thrown).__name__}: {thrown}"
    say(command=command, ok=ok, error=error, at=time.time() * 1000)
