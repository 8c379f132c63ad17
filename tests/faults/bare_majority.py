"""How long a hold is on a bare majority: jobs that start at once on three servers, and each vote for one of them.

usage: bare_majority.py RLOCK [ROUNDS [JOBS [OPTION ...]]]; the options are for `rlock run`, `-w 60s` if there are none

In each round, JOBS (8) start at the same time, while nobody has the lock. From then on the program polls the three servers,
every 0.3 ms on an idle machine. The time counts from when two of them name one owner until all three
do, and is "never" after LIMIT seconds. Then the waiting jobs take the lock one after the other, which is not measured.
"""
import os
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
import servers

LIMIT = 3


class Server(servers.Server):
    """Its clock is an hour behind at the start (aged_shim.c), so it may vote at once."""
    def __init__(self, name):
        super().__init__(name, environment={"LD_PRELOAD": servers.shim("aged"), "AGED_SECONDS": "3600"})
        self.line = socket.socket(socket.AF_UNIX)
        self.line.connect(self.socket)

    def owner(self, name):
        """The owner of a plain lock: the only field of its hash. None if it is free."""
        self.line.sendall(f"HKEYS {name}\r\n".encode())
        text = self.line.recv(4096)
        return text.split(b"\r\n")[2] if text.startswith(b"*1") else None


def one_round(several, name, jobs, options):
    ended = f"ended-{name}"
    command = ["sh", "-c", f"until [ -e {ended} ]; do sleep 0.02; done"]
    running = [subprocess.Popen([RLOCK, "run", "-q", "--lease", "60s", *options, name, "--", *command],
                                stderr=subprocess.DEVNULL) for _ in range(jobs)]
    since, by = None, time.monotonic() + 30
    lasted = None
    while time.monotonic() < by:
        owners = [server.owner(name) for server in several]
        now = time.monotonic()
        most = max(owners.count(one) for one in owners if one) if any(owners) else 0
        if most < 2:
            since = None
            continue
        since = since or now
        if most == 3:
            lasted = now - since
            break
        if now > since + LIMIT:
            lasted = float("inf")
            break
    open(ended, "w").close()
    for one in running:
        one.wait()
    return lasted


def text(span):
    return f"more than {LIMIT} s" if span == float("inf") else f"{span * 1000:.1f} ms"


def main():
    rounds, jobs = (int(word) for word in (sys.argv[2:4] + ["100", "8"][len(sys.argv[2:4]):]))
    several = [Server(f"s{number}") for number in range(3)]
    os.environ["RLOCK_URL"] = " ".join(server.url() for server in several)
    spans = [one_round(several, f"job{number}", jobs, sys.argv[4:] or ["-w", "60s"]) for number in range(rounds)]
    spans = sorted(span for span in spans if span is not None)
    if not spans:
        sys.exit("nobody had the lock")
    bare = [span for span in spans if span > 0]
    print(f"{len(spans)} starts of {jobs} jobs; p50 {text(spans[len(spans) // 2])}, "
          f"p99 {text(spans[min(len(spans) - 1, len(spans) * 99 // 100)])}, longest {text(spans[-1])}; "
          f"{len(bare)} were seen on a bare majority")


RLOCK = os.path.abspath(sys.argv[1])
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    main()
