#!/usr/bin/env python3
"""odd_server.py MODE: a server on a loopback port that does not speak Redis. Prints its port, runs until killed.

garbage  answers bytes that mean nothing, with terminal controls among them
http     answers as a web server does
silent   accepts and never answers
close    accepts and closes at once
trickle  answers one byte at a time, a line that never ends
line     answers a line without an end, as fast as it can
bulk     announces a string of half a gigabyte and sends it
array    announces a long array and sends it
nest     answers arrays in arrays in arrays
huge     announces an array of more elements than any memory holds, and sends nothing
negative announces a string of length -5
"""
import socket
import sys
import threading
import time

CHUNK = 1 << 16
kept = []


def endless(connection, head, body):
    connection.sendall(head)
    while True:
        connection.sendall(body)


def serve(mode, connection):
    try:
        if mode == "close":
            connection.close()
            return
        connection.recv(4096)
        if mode == "garbage":
            connection.sendall(b"\x1b[31mwhat?\x07\x00\xff\r\n\r\n")
        elif mode == "http":
            connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
        elif mode == "trickle":
            while True:
                connection.sendall(b"+")
                time.sleep(0.1)
        elif mode == "line":
            endless(connection, b"+", b"a" * CHUNK)
        elif mode == "bulk":
            endless(connection, b"$536870912\r\n", b"a" * CHUNK)
        elif mode == "array":
            endless(connection, b"*2147483647\r\n", b":1\r\n" * (CHUNK // 4))
        elif mode == "nest":
            endless(connection, b"", b"*1\r\n" * (CHUNK // 4))
        elif mode == "huge":
            connection.sendall(b"*4294967296\r\n")
        elif mode == "negative":
            connection.sendall(b"$-5\r\n")
        while connection.recv(4096):
            pass
    except OSError:
        pass


def main():
    mode = sys.argv[1]
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(64)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        kept.append(connection)
        threading.Thread(target=serve, args=(mode, connection), daemon=True).start()


main()
