#!/usr/bin/env python3
"""pools_simulation.py SOCKET SCRIPT SEED [REQUESTS]: random requests for one to eight of eight slots, in the script of
lua/ on a real server, and in a model of the queue that knows nothing of them.

SCRIPT is script_words.lua with the script in it. Time is the model's: the jobs do not run, but ask, are told, renew
and release as rlock does. Every grant and every number must be the model's.

Prints the figures. Ends with 0 if both agree, and no slot was anybody's twice.
"""
import heapq
import random
import sys
import time
import uuid

import redis

SLOTS, LEASE = 8, 30.0
KEYS = ["pool", "redisson_lock_token:{pool}", "rlock:holder:{pool}", "rlock:queue:{pool}", "rlock:waiters:{pool}",
        "{pool}:timeout"]
GRANTS, HOLDS = "rlock:grant:{pool}:", "rlock:hold:{pool}:"
socket, script, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
requests = int(sys.argv[4]) if len(sys.argv) > 4 else 1000


class Request:
    def __init__(self, number, arrives, takes, lasts):
        self.number, self.arrives, self.takes, self.lasts = number, arrives, takes, lasts
        digits = uuid.UUID(int=random.getrandbits(128), version=4).hex
        if takes > 1:
            digits = digits[:12] + "8" + digits[13:28] + f"{takes:04x}"
        self.owner = f"{uuid.UUID(digits)}:1"
        self.want = (f"want.slots={SLOTS}", f"want.taken={takes}")
        self.began = self.ended = None
        self.slots = []


class World:
    def __init__(self):
        self.server = redis.Redis(unix_socket_path=socket, decode_responses=True)
        self.server.flushall()
        self.script = self.server.register_script(open(script).read())
        self.ear = self.server.pubsub()
        self.now, self.events, self.waiting, self.running = 0.0, [], [], []
        self.faults = []
        self.all = []
        arrives = 0.0
        for number in range(requests):
            arrives += random.expovariate(1 / 7)
            takes = random.choice((1, 1, 1, 1, 2, 2, 3, 5, 8))
            self.all.append(Request(number, arrives, takes, random.expovariate(1 / 20) + 0.1))
            self.at(arrives, self.arrive, self.all[-1])

    def at(self, when, what, request):
        heapq.heappush(self.events, (when, len(self.events), random.random(), what, request))

    def run(self):
        while self.events:
            self.now, _, _, what, request = heapq.heappop(self.events)
            what(request)
        if self.waiting or self.running:
            self.fault(f"{len(self.waiting)} still wait, {len(self.running)} still run")

    def fault(self, what):
        self.faults.append(f"{self.now:.1f} s: {what}")

    # The model.

    def free(self):
        return SLOTS - sum(one.takes for one in self.running)

    def may_begin(self, request):
        return request.takes <= self.free() and (not self.waiting or self.waiting[0] is request)

    # The scripts.

    def call(self, verb, request, *words):
        keys = KEYS + [HOLDS + request.owner.split(":")[0].replace("-", "")]
        if verb == "acquire":
            keys.append(f"{KEYS[4]}:{request.owner}")
        if verb == "release":
            keys.append(f"{HOLDS}r{request.number}:released")
        return self.script(keys=keys, args=[verb, "semaphore", "", f"owner={request.owner}", *words])

    def ask(self, request):
        """Whether it has its slots now."""
        reply = self.call("acquire", request, "lease=3600000", "hold=h", *request.want, "wait.priority=0")
        if reply[0] == "granted":
            self.begin(request, [int(number) for number in reply[3].split()])
        return reply[0] == "granted"

    def told(self):
        """The requests that were told something, and what."""
        by_channel = {GRANTS + one.owner: one for one in self.waiting}
        self.server.publish("end", "end")
        while True:
            message = self.ear.get_message(timeout=10)
            if message["type"] == "message" and message["channel"] == "end":
                return
            if message["type"] == "message" and message["channel"] in by_channel:
                yield by_channel[message["channel"]], message["data"]

    def arrive(self, request):
        channel = GRANTS + request.owner
        self.ear.subscribe(channel, "end")
        while self.ear.get_message(timeout=10)["type"] != "subscribe":
            pass
        while self.server.pubsub_numsub(channel)[0][1] == 0:
            pass
        time.sleep(0.001)  # who arrives in the same millisecond counts as later
        expected = self.may_begin(request)
        self.waiting.append(request)
        if self.ask(request) != expected:
            self.fault(f"{request.number} arrives: it should {'begin' if expected else 'wait'}")

    def begin(self, request, slots):
        if request not in self.waiting:
            return self.fault(f"{request.number} begins twice")
        if not self.may_begin(request):
            self.fault(f"{request.number} begins, but it is not its turn")
        taken = {number for one in self.running for number in one.slots}
        lowest = sorted(set(range(SLOTS)) - taken)[:request.takes]
        if slots != lowest:
            self.fault(f"{request.number} has {slots}, not {lowest}")
        self.waiting.remove(request)
        self.running.append(request)
        request.began, request.slots = self.now, slots
        self.ear.unsubscribe(GRANTS + request.owner)
        self.at(self.now + request.lasts, self.end, request)
        self.at(self.now + LEASE / 3, self.renew, request)

    def renew(self, request):
        if request.ended is not None:
            return
        reply = self.call("renew", request, "lease=3600000")[0]
        if reply != "renewed":
            self.fault(f"{request.number} is {reply}")
        self.at(self.now + LEASE / 3, self.renew, request)

    def end(self, request):
        if request.ended is not None:
            return
        request.ended = self.now
        self.running.remove(request)
        reply = self.call("release", request, "hold=h", "keep=0", f"id=r{request.number}", "remember=0")
        if reply[0] != "released":
            self.fault(f"{request.number} is {reply[0]}")
        for other, text in list(self.told()):
            if text == "granted" and not self.ask(other):
                self.fault(f"{other.number} was told that it has its slots")
        first = self.waiting[0] if self.waiting else None
        if first and self.may_begin(first):
            self.fault(f"{first.number} could begin, but was not told")

    def figures(self):
        waits = [one.began - one.arrives for one in self.all if one.began is not None]
        big = [one.began - one.arrives for one in self.all if one.began is not None and one.takes >= 5]
        return (f"{len(waits)} of {requests} began; mean wait {sum(waits) / len(waits):.0f} s, of those that take five or "
                f"more {sum(big) / len(big):.0f} s")


random.seed(seed)
world = World()
world.run()
print(world.figures())
for fault in world.faults[:20]:
    print("FAULT:", fault)
sys.exit(bool(world.faults))
