"""The Lock of redis-py, for redis_py.bats.

redis_py.py SOCKET COMMAND NAME ...        exits with 0, or with 3 if redis-py says that the lock is not its own
  hold NAME SECONDS STARTED END            takes the lock for SECONDS (0: without a TTL), writes its token to STARTED,
                                           waits until END exists, and releases
  try NAME                                 exits with 0 if it can be taken, and with 1 if not
  ask NAME                                 prints locked() and owned(), and tries to extend and release it with its own
                                           token
  sections NAME COUNT FILE                 COUNT times adds 1 to the number in FILE, by reading and writing, under the lock
"""
import os
import sys
import time

import redis


def write(path, text):
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def hold(client, name, seconds, started, end):
    lock = client.lock(name, timeout=float(seconds) or None)
    lock.acquire()
    write(started, lock.local.token.decode())
    while not os.path.exists(end):
        time.sleep(0.02)
    lock.release()


def attempt(client, name):
    if not client.lock(name, timeout=600).acquire(blocking=False):
        sys.exit(1)


def ask(client, name):
    lock = client.lock(name, timeout=600)
    lock.local.token = b"another"
    print(lock.locked(), lock.owned())
    refused = 0
    for call in (lambda: lock.extend(60), lock.reacquire, lock.release):
        try:
            call()
        except redis.exceptions.LockNotOwnedError:
            refused += 1
    print(refused)


def sections(client, name, count, path):
    for _ in range(int(count)):
        with client.lock(name, timeout=60, sleep=0.01):
            with open(path) as file:
                number = int(file.read())
            time.sleep(0.001)
            with open(path, "w") as file:
                file.write(str(number + 1))


commands = {"hold": hold, "try": attempt, "ask": ask, "sections": sections}
try:
    commands[sys.argv[2]](redis.Redis(unix_socket_path=sys.argv[1]), *sys.argv[3:])
except redis.exceptions.LockNotOwnedError as error:
    print(error, file=sys.stderr)
    sys.exit(3)
