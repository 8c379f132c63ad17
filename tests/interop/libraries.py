"""Locks of Python libraries, for libraries.bats.

libraries.py LIBRARY SOCKETS COMMAND NAME ...   SOCKETS: of the servers, with commas in between, if the library can use
                                                several. Exits with 0, or with 3 if the lock is not the library's own
  hold NAME SECONDS STARTED END            takes the lock for SECONDS (0: without a TTL), writes its value to STARTED,
                                           waits until END exists, and releases
  try NAME                                 exits with 0 if it can be taken, and with 1 if not
  ask NAME                                 of redis-py: prints locked() and owned(), and in how many ways a lock of
                                           another owner can not be extended or released
  sections NAME COUNT FILE                 COUNT times adds 1 to the number in FILE, by reading and writing, under the lock
"""
import os
import random
import sys
import time

import redis

library, sockets = sys.argv[1], sys.argv[2].split(",")
# A waiter may wait long: BLPOP.
servers = [redis.Redis(unix_socket_path=socket, socket_timeout=None) for socket in sockets]
KEYS = {"pottery": "redlock:", "python-redis-lock": "lock:"}


class RedlockPy:
    """Waits, which redlock-py itself does for a limited time. Clients that wait equally long would collide forever."""

    def __init__(self, name, seconds):
        import redlock
        self.name, self.ttl = name, int(seconds * 1000)
        self.once = redlock.Redlock(servers, retry_count=1, retry_delay=0.001)

    def acquire(self, blocking=True):
        while True:
            self.lock = self.once.lock(self.name, self.ttl)
            if self.lock or not blocking:
                return bool(self.lock)
            time.sleep(random.uniform(0, 0.2))

    def release(self):
        self.once.unlock(self.lock)  # without a result


def new_lock(name, seconds):
    if library == "redis-py":
        return servers[0].lock(name, timeout=seconds or None, sleep=0.01)
    if library == "redlock-py":
        return RedlockPy(name, seconds)
    if library == "pottery":
        import pottery
        return pottery.Redlock(key=name, masters=set(servers), auto_release_time=seconds)
    import redis_lock
    return redis_lock.Lock(servers[0], name, expire=int(seconds))


def not_ours():
    if library == "pottery":
        import pottery
        return pottery.ReleaseUnlockedLock
    if library == "python-redis-lock":
        import redis_lock
        return redis_lock.NotAcquired
    return redis.exceptions.LockNotOwnedError


def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def hold(name, seconds, started, end):
    lock = new_lock(name, float(seconds))
    lock.acquire()
    write(started, servers[0].get(KEYS.get(library, "") + name).decode(errors="replace"))
    while not os.path.exists(end):
        time.sleep(0.02)
    lock.release()


def attempt(name):
    if not new_lock(name, 600).acquire(blocking=False):
        sys.exit(1)


def ask(name):
    lock = new_lock(name, 600)
    lock.local.token = b"another"
    print(lock.locked(), lock.owned())
    refused = 0
    for call in (lambda: lock.extend(60), lock.reacquire, lock.release):
        try:
            call()
        except redis.exceptions.LockNotOwnedError:
            refused += 1
    print(refused)


def sections(name, count, path):
    for _ in range(int(count)):
        lock = new_lock(name, 60)
        lock.acquire()
        with open(path) as file:
            number = int(file.read())
        time.sleep(0.001)
        with open(path, "w") as file:
            file.write(str(number + 1))
        lock.release()


commands = {"hold": hold, "try": attempt, "ask": ask, "sections": sections}
try:
    commands[sys.argv[3]](*sys.argv[4:])
except not_ours() as error:
    print(error, file=sys.stderr)
    sys.exit(3)
