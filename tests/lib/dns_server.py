"""A name server, on port 53 of an address of the loopback network: dns_server.py ADDRESS FOLDER

Names below rlock.test have the address 127.0.0.1 and no other, but empty.rlock.test has none; for names below bad.test it
answers SERVFAIL; no other name exists. both.rlock.test has the address 2001:db8:1::1, too. While FOLDER contains a file `silent`, no question is answered; with
`drops-ipv6` only those for IPv6 addresses are not, with `drops-known` those for names below rlock.test; with `garbage` the answers are random. Each question's name becomes
a line of FOLDER/asked.
"""
import os
import socket
import struct
import sys

address, folder = sys.argv[1:]


def told(name):
    return os.path.exists(os.path.join(folder, name))


def answer_to(question):
    number, labels, at = question[:2], [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode().lower())
        at += question[at] + 1
    asked, kind = question[12:at + 5], struct.unpack(">H", question[at + 1:at + 3])[0]
    with open(os.path.join(folder, "asked"), "a") as out:
        print(".".join(labels), file=out)
    known = labels[-2:] == ["rlock", "test"]
    has_one = known and kind == 1 and labels[0] != "empty"
    answers = struct.pack(">HHHIH4s", 0xC00C, 1, 1, 60, 4, bytes([127, 0, 0, 1])) if has_one else b""
    if known and kind == 28 and labels[0] == "both":
        answers = struct.pack(">HHHIH16s", 0xC00C, 28, 1, 60, 16, socket.inet_pton(socket.AF_INET6, "2001:db8:1::1"))
    says = 0x8180 if known else 0x8182 if labels[-2:] == ["bad", "test"] else 0x8183
    return number + struct.pack(">HHHHH", says, 1, bool(answers), 0, 0) + asked + answers


server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((address, 53))
open(os.path.join(folder, "up"), "w").close()
while True:
    question, client = server.recvfrom(512)
    reply = answer_to(question)
    if told("garbage"):
        server.sendto(question[:2] + os.urandom(60), client)
    elif not (told("silent") or told("drops-ipv6") and b"\x00\x1c\x00\x01" in question
              or told("drops-known") and b"\x05rlock\x04test\x00" in question):
        server.sendto(reply, client)
