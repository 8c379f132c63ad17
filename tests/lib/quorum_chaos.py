"""Five servers, of which any two are killed, stopped, or restarted with or without their data, or cannot be reached, and
ten workers that want one lock. Half of the workers come from one side, half from the other, and a cut parts a server from
one side: the two sides may see different majorities. usage: quorum_chaos.py RLOCK SECONDS AGED_SERVER SEED; AGED_SERVER:
as of tests/lib/quorum.bash. See chaos.py.

Never may two have the lock at once, which flock(2) on a file tells: the kernel takes it from who dies. The tokens grow
in the order of the grants. While three servers can vote there is progress; while two can, nothing begins.
"""
import os
import random
import shutil
import signal
import subprocess
import sys
import time

from chaos import wait_until

RLOCK, SECONDS = sys.argv[1], float(sys.argv[2])
random.seed(int(sys.argv[4]))
LEASE = 5
SIDES = ("a", "b")
NO_VOTE = LEASE + 4  # seconds from a restart until the server votes again; see probation() in src/lock/tally.cc
STUCK = 45  # seconds; longer than all leases, pauses and timeouts of one turn together
COMMAND = """exec 9>>witness
flock -n 9 || echo "overlap $RLOCK_TOKEN" >>log
echo "begin $RLOCK_TOKEN $(date +%s.%N)" >>log
sleep 0.0$((RANDOM % 10))
echo "end $RLOCK_TOKEN" >>log"""


class Server:
    def __init__(self, number, aged):
        self.folder, self.number = os.path.join(os.getcwd(), f"s{number}"), number
        self.bad_until, self.repairs, self.cut = 0, [], set()
        self.start(aged)

    def path(self, side):
        return f"{self.folder}/{side}"

    def is_bad(self, side):
        return time.monotonic() < self.bad_until or side in self.cut

    def start(self, program="redis-server"):
        os.makedirs(self.folder, exist_ok=True)
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", program, "--port", "0", "--unixsocket", "s", "--dir", self.folder,
             "--appendonly", "yes", "--appendfsync", "always", "--save", "", "--logfile", "log"],
            stdin=subprocess.DEVNULL)
        if not wait_until(self.answers, 60):
            sys.exit("a server does not answer")
        for side in SIDES:
            if side not in self.cut:
                self.join(side)

    def join(self, side):
        """The names of one socket: who takes one away parts the server from that side."""
        if os.path.exists(self.path(side)):
            os.unlink(self.path(side))
        os.link(self.path("s"), self.path(side))
        self.cut.discard(side)

    def part(self, side):
        os.unlink(self.path(side))
        self.cut.add(side)
        for kind in ("normal", "pubsub"):
            subprocess.run(["redis-cli", "-s", self.path("s"), "client", "kill", "type", kind], capture_output=True)

    def answers(self):
        return subprocess.run(["redis-cli", "-s", f"{self.folder}/s", "ping"], capture_output=True,
                              text=True).stdout == "PONG\n"

    def stop(self):
        self.process.kill()
        self.process.wait()

    def restart(self, empty):
        if empty:
            shutil.rmtree(self.folder)
        self.start()
        self.bad_until = time.monotonic() + NO_VOTE

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)
        self.bad_until = 0


def harm(servers, figures):
    """One fault, if no side has two servers that are bad; when and how it is repaired."""
    what, sides = random.choice(("stop", "kill", "wipe", "cut", "cut")), SIDES
    if what == "cut":
        sides = [random.choice(SIDES)]
    whole = [server for server in servers if not any(server.is_bad(side) for side in SIDES)]
    if not whole or any(sum(server.is_bad(side) for server in servers) >= 2 for side in sides):
        return
    server = random.choice(whole)
    figures[what] = figures.get(what, 0) + 1
    if what == "cut":
        server.part(sides[0])
        repair = lambda: server.join(sides[0])
    elif what == "stop":
        server.process.send_signal(signal.SIGSTOP)
        repair = server.go_on
    else:
        server.stop()
        repair = lambda: server.restart(what == "wipe")
    if what != "cut":
        server.bad_until = float("inf")
    server.repairs.append((time.monotonic() + random.uniform(0.2, 3), repair))


def repair_due(servers, everything=False):
    for server in servers:
        due = [one for one in server.repairs if everything or time.monotonic() > one[0]]
        for one in due:
            server.repairs.remove(one)
            one[1]()


def urls(servers, side):
    return " ".join(f"unix://{server.path(side)}" for server in servers)


def worker(servers, side):
    one = subprocess.Popen([RLOCK, "run", "-q", "--url", urls(servers, side), "-w", "10m", "--lease", f"{LEASE}s", "-k",
                            "200ms", "job", "--", "bash", "-c", COMMAND], stderr=subprocess.DEVNULL)
    one.side = side
    return one


def lines():
    return [line.split() for line in open("log")]


def under_fire(servers, figures):
    end, workers, ends = time.monotonic() + SECONDS, [], {}
    while time.monotonic() < end:
        for one in [one for one in workers if one.poll() is not None]:
            workers.remove(one)
            ends[one.returncode] = ends.get(one.returncode, 0) + 1
        while len(workers) < 10:
            here = sum(one.side == SIDES[0] for one in workers)
            workers.append(worker(servers, SIDES[here >= 5]))
        repair_due(servers)
        if random.random() < 0.2:
            harm(servers, figures)
        if random.random() < 0.02:
            random.choice(workers).kill()
        time.sleep(0.05)
    repair_due(servers, everything=True)
    wait_until(lambda: all(one.poll() is not None for one in workers), STUCK + 10)
    late = [one for one in workers if one.poll() is None]
    for one in late:
        one.kill()
    figures["statuses"] = ends
    return len(late)


def with_three_down(servers):
    """What a job does that runs when the majority dies, and what a newcomer does then."""
    time.sleep(NO_VOTE)  # the last restart is forgotten
    options = ["run", "-q", "--lease", f"{LEASE}s", "job", "--", "bash", "-c"]
    running = subprocess.Popen([RLOCK, *options, "echo >running; sleep 600"])
    wait_until(lambda: os.path.exists("running"), STUCK)
    for server in servers[:3]:
        server.stop()
    newcomer = subprocess.run([RLOCK, *options, "echo >ran"]).returncode
    return running.wait(), newcomer, os.path.exists("ran")


def main():
    open("log", "w").close()
    servers = [Server(number, sys.argv[3]) for number in range(1, 6)]
    os.environ["RLOCK_URL"] = urls(servers, SIDES[0])
    figures = {}
    late = under_fire(servers, figures)
    begins = [line for line in lines() if line[0] == "begin"]
    tokens = [int(line[1]) for line in begins]
    times = [float(line[2]) for line in begins]
    gap = max((after - before for before, after in zip(times, times[1:])), default=STUCK)
    overlaps = sum(line[0] == "overlap" for line in lines())
    lost, newcomer, ran = with_three_down(servers)
    for server in servers:
        server.stop()
    print(f"{len(begins)} grants, the longest time without one {gap:.1f} s; {figures}; three down: {lost}, {newcomer}")
    faults = {"two at once": overlaps > 0, "tokens do not grow": tokens != sorted(set(tokens)),
              "no progress": len(begins) < 10 or gap > STUCK, "somebody waits forever": late > 0,
              "a majority died, and the job went on": lost != 74, "the newcomer's status": newcomer not in (69, 74),
              "it ran": ran}
    found = [what for what, is_one in faults.items() if is_one]
    if found:
        print("FAULTS: " + ", ".join(found))
    sys.exit(bool(found))


main()
