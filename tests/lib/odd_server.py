#!/usr/bin/env python3
"""odd_server.py MODE [TEXT]: a server on a loopback port that is not Redis. Prints its port, runs until killed.

These do not speak its protocol:

garbage  answers random bytes with terminal control sequences
echo     answers "502 unknown: " and everything that it was sent, in one line
http     answers as a web server does
silent   accepts and never answers
close    accepts and closes at once
trickle  answers one byte at a time, a line that never ends
line     answers an endless line, as fast as it can
bulk     announces a string of half a gigabyte and sends it
array    announces a long array and sends it
nest     answers arrays in arrays in arrays
huge     announces an array with more elements than fit into memory, and sends nothing
negative announces a string of length -5

These speak it, and answer like the scripts for one free lock, except:
grant      the lock is granted to the owner TEXT, with the token 9
token      the lock is granted with the token TEXT
outcome    the answer to a request for the lock is TEXT
twice      a grant is followed by a second reply, in the same packet
fault      TEXT is the reason why waiters could not be told of a release
wrong      a command gets a wrong answer: TEXT is "COMMAND ANSWER", as it is sent, with | between lines
once       the first connection only gets the error TEXT
unasked    it does not read: once something has come, it says TEXT, and closes the connection
greets     the same at once
repeat     the answer to AUTH is an error that begins with TEXT and repeats the words of the command
behind     the answer to AUTH is OK, followed by such an error
forget     from its second script on, the first connection counts as unauthenticated
confirm    the lock is held; subscribers get endless confirmations
refuse     the lock is held; subscribers get the error TEXT again and again
message    the lock is held; subscribers get the message TEXT again and again
scan       a SCAN never ends, and finds nothing
unlisted   the lock is held, and nobody is among its holders
names      a SCAN never ends, and finds other names of 500 bytes each time
moved, ask  it is a cluster of one, and redirects each command to a new host, which it is, too. Here and below
           TEXT is a file that gets a line for each AUTH: the host to which it was sent
crowd      the same with MOVED, and the list of slots has a thousand hosts
masters    it is a Sentinel that names a new master each time; it is all of them, and none of them knows a script
masters-grant  the same, but the masters grant
loading    it answers like a Redis that is loading its data, which a real one does too slowly or too soon for a test
"""
import itertools
import os
import socket
import sys
import threading
import time

import msgpack

CHUNK = 1 << 16
SPEAKING = "grant token outcome twice fault wrong once repeat behind forget confirm refuse message scan unlisted names loading".split()
UNASKED = "unasked greets".split()
MANY = "moved ask crowd masters masters-grant".split()
SPEAKING += MANY
# What these answer, and what they go on with.
ANSWERS = {"garbage": b"\x1b[31mwhat?\x07\x00\xff\r\n\r\n", "http": b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n",
           "line": b"+", "bulk": b"$536870912\r\n", "array": b"*2147483647\r\n", "huge": b"*4294967296\r\n", "negative": b"$-5\r\n"}
