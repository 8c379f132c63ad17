"""Writes what its own /dev/log receives, one line per message: syslog_server.py SOCKET FILE

With "fill" as FILE, sends messages to it instead until a stopped one has no more room."""
import socket
import sys

path, file = sys.argv[1:]
if file == "fill":
    client = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    client.connect(path)
    client.setblocking(False)
    try:
        while True:
            client.send(b"full")
    except BlockingIOError:
        sys.exit()
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(path)
while True:
    message = server.recv(65536)
    with open(file, "ab") as out:
        out.write(message + b"\n")
