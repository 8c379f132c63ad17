# SPDX-License-Identifier: MIT
"""What the benchmarks share: a private Redis server, its counters, small C programs, tables and files of figures."""
import argparse
import json
import math
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
RLOCK = os.path.join(HERE, "..", "build", "rlock")
QUEUE = "rlock:queue:{x}"
# Commands that clients send. The server also counts those that our scripts call.
SENT_BY_CLIENTS = ("eval", "evalsha", "script", "function", "fcall", "subscribe", "unsubscribe", "blpop", "ping", "hello",
                   "auth", "select", "client", "multi", "exec")

ENDS = signal.SIGHUP, signal.SIGINT, signal.SIGTERM


def end(number, _):
    """Exits normally, so that servers are stopped. Redis ignores SIGHUP, of which two come if the terminal is closed."""
    for other in ENDS:
        signal.signal(other, signal.SIG_IGN)
    sys.exit(128 + number)


for one in ENDS:
    signal.signal(one, end)


class Server:
    """A Redis server on a Unix socket in a folder of its own, without persistence, for a `with` block. Optionally, it
    also listens on a port of the loopback, and on another one with TLS. If TLS is impossible, no_tls says why. `options`
    are further ones of redis-server."""

    def __init__(self, port=0, tls_port=0, options=()):
        self.port, self.tls_port, self.options = port, tls_port, options
        self.no_tls = self.url = self.process = None

    def __enter__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.folder = tempfile.mkdtemp(prefix="rlock-bench.")
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def start(self):
        self.path = os.path.join(self.folder, "s")
        if len(self.path) > 107:  # unix(7)
            sys.exit(f"{os.path.basename(sys.argv[0])}: the name of TMPDIR is too long for a socket in it")
        self.certificate = os.path.join(self.folder, "server.crt")
        if self.tls_port and not shutil.which("openssl"):
            self.no_tls = "openssl not installed"
        elif self.tls_port and not self.starts(*self.speaking_tls()):
            self.no_tls = "this redis-server speaks no TLS"
        if (self.no_tls or not self.tls_port) and not self.starts():
            sys.exit(f"{os.path.basename(sys.argv[0])}: the server does not start")
        self.replies = self.socket.makefile("rb")

    def starts(self, *options):
        """Starts the server with these additional options, and returns whether it runs."""
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--unixsocket", self.path, "--save", "",
             "--appendonly", "no", "--maxclients", "60000", "--dir", self.folder,
             "--logfile", os.path.join(self.folder, "server.log"), *self.options, *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        # The socket exists before it accepts connections.
        until(lambda: self.process.poll() is not None or self.socket.connect_ex(self.path) == 0, 10,
              "the server does not start")
        return self.process.poll() is None

    def speaking_tls(self):
        """The options for TLS, with a self-signed certificate."""
        key = os.path.join(self.folder, "server.key")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                        "-days", "2", "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", key, "-out", self.certificate], check=True, stderr=subprocess.DEVNULL)
        return ["--tls-port", str(self.tls_port), "--tls-cert-file", self.certificate, "--tls-key-file", key,
                "--tls-ca-cert-file", self.certificate, "--tls-auth-clients", "no"]

    def __exit__(self, *_):
        self.socket.close()
        if self.process:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder)

    def call(self, *words):
        """A command whose reply is a number, a text or a list."""
        self.socket.sendall(b"".join([b"*%d\r\n" % len(words)] +
                                     [b"$%d\r\n%s\r\n" % (len(word), word) for word in map(str.encode, words)]))
        return self.reply()

    def reply(self):
        head = self.replies.readline().decode().rstrip()
        if head[0] == "*":
            return [self.reply() for _ in range(int(head[1:]))]
        if head[0] == "$":
            return self.replies.read(int(head[1:]) + 2)[:-2].decode()
        return int(head[1:]) if head[0] == ":" else head

    def info(self, section):
        lines = self.call("INFO", section).splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)

    def commands(self):
        """How many commands of each name clients have sent so far, without our own."""
        counts = {}
        for name, value in self.info("commandstats").items():
            name = name.removeprefix("cmdstat_").split("|")[0]
            if name in SENT_BY_CLIENTS:
                counts[name] = counts.get(name, 0) + int(value.split("calls=")[1].split(",")[0])
        return counts

    def waiting(self):
        return self.call("ZCARD", QUEUE)

    def environment(self):
        """The environment without settings of this user, which could affect the figures."""
        own = {name: value for name, value in os.environ.items() if not name.startswith(("RLOCK_", "REDISCLI_"))}
        return own | {"RLOCK_URL": self.url or "unix://" + self.path, "XDG_CONFIG_HOME": self.folder}


