"""Writes what is said to a /dev/log of its own, a line for each message: syslog_server.py SOCKET FILE"""
import socket
import sys

path, file = sys.argv[1:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(path)
while True:
    message = server.recv(65536)
    with open(file, "ab") as out:
        out.write(message + b"\n")
