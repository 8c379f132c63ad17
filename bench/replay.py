# SPDX-License-Identifier: MIT
"""Commands of a client, recorded by MONITOR, and sent again with fresh ids."""
import os
import re
import socket
import sys
import uuid

ID = re.compile(rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{32}")


def connect(server):
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(server.path)
    return connection, connection.makefile("rb")


def encoded(words):
    return b"".join([b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words])


def unescaped(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def scripts_sent(server, action):
    """The scripts that clients send while `action` runs, as lists of words."""
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
        if words and " lua] " not in line and words[0].lower() in (b"eval", b"evalsha"):
            sent.append(words)
    connection.close()
    return sent


def with_fresh_ids(commands, fresh=None):
    """Encodes the commands with new ids. `fresh` maps old ids to new ones; pass it again for the same owner."""
    fresh = {} if fresh is None else fresh

    def new_id(match):
        old = match[0]
        if old not in fresh:
            new = str(uuid.uuid4())
            fresh[old] = (new if b"-" in old else new.replace("-", "")).encode()
        return fresh[old]

    return b"".join(encoded(words[:2] + [ID.sub(new_id, word) for word in words[2:]]) for words in commands)


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
