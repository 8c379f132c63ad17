"""The jobs of `run`: processes of rlock, and clients of direct.py."""
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import servers

HERE = os.path.dirname(os.path.abspath(__file__))
LEASE = 5
DEADLINE = int((LEASE * 0.99 - 1.5) * 1e9)  # as in direct.py
SLOTS = 3
# 69, 71, 74, 75: no server, killed before it began, lost, not acquired. The others are signals that it was sent.
USUAL = {0, 69, 71, 74, 75, *(-number for number in (signal.SIGTERM, signal.SIGKILL)),
         *(128 + number for number in (signal.SIGTERM, signal.SIGKILL))}


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def child_of(pid):
    """The oldest child; None if there is none."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            found = file.read().split()
    except OSError:
        return None
    return int(found[0]) if found else None


# How a job takes a lock: the options and names for `rlock run`, the mode in the history, and how many places there are.
def alone(name, *options):
    return lambda names: ([*options, names[name]], [names[name]], "w", 1)


def several(names):
    chosen = sorted(random.sample(["a", "b", "c", "d"], 2))
    return [names[one] for one in chosen], [names[one] for one in chosen], "w", 1


RECIPES = {
    "wait": alone("plain"),
    "own": alone("own"),
    "do not wait": alone("plain", "-n"),
    "wait in front": alone("plain", "--priority", "-5"),
    "supersede": alone("supersede", "--supersede"),
    "replace": alone("own", "--replace-waiting"),
    "string": alone("string", "--protocol", "set"),
    "read": lambda names: (["-s", names["shared"]], [names["shared"]], "r", 1),
    "write": lambda names: (["-x", names["shared"]], [names["shared"]], "w", 1),
    "slot": lambda names: (["--slots", str(SLOTS), names["slots"]], [names["slots"]], f"s{SLOTS}", SLOTS),
    "several": several,
}


class Job:
    """An `rlock run`. `name`: its id in the history."""
    def __init__(self, name, process):
        self.name, self.process, self.harmed = name, process, False

    def parts(self):
        """The pids of frontend, monitor and command; None for one that is not there."""
        monitor = child_of(self.process.pid)
        return self.process.pid, monitor, monitor and child_of(monitor)


class Crowd:
    """`size` jobs, two loops of acquire, renew and release, and direct clients. `names`: those of the locks. Seeded, but
    what it does depends on when jobs end.
    """
    def __init__(self, rlock, urls, environment, size, recipes, names, seed):
        self.rlock, self.urls, self.size, self.recipes, self.names = rlock, urls, size, recipes, names
        self.environment = {**os.environ, **environment}
        self.random = random.Random(seed)
        self.messages = open("messages", "a")
        self.history = os.path.abspath("history.jobs")
        open(self.history, "a").close()
        self.running, self.count, self.statuses = [], 0, {}
        self.clients, self.client_options, self.ending = [], None, threading.Event()
        self.steppers = [threading.Thread(target=self.steps, args=(number,)) for number in range(2)]
        for one in self.steppers:
            one.start()

    def start_job(self):
        options, names, mode, places = RECIPES[self.random.choice(self.recipes)](self.names)
        ms = self.random.randrange(1000, 8000) if self.random.random() < 0.25 else self.random.randrange(60)
        self.count += 1
        at = [f"place-{name}-{number}" for name in names for number in range(places)]
        command = [os.path.abspath("section"), self.history, f"j{self.count}", "+".join(names), mode, str(ms), *at]
        self.running.append(Job(f"j{self.count}", subprocess.Popen(
            [self.rlock, "run", "--url", self.random.choice(self.urls), "--lease", f"{LEASE}s", "-k", "300ms", *options, "--",
             *command], env=self.environment, stdin=subprocess.DEVNULL, stderr=self.messages)))

    def start_client(self):
        """One of direct.py. `client_options`: as there. One of them holds locks for long, so that the others are there
        at once if one of these is lost.
        """
        words = {**self.client_options, "seed": self.random.random(), "history": f"{os.getcwd()}/history.direct"}
        long = not any(one.holds_long for one in self.clients)
        if long:
            words["own"] = []
        client = subprocess.Popen([*servers.ends_with_us(), sys.executable, "-B", f"{HERE}/direct.py", json.dumps(words)],
                                  stdin=subprocess.DEVNULL, stderr=self.messages)
        client.holds_long = long
        self.clients.append(client)

    def use_clients(self, number, options):
        self.client_options = options
        for _ in range(number):
            self.start_client()

    def keep_up(self):
        self.collect()
        while len(self.running) < self.size:
            self.start_job()

    def collect(self):
        for job in [job for job in self.running if job.process.poll() is not None]:
            self.running.remove(job)
            status = job.process.returncode
            self.statuses[status] = self.statuses.get(status, 0) + 1

    def call(self, *words):
        return subprocess.run([self.rlock, *words], capture_output=True, text=True, env=self.environment)

    def steps(self, number):
        """The lock is held between commands, and the deadline is ours to keep."""
        url, name, count = ["--url", self.urls[0]], self.names["plain"], 0
        while not self.ending.is_set():
            sent = now()
            taken = self.call("acquire", *url, "--json", "-w", "1s", "--lease", f"{LEASE}s", name)
            begin = now()
            if taken.returncode != 0 or begin > sent + DEADLINE:
                self.ending.wait(0.1)
                continue
            said = json.loads(taken.stdout)
            said = said[0] if isinstance(said, list) else said
            for _ in range(random.randrange(3)):
                self.ending.wait(random.uniform(0, 1.5))
                asked = now()
                if asked < sent + DEADLINE and self.call("renew", *url, name, "--owner", said["owner"]).returncode == 0:
                    sent = asked
            end, count = now(), count + 1
            with open(self.history, "a") as out:
                out.write(f"section a{number}-{count} {name} w {begin} {min(end, sent + DEADLINE)} {said['token']}\n")
            self.call("release", *url, name, "--owner", said["owner"])

    def end(self, seconds):
        """Nothing disturbs them any longer: all get their locks and end. How many did not."""
        self.ending.set()
        for one in self.clients:
            one.kill()
        by = time.monotonic() + seconds
        while self.running and time.monotonic() < by:
            self.collect()
            time.sleep(0.05)
        return len(self.running)

    def odd_statuses(self):
        return sorted(status for status in self.statuses if status not in USUAL)

    def stop(self):
        self.ending.set()
        for one in [*self.clients, *(job.process for job in self.running)]:
            one.kill()
            one.wait()
        for one in self.steppers:
            one.join()
