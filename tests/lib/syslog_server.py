"""Writes what its own /dev/log receives, one line per message: syslog_server.py SOCKET FILE"""
import socket
import sys

path, file = sys.argv[1:]
server = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
server.bind(path)
while True:
    message = server.recv(65536)
    with open(file, "ab") as out:
        out.write(message + b"\n")
