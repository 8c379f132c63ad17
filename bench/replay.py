# SPDX-License-Identifier: MIT
"""Commands of a client, recorded by MONITOR, and sent again with fresh ids."""
import hashlib
import os
import re
import socket
import subprocess
import sys
import uuid

import common

NAME, LEASE = b"recorded-lock", b"5007"  # of recorded jobs; unique in their commands
USUAL_LEASE = 30  # seconds, of `rlock run`
# With this script, Redisson's watchdog renews a lock.
REDISSON = (b"if (redis.call('hexists', KEYS[1], ARGV[2]) == 1) then redis.call('pexpire', KEYS[1], ARGV[1]); return 1; "
            b"end; return 0;")
SCRIPTS = b"eval", b"evalsha"
OWNER = re.compile(rb"[0-9a-f-]{36}:[0-9]+")
ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")


def connect(server):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server.path)
    return connection, connection.makefile("rb")


def encoded(words):
    return b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words])


def unescaped(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def commands_sent(server, action):
    """The commands that clients send while `action` runs, as lists of words."""
    connection, lines = connect(server)
    connection.sendall(encoded([b"MONITOR"]))
    lines.readline()
    action()
    server.call("ECHO", "the end")
    sent = []
    for line in lines:
        line = line.decode("latin-1")
        if "the end" in line:
            break
        words = [unescaped(word) for word in re.findall(r'"((?:[^"\\]|\\.)*)"', line)]
        if words and " lua] " not in line:
            sent.append(words)
    connection.close()
    return sent


def scripts_sent(server, action):
    return scripts_of(commands_sent(server, action))


def scripts_of(commands):
    return [words for words in commands if words[0].lower() in SCRIPTS]


def request(sent, verb):
    """The first of the commands that executes the script of this verb."""
    return next(words for words in sent if words[0].upper() == b"EVALSHA" and
                any(word.startswith(b"rlock " + verb) for word in words[2:]))


def teach_scripts(server, rlock, name):
    """Afterwards the server that keeps this lock knows the scripts, so jobs send only their names."""
    def call(*words):
        return subprocess.run([rlock, *words], env=server.environment(), check=True, text=True, stdout=subprocess.PIPE)

    owner = call("acquire", name, "--lease", "30s").stdout.strip()
    call("renew", name, "--owner", owner)
    call("release", name, "--owner", owner)


def holding_job(server, rlock):
    """Records the commands that take and renew a lock, from a job that runs until its first renewal."""
    name, left = NAME.decode(), []

    def renewed():
        left.append(server.call("PTTL", name))
        return len(left) > 1 and left[-1] > left[-2]

    def job():
        with subprocess.Popen([rlock, "run", "--lease", LEASE.decode() + "ms", name, "--", "cat"],
                              env=server.environment(), stdin=subprocess.PIPE) as process:
            try:
                common.until(lambda: server.call("EXISTS", name) == 1, 10, "the job does not get its lock")
                common.until(renewed, 60, "the job does not renew its lock")
            finally:
                process.stdin.close()

    teach_scripts(server, rlock, name)
    sent = scripts_sent(server, job)
    return request(sent, b"acquire"), request(sent, b"renew")


def redisson_renewal(name, lease, owner):
    """For a server that knows the script."""
    return [b"EVALSHA", hashlib.sha1(REDISSON).hexdigest().encode(), b"1", name, lease, owner]


def with_fresh_ids(commands, fresh=None):
    """Encodes the commands with new ids. `fresh` maps old ids to new ones; pass it again for the same owner."""
    fresh = {} if fresh is None else fresh

    def new_id(match):
        old = match[0]
        if old not in fresh:
            new = str(uuid.uuid4())
            fresh[old] = (new if b"-" in old else new.replace("-", "")).encode()
        return fresh[old]

    def renewed(words):
        kept = 2 if words[0].lower() in SCRIPTS else 1  # the digest of a script is no id
        return words[:kept] + [ID.sub(new_id, word) for word in words[kept:]]

    return b"".join(encoded(renewed(words)) for words in commands)


def of_lock(words, name, lease, fresh):
    """The same command for another lock and lease, in ms; in rlock's requests, the lease is a short text of MessagePack."""
    def text(value):
        return b"\xa5lease" + bytes([0xa0 + len(value)]) + value

    words = [lease if word == LEASE else word.replace(NAME, name).replace(text(LEASE), text(lease)) for word in words]
    return with_fresh_ids([words], fresh)


def replies_of(lines, number):
    """Reads `number` replies, and returns the texts and numbers of the last one. Exits on an error."""
    for _ in range(number):
        left, values = 1, []
        while left:
            head = lines.readline()
            left -= 1
            if head[:1] == b"-":
                sys.exit(f"{os.path.basename(sys.argv[0])}: " + head.decode().rstrip())
            if head[:1] == b"*":
                left += max(int(head[1:]), 0)
            elif head[:1] == b"$":
                values.append(lines.read(int(head[1:]) + 2)[:-2] if int(head[1:]) >= 0 else None)
            else:
                values.append(head[1:-2])
    return values


def busy_us(server):
    cpu = server.info("cpu")
    return 1e6 * sum(float(cpu["used_cpu_%s_main_thread" % kind]) for kind in ("user", "sys"))