def free_port():
    """A free port of the loopback."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def built(folder, name):
    """Builds bench/NAME.c as a static program, which starts fastest."""
    program = os.path.join(folder, name)
    subprocess.run(["cc", "-O2", "-static", "-o", program, os.path.join(HERE, name + ".c")], check=True)
    return program


def program(path):
    """The path of a program; exits if there is none."""
    if not os.access(path, os.X_OK):
        sys.exit(f"{os.path.basename(sys.argv[0])}: {path}: not found; build rlock as the README says, or name another "
                 "one with --rlock")
    return os.path.abspath(path)


def builds(given):
    """{name: path} for --rlock, which can be given several times."""
    if given and len(given) > 1:
        return {path: program(path) for path in given}
    return {"rlock": program(given[0] if given else RLOCK)}


def copied(given, folder):
    """The path of a copy of a program, for copy_again()."""
    path = os.path.join(tempfile.mkdtemp(dir=folder), os.path.basename(given))
    shutil.copy2(given, path)
    return path


def copy_again(path):
    """Replaces a copy by another one. Where the kernel keeps a file makes up to a tenth of the time in which it starts,
    so a program is measured with several copies."""
    shutil.copy2(path, path + ".new")
    os.replace(path + ".new", path)


def percentile(values, share):
    """With fewer than 100 values the 99th percentile is the worst."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def table(columns, rows):
    """A Markdown table. Columns that begin with ">" are aligned to the right."""
    lines = ["| " + " | ".join(column.removeprefix(">") for column in columns) + " |",
             "|" + "|".join("---:" if column.startswith(">") else "---" for column in columns) + "|"]
    return "\n".join(lines + ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows])


def count(text):
    """For argparse."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return int(text)


def add_json(parser):
    parser.add_argument("--json", metavar="FILE", help="write all figures there, too")


def finish(options, figures, texts, not_measured=()):
    """Prints tables and lines, and at the end the designs that were not measured, as pairs (design, why). Writes all
    of it to the file of --json, too."""
    if not_measured:
        texts = [*texts, "Not measured: " + ", ".join(f"{design} ({why})" for design, why in not_measured) + "."]
    text = "\n\n".join(texts)
    print(text)
    if options.json:
        with open(options.json, "w") as file:
            json.dump({"options": {name: value for name, value in vars(options).items() if name != "json"},
                       "figures": figures, "markdown": text,
                       "not_measured": [{"design": design, "why": why} for design, why in not_measured]}, file, indent=1)


def progress(text=""):
    """Shows on a terminal how far the program is, in place of what it showed before; without a text, it removes that."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def difference(after, before):
    return {name: count - before.get(name, 0) for name, count in after.items() if count != before.get(name, 0)}


def busy_seconds():
    """How long all processors of this machine have worked since it started (proc(5))."""
    with open("/proc/stat") as stat:
        user, nice, system, _, _, irq, softirq = map(int, stat.readline().split()[1:8])
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def stolen_seconds():
    """How long the host ran something else while a processor of this machine had work, since it started (proc(5))."""
    with open("/proc/stat") as stat:
        return int(stat.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


def until(state, seconds, trouble):
    """Waits until state() is true."""
    end = time.monotonic() + seconds
    while not state():
        if time.monotonic() > end:
            sys.exit(f"{os.path.basename(sys.argv[0])}: {trouble}")
        time.sleep(0.01)


def end_all(processes):
    """Kills those that still run, and collects all."""
    for process in processes:
        if process.poll() is None:
            process.kill()
    for process in processes:
        process.wait()


def allow_many_files():
    """Each waiter has two connections to the server."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
