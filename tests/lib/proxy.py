"""A proxy between rlock and a server that loses replies.

proxy.py LISTEN SERVER LOG [WORD COUNT]

Both are paths of Unix sockets. Each command that passes is written to LOG as a line
"CONNECTION NAME ARGUMENT"; for a script, the argument is rlock's name for it, such as b'rlock acquire'.
The first COUNT commands that contain WORD reach the server and are executed there, but instead of their reply
the client sees its connection closed.

PROXY_DELAY=WORD:SECONDS delays the replies to commands with WORD. LOG.answered gets a line for each
reply that was sent to the client: when the command came, when the reply left, in milliseconds of CLOCK_BOOTTIME, and the
command's first words.

PROXY_HOLD=WORD:FILE holds the replies to commands with WORD back until FILE exists.

PROXY_LOSES=SHARE loses this share of all replies at random; LOG gets a line "CONNECTION lost" for each.

PROXY_DEAD=FILE: connections that exist when FILE appears die silently: what they receive is dropped.

NO_EVALSHA=TEXT answers EVALSHA with this error, like a server without it.
"""
import os
import random
import socket
import sys
import threading
import time

listen, server, log = sys.argv[1:4]
word = sys.argv[4].encode() if len(sys.argv) > 4 else None
to_lose = int(sys.argv[5]) if len(sys.argv) > 5 else 0
slow, _, seconds = os.environ.get("PROXY_DELAY", "").partition(":")
held, _, let_go = os.environ.get("PROXY_HOLD", "").partition(":")
dead = os.environ.get("PROXY_DEAD", "")
loses = float(os.environ.get("PROXY_LOSES", "0"))
lock = threading.Lock()


def read_reply(stream):
    """One RESP2 value, as bytes."""
    line = stream.readline()
    if not line:
        return b""
    if line[:1] == b"$" and int(line[1:]) >= 0:
        return line + stream.read(int(line[1:]) + 2)
    if line[:1] == b"*":
        return line + b"".join(read_reply(stream) for _ in range(max(int(line[1:]), 0)))
    return line


def serve(number, client):
    global to_lose
    upstream = socket.socket(socket.AF_UNIX)
    upstream.connect(server)
    commands, replies = client.makefile("rb"), upstream.makefile("rb")
    born = time.time()
    while True:
        command = read_reply(commands)
        if not command:
            break
        if os.path.exists(dead) and os.stat(dead).st_mtime > born:
            continue
        with lock:
            words = command.split(b"\r\n")[2::2]
            named = next((word for word in words if word.startswith(b"rlock ")), (words[1:] or words)[0])
            with open(log, "a") as out:
                out.write(f"{number} {words[0].decode()} {named[:30]!r}\n")
            came = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000
            lose = word is not None and word in command and to_lose > 0
            to_lose -= lose
        if words[0] == b"EVALSHA" and "NO_EVALSHA" in os.environ:
            reply = b"-" + os.environ["NO_EVALSHA"].encode() + b"\r\n"
        else:
            upstream.sendall(command)
            reply = read_reply(replies)
            if random.random() < loses:
                lose = True
                with lock, open(log, "a") as out:
                    out.write(f"{number} lost\n")
        if lose or not reply:
            break
        if slow and slow.encode() in command:
            time.sleep(float(seconds))
        while held and held.encode() in command and not os.path.exists(let_go):
            time.sleep(0.02)
        try:
            client.sendall(reply)
        except OSError:  # it has gone
            break
        with lock, open(log + ".answered", "a") as out:
            out.write(f"{came} {time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000000} {named[:30]!r}\n")
        if words[0] == b"SUBSCRIBE":
            threading.Thread(target=forward, args=(replies, client), daemon=True).start()
    try:
        client.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    upstream.close()


def forward(replies, client):
    while data := replies.read1(4096):
        client.sendall(data)
    client.shutdown(socket.SHUT_RDWR)


acceptor = socket.socket(socket.AF_UNIX)
# The socket is visible only once it accepts connections.
acceptor.bind(listen + ".new")
acceptor.listen(100)
os.rename(listen + ".new", listen)
number = 0
while True:
    connection, _ = acceptor.accept()
    number += 1
    threading.Thread(target=serve, args=(number, connection), daemon=True).start()