FLOODS = {"line": b"a" * CHUNK, "bulk": b"a" * CHUNK, "array": b":1\r\n" * (CHUNK // 4), "nest": b"*1\r\n" * (CHUNK // 4)}
kept = []


def read_value(stream):
    """One command, or a part of one."""
    line = stream.readline()
    if line[:1] == b"*":
        return [read_value(stream) for _ in range(int(line[1:]))]
    if line[:1] == b"$":
        return stream.read(int(line[1:]) + 2)[:-2]
    raise OSError("closed")


def encoded(value):
    if isinstance(value, int):
        return b":%d\r\n" % value
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(encoded, value))
    return b"$%d\r\n%s\r\n" % (len(value), value)


fresh = itertools.count()


def new_host():
    number = next(fresh)
    return b"127.1.%d.%d" % (number // 250, number % 250 + 1)


def answer_of_many(mode, here, words):
    """None: the usual answer."""
    host, port = here
    if words[0] == b"CLUSTER":
        names = [b"127.2.%d.%d" % (i // 250, i % 250 + 1) for i in range(1000)] if mode == "crowd" else [host.encode()]
        share = 16384 // len(names)
        return encoded([[i * share, 16383 if name == names[-1] else (i + 1) * share - 1, [name, port, b"%040d" % i]]
                        for i, name in enumerate(names)])
    if words[0] in (b"AUTH", b"ASKING", b"CLIENT", b"SUBSCRIBE", b"SSUBSCRIBE", b"SENTINEL", b"ROLE"):
        place = [new_host(), b"%d" % port]
        about = [b"config-epoch", b"1"] if words[1:2] == [b"MASTER"] else place
        return {b"SENTINEL": encoded(about), b"ROLE": encoded([b"master", 0, []]),
                b"CLIENT": b"+OK\r\n", b"ASKING": b"+OK\r\n"}.get(words[0])
    if mode in ("moved", "ask", "crowd"):
        return b"-%s 1 %s:%d\r\n" % (b"ASK" if mode == "ask" else b"MOVED", new_host(), port)
    return b"-READONLY You can't write against a read only replica.\r\n" if mode == "masters" else None


def packed(**reply):
    """As the script replies."""
    return encoded(msgpack.packb(reply))


def answer(mode, text, words, here):
    """The answer to one command."""
    if mode == "wrong" and words[0] == text.split()[0]:
        return text.split(maxsplit=1)[1].replace(b"|", b"\r\n") + b"\r\n"
    if mode in MANY:
        said = answer_of_many(mode, here, words)
        if said:
            return said
    if mode == "loading":
        seconds, microseconds = divmod(time.time_ns() // 1000, 1000000)
        said = {b"TIME": [b"%d" % seconds, b"%d" % microseconds], b"CONFIG": [],
                b"INFO": b"# Server\r\nredis_version:7.0.15\r\n# Persistence\r\nloading:1\r\naof_enabled:1\r\n"
                         b"# Replication\r\nrole:master\r\nconnected_slaves:0\r\n"}.get(words[0])
        return b"-LOADING Redis is loading the dataset in memory\r\n" if said is None else encoded(said)
    if words[0] == b"AUTH":
        if mode in MANY:
            with open(text, "a") as file:
                print(here[0], file=file)
        said = b" ".join([text] + [b"'%s'" % word for word in words]).replace(b"\r", b" ").replace(b"\n", b" ")
        return {"repeat": b"-%s\r\n" % said, "behind": b"+OK\r\n-%s\r\n" % said}.get(mode, b"+OK\r\n")
    if words[0] == b"SCAN":
        names = [b"rlock:holder:{%0500d}" % next(fresh) for _ in range(1000)] if mode == "names" else []
        return encoded([b"17", names])
    if words[0] == b"EVALSHA":
        return b"-NOSCRIPT No matching script. Please use EVAL.\r\n"
    if words[0] != b"EVAL":
        return encoded([words[0].lower(), words[1], 1])
    verb, owner = words[-2], msgpack.unpackb(words[-1], raw=True).get(b"owner", b"")
    now = 1700000000000
    if verb == b"rlock release":
        return packed(outcome="released", left=0, fault=text if mode == "fault" else b"")
    if verb == b"rlock renew":
        return packed(outcome="renewed", left=30000)
    if verb == b"rlock inspect":
        listed = {"slots": 2, "number": 1} if mode == "unlisted" else {"number": 0}
        return packed(outcome="lock", ttl=-2, now=now, token="9", holders=[], waiting=0, waiters=[], **listed)
    if mode in ("confirm", "refuse", "message", "unlisted"):
        return packed(outcome="held", ttl=30000, ahead=0, place="1", now=now, number=1)
    if mode == "outcome":
        return packed(outcome=text)
    return packed(outcome="granted", owner=text if mode == "grant" else owner,
                  token=text if mode == "token" else "9") * (2 if mode == "twice" else 1)


def speak(mode, text, connection, number):
    stream = connection.makefile("rb")
    scripts = 0
    while True:
        words = read_value(stream)
        scripts += words[0] in (b"EVAL", b"EVALSHA")
        if mode == "forget" and number == 1 and scripts > 2:
            connection.sendall(b"-NOAUTH Authentication required.\r\n")
            continue
        if mode == "once" and number == 1:
            connection.sendall(b"-%s\r\n" % text)
            continue
        connection.sendall(answer(mode, text, words, connection.getsockname()))
        if words[0] == b"SUBSCRIBE" and mode in ("confirm", "refuse", "message"):
            flood = {"confirm": encoded([b"subscribe", words[1], 1]), "refuse": b"-%s\r\n" % text,
                     "message": encoded([b"message", words[1], text])}[mode]
            while True:
                connection.sendall(flood * (CHUNK // len(flood)))


def serve(mode, text, connection, number):
    try:
        if mode in SPEAKING:
            speak(mode, text, connection, number)
        if mode == "close":
            connection.close()
            return
        if mode in UNASKED:
            if mode == "unasked":
                connection.recv(1, socket.MSG_PEEK)
            connection.sendall(b"%s\r\n" % text)
            connection.close()
            return
        sent = connection.recv(4096)
        if mode == "echo":
            connection.sendall(b"502 unknown: %s\r\n" % sent.replace(b"\r\n", b" "))
        connection.sendall(ANSWERS.get(mode, b""))
        while mode == "trickle":
            connection.sendall(b"+")
            time.sleep(0.1)
        while mode in FLOODS:
            connection.sendall(FLOODS[mode])
        while connection.recv(4096):
            pass
    except OSError:
        pass


def main():
    mode, text = sys.argv[1], os.fsencode(sys.argv[2] if len(sys.argv) > 2 else "")
    listener = socket.socket()
    listener.bind(("" if mode in MANY else "127.0.0.1", 0))
    listener.listen(64)
    print(listener.getsockname()[1], flush=True)
    for number in itertools.count(1):
        connection, _ = listener.accept()
        kept.append(connection)
        threading.Thread(target=serve, args=(mode, text, connection, number), daemon=True).start()


main()
