#!/usr/bin/env python3
"""queue_chaos.py RLOCK SECONDS WORKERS SEED: waiters of one lock are killed, stopped and cut off, and their server
forgets scripts and is restarted, at random. In the current folder; writes what the jobs do to `log`, for overlap.py.

Ends with 0 if everyone who lived had the lock in the end and nothing of the queue is left.
"""
import os
import random
import signal
import subprocess
import sys
import time

rlock, seconds, workers, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
random.seed(seed)
socket = os.path.join(os.getcwd(), "s")
os.environ["RLOCK_URL"] = "unix://" + socket
BOUND = 60  # longer than any grant, lease and look together
JOB = 'echo "begin $1 $EPOCHREALTIME" >>log; sleep 0.0$((RANDOM % 9)); echo "end $1 $EPOCHREALTIME" >>log'


def cli(*words):
    return subprocess.run(["redis-cli", "-s", socket, *words], capture_output=True, text=True).stdout.strip()


def start_server():
    server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", socket, "--appendonly", "yes",
                               "--appendfsync", "always", "--save", "", "--logfile", "server.log"])
    while cli("ping") != "PONG":
        time.sleep(0.02)
    return server


server = start_server()
jobs, stopped, started, ended = {}, [], 0, {}


def start_job():
    global started
    started += 1
    # A message would be one for each restart of the server.
    jobs[subprocess.Popen([rlock, "run", "-q", "--lease", "2s", "-k", "200ms", "x", "--", "bash", "-c", JOB, "job",
                           str(started)], stderr=subprocess.DEVNULL)] = time.monotonic()


def collect():
    for job in [job for job in jobs if job.poll() is not None]:
        ended[job.returncode] = ended.get(job.returncode, 0) + 1
        del jobs[job]


def let_go(everyone=False):
    for entry in [entry for entry in stopped if everyone or entry[0] < time.monotonic()]:
        stopped.remove(entry)
        entry[1].send_signal(signal.SIGCONT)


end, restarts = time.monotonic() + seconds, 0
while time.monotonic() < end:
    collect()
    let_go()
    while len(jobs) < workers:
        start_job()
    victim = random.choice(list(jobs))
    what = random.random()
    if what < 0.25:
        victim.send_signal(signal.SIGKILL)
    elif what < 0.45:
        victim.send_signal(signal.SIGSTOP)
        stopped.append((time.monotonic() + random.uniform(0.1, 3), victim))
    elif what < 0.6:
        cli("client", "kill", "type", random.choice(("pubsub", "normal")))
    elif what < 0.7:
        cli("script", "flush")
    elif what < 0.71:
        server.kill()
        server.wait()
        server = start_server()
        restarts += 1
    time.sleep(random.uniform(0, 0.1))

let_go(everyone=True)
done_by = time.monotonic() + BOUND
while jobs and time.monotonic() < done_by:
    collect()
    time.sleep(0.02)
left = cli("keys", "rlock:*")
print(f"seed {seed}: {started} jobs, {restarts} restarts, ends {dict(sorted(ended.items()))}, "
      f"{len(jobs)} still waiting, keys left: {left or 'none'}")
for job in jobs:
    job.kill()
server.terminate()
server.wait()
# 0: it ran. -9: we killed it. 74: the lock was in doubt while the server was away. 69: away for longer than a lease.
odd = set(ended) - {0, -9, 74, 69}
sys.exit(bool(jobs or left or odd))
