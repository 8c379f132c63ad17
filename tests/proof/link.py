#!/usr/bin/python3
"""link.py LISTEN SERVER: a link between clients and a server, both Unix sockets, that is disturbed on purpose.

Orders come from standard input, a line each; it ends when that is closed:

    lose SECONDS            requests pass, but instead of a reply the client sees its connection closed
    delay SECONDS REPLY     for so long, each reply comes REPLY seconds later
    hole SECONDS            nothing passes, and nothing is closed
    cut                     all connections are closed
"""
import asyncio
import sys
import time


class Link:
    def __init__(self, server):
        self.server = server
        self.until = {"lose": 0, "delay": 0, "hole": 0}
        self.reply_late = 0
        self.open = set()

    def order(self, what, seconds=0, reply=0):
        if what == "cut":
            for writer in list(self.open):
                writer.close()
            return
        self.until[what] = time.monotonic() + float(seconds)
        self.reply_late = float(reply)

    def is_on(self, what):
        return time.monotonic() < self.until[what]

    async def pump(self, reader, writer, replies):
        try:
            while data := await reader.read(65536):
                if replies and self.is_on("lose"):
                    break
                if replies and self.is_on("delay"):
                    await asyncio.sleep(self.reply_late)
                while self.is_on("hole"):
                    await asyncio.sleep(0.02)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass  # one side has gone
        writer.close()

    async def connected(self, reader, writer):
        try:
            from_server, to_server = await asyncio.open_unix_connection(self.server)
        except OSError:
            writer.close()
            return
        both = {writer, to_server}
        self.open |= both
        await asyncio.gather(self.pump(reader, to_server, False), self.pump(from_server, writer, True))
        self.open -= both


async def main(listen, server):
    link = Link(server)
    await asyncio.start_unix_server(link.connected, listen)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while line := await orders.readline():
        link.order(*line.decode().split())


asyncio.run(main(*sys.argv[1:]))
