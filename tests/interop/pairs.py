"""Tests rlock and one library on one lock, each way: pairs.py LIBRARY SERVER_URL DRIVER [ARG ...]

DRIVER [ARG ...] LIBRARY URL starts the library behind the line protocol of README.md. $RLOCK is the program. Prints what was
measured, and at the end one line for the table of docs/interop.md, which begins with "| LIBRARY |". Exits with 1 and the
reason if one of the checks fails. $SAMPLES hand-offs are measured each way, 3 by default.
"""
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import redis

library, url, driver = sys.argv[1], sys.argv[2], sys.argv[3:]
preset = {"redlock4": "redlock", "redlock5": "redlock", "spring-pubsub": "spring"}.get(library, library)
FORMS = {"redis-semaphore": "mutex:%", "pottery": "redlock:%", "python-redis-lock": "lock:%", "spring": "REGISTRY:%",
         "shedlock": "job-lock:default:%", "redlock-net": "redlock:%", "laravel": "laravel_database_laravel_cache:%"}
NAME = "pair-" + library
KEY = FORMS.get(preset, "%").replace("%", NAME)
SAMPLES = int(os.environ.get("SAMPLES", "3"))
LONG = 600000
# These are notified of releases, but not of the end of a TTL: they ask again after their own time.
SOON = 2000 if library in ("python-redis-lock", "spring-pubsub") else LONG
server = redis.Redis.from_url(url)
environment = {**os.environ, "RLOCK_URL": url, "RLOCK_LIKE": preset}
if preset in ("spring", "laravel"):
    environment["RLOCK_KEY"] = FORMS[preset]
folder = tempfile.mkdtemp(dir=os.environ.get("BATS_FILE_TMPDIR"))
started = []


def check(fine, what, *seen):
    if not fine:
        raise SystemExit(f"{library}: {what}" + "".join(f"; {one!r}" for one in seen))


def until(state, what):
    """Waits for a state, at most a minute, which does not measure time."""
    end = time.time() + 60
    while not state():
        check(time.time() < end, "waited without success: " + what)
        time.sleep(0.01)


class Library:
    def __init__(self):
        self.process = subprocess.Popen([*driver, library, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        started.append(self.process)
        self.version = self.answer()["version"]

    def send(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        check(line, "the driver has ended")
        return json.loads(line)

    def ask(self, *words):
        self.send(*words)
        return self.answer()

    def must(self, *words):
        answer = self.ask(*words)
        check(answer["ok"], " ".join(map(str, words)), answer)
        return answer

    def kill(self):
        self.process.kill()
        self.process.wait()


class Job:
    """An rlock run in the background; its command writes the time to a file, and runs until it is told to end."""

    def __init__(self, *options):
        self.begun = os.path.join(folder, f"begun-{len(started)}")
        out, self.end = os.pipe()
        command = f'date +%s%N >"{self.begun}.new"; mv "{self.begun}.new" "{self.begun}"; cat'
        self.process = subprocess.Popen([os.environ["RLOCK"], "run", *options, NAME, "--", "sh", "-c", command],
                                        stdin=out, env=environment, stderr=subprocess.PIPE, text=True)
        os.close(out)
        started.append(self.process)

    def runs(self):
        return os.path.exists(self.begun)

    def began_at(self):
        until(self.runs, "for a job of rlock")
        with open(self.begun) as file:
            return int(file.read()) / 1e6

    def let_end(self):
        at = time.time() * 1000
        os.close(self.end)
        return at

    def ends(self, status):
        self.process.wait(60)
        said = self.process.stderr.read()
        check(self.process.returncode == status, f"rlock ended with {self.process.returncode}, not {status}", said)
        return said


def rlock(status, *words):
    done = subprocess.run([os.environ["RLOCK"], *words], env=environment, capture_output=True, text=True, timeout=60)
    check(done.returncode == status, f"rlock {' '.join(words)} ended with {done.returncode}, not {status}",
          done.stdout + done.stderr)
    return done.stdout + done.stderr


def waits():
    return server.zcard(f"rlock:queue:{{{KEY}}}") == 1


def asked_again():
    """The library has asked a few times, as the counts of its commands show."""
    stats = server.info("commandstats")
    names = ("set", "setnx", "get", "exists", "blpop", "type")
    return sum(stats.get("cmdstat_" + name, {}).get("calls", 0) for name in names)


def value_now():
    """Of a lock of Symfony, which is a sorted set, the members and their scores."""
    return repr(server.zrange(KEY, 0, -1, withscores=True)).encode() if server.type(KEY) == b"zset" else server.get(KEY)


def percentiles(samples):
    ordered = sorted(samples)
    return ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


def library_holds():
    other.must("try", NAME, LONG)
    value = value_now()
    check(value, "no string at " + KEY, server.keys())
    check(0 < server.pttl(KEY) <= LONG, "its time", server.pttl(KEY))
    rlock(75, "run", "-n", NAME, "--", "true")
    check("another program" in rlock(0, "status", NAME), "status shows no other program")
    rlock(76, "release", NAME, "--owner", "1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:1")
    check(value_now() == value, "rlock has touched the value")
    other.must("unlock")
    check(not server.exists(KEY), "its own release")
    return value


def rlock_wakes():
    """From just before the library answers its release to the first command of rlock's job."""
    times = []
    for i in range(SAMPLES):
        other.must("lock", NAME, LONG)
        job = Job()
        until(waits, "for a place in the queue")
        time.sleep(0.2 + 0.05 * (i % 5))
        check(not job.runs(), "rlock runs beside it")
        released = time.time() * 1000
        other.must("unlock")
        times.append(job.began_at() - released)
        job.let_end()
        job.ends(0)
    return times


def library_wakes():
    """From the end of rlock's command to the answer of the library."""
    times = []
    for i in range(SAMPLES):
        job = Job()
        job.began_at()
        check(not other.ask("try", NAME, LONG)["ok"], "it runs beside rlock")
        before = asked_again()
        other.send("lock", NAME, LONG)
        until(lambda: asked_again() > before, "for the library to ask")
        time.sleep(0.2 + 0.05 * (i % 5))
        released = job.let_end()
        answer = other.answer()
        check(answer["ok"], "lock", answer)
        times.append(answer["at"] - released)
        job.ends(0)
        other.must("unlock")
    return times


def readers():
    """Symfony's readers share a lock with each other, but not with rlock."""
    other.must("read", NAME, LONG)
    rlock(75, "run", "-n", NAME, "--", "true")
    second = Library()
    second.must("read", NAME, LONG)
    other.must("unlock")
    rlock(75, "run", "-n", NAME, "--", "true")
    second.must("unlock")
    job = Job()
    job.began_at()
    check(not other.ask("read", NAME, LONG)["ok"], "it reads beside rlock")
    job.let_end()
    job.ends(0)


def late_release_of_the_library():
    """Its lock runs out, and what it does too late does not affect rlock's."""
    if library == "shedlock":
        return late_release_of_shedlock()
    other.must("lock", NAME, 1000)
    job = Job()
    job.began_at()
    value = value_now()
    for words in (("extend", LONG), ("unlock",)):
        other.ask(*words)
        check(value_now() == value and server.pttl(KEY) <= 30000, words[0] + " of a lock that it has lost")
    job.let_end()
    job.ends(0)


def late_release_of_shedlock():
    """It ignores the value, so it releases and extends any holder's lock, and rlock notices."""
    for words in (("unlock",), ("extend", LONG)):
        other.must("lock", NAME, 1000)
        job = Job("--lease", "5s")
        job.began_at()
        other.must(*words)
        job.ends(74)
    other.must("unlock")


def late_release_of_rlock():
    owner = rlock(0, "acquire", "--lease", "600s", NAME).strip()
    check(not other.ask("try", NAME, LONG)["ok"], "it has a lock that rlock holds")
    server.pexpire(KEY, 300)
    other.must("lock", NAME, SOON)
    server.pexpire(KEY, LONG)
    value = value_now()
    rlock(76, "release", NAME, "--owner", owner)
    rlock(76, "renew", NAME, "--owner", owner)
    check(value_now() == value, "rlock has released what is not its own")
    other.must("unlock")


def renewals():
    """Each side renews its lock, and the other one waits for that."""
    other.must("lock", NAME, LONG)
    server.pexpire(KEY, 10000)
    answer = other.ask("extend", LONG)
    if library in ("redlock-py", "laravel"):
        check(not answer["ok"], "it can extend now: test it")
    else:
        check(answer["ok"] and server.pttl(KEY) > 10000, "extend", answer, server.pttl(KEY))
    rlock(75, "run", "-n", NAME, "--", "true")
    other.must("unlock")
    job = Job("--lease", "6s")
    job.began_at()
    value, before = value_now(), server.pttl(KEY)
    while server.pttl(KEY) <= before:
        before = min(before, server.pttl(KEY))
        check(not other.ask("try", NAME, LONG)["ok"], "it was given the lock of rlock")
    check(value_now() == value, "a renewal has changed the value")
    job.let_end()
    job.ends(0)


def forced():
    """From each side: rlock deletes the library's lock, and notices that its own was deleted."""
    other.must("lock", NAME, LONG)
    rlock(0, "force-unlock", "-y", NAME)
    check(not server.exists(KEY), "force-unlock")
    other.ask("unlock")
    job = Job("--lease", "5s")
    job.began_at()
    if not other.ask("force", NAME)["ok"]:
        server.delete(KEY)
    said = job.ends(74)
    check(NAME in said, "rlock does not say which lock was lost", said)


def deaths():
    """A client that dies leaves the lock for its lease, and no longer."""
    global other
    owner_time = 1000
    other.must("lock", NAME, owner_time)
    other.kill()
    job = Job()
    job.began_at()
    job.let_end()
    job.ends(0)
    other = Library()
    job = Job()
    job.began_at()
    monitor = int(subprocess.check_output(["pgrep", "-o", "-P", str(job.process.pid)]))
    os.kill(job.process.pid, signal.SIGSTOP)
    os.kill(monitor, signal.SIGKILL)
    job.process.kill()
    job.process.wait()
    check(server.pttl(KEY) > 0, "the lock of a job that was killed")
    server.pexpire(KEY, 500)
    other.must("lock", NAME, SOON)
    other.must("unlock")


def nothing_is_left():
    def left():
        return [key for key in server.scan_iter("*") if not key.startswith(b"redisson_lock_token:")]
    until(lambda: not left(), "for an end of what was left")


def shown(times):
    p50, p99 = percentiles(times)
    return f"{p50:.0f} / {p99:.0f}"


def form_of(value):
    if value.startswith(b"["):
        return "a sorted set"
    if re.fullmatch(rb"ADDED:[^@]*@[^@]*", value):
        return "`ADDED:<time>@<host>`"
    if re.fullmatch(rb"[\x21-\x7e]+", value):
        kind = "hexadecimal digits" if re.fullmatch(rb"[0-9a-f]+", value) else "characters"
        return f"{len(value)} {kind}" if not re.fullmatch(rb"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", value) else "a UUID"
    return f"{len(value)} bytes"


other = Library()
try:
    form = form_of(library_holds())
    if library == "symfony":
        readers()
    late_release_of_the_library()
    late_release_of_rlock()
    renewals()
    forced()
    deaths()
    to_rlock, to_library = rlock_wakes(), library_wakes()
    nothing_is_left()
    print(f"woken by the library: p50 / p99 of {SAMPLES}: {shown(to_rlock)} ms; by rlock: {shown(to_library)} ms")
    print(f"| {library} | {other.version} | `{KEY.replace(NAME, 'NAME')}` | {form} | {shown(to_rlock)} | {shown(to_library)} |")
finally:
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
