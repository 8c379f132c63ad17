# SPDX-License-Identifier: MIT
"""Installed programs that run a command under a lock, and the servers that they need."""
import contextlib
import os
import shutil
import subprocess
import urllib.request

import common


def found(*names):
    """The path of the first of these programs that is installed, or None."""
    return next((path for path in map(shutil.which, names) if path), None)


def answers(port, path):
    """True if the server on this port of the loopback reports that it is healthy."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=1) as reply:
            return reply.read().strip() not in (b"", b'""')
    except (OSError, ValueError):
        return False


@contextlib.contextmanager
def running(command, folder, port, path):
    """Runs a server in a new folder for a `with` block."""
    os.mkdir(folder)
    with open(os.path.join(folder, "log"), "w") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        common.until(lambda: answers(port, path), 60, f"{command[0]} does not start")
        yield
    finally:
        common.end_all([process])


def etcd(folder):
    """The port of a single-node etcd on the loopback, and the block that runs it. It writes each change to disk."""
    port, peers = common.free_port(), common.free_port()
    client, peer = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    return port, running(
        [found("etcd"), "--data-dir", "data", "--listen-client-urls", client, "--advertise-client-urls", client,
         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"],
        os.path.join(folder, "etcd"), port, "/health")


def consul(folder):
    """The same for a development agent of consul, which keeps everything in memory."""
    ports = {name: common.free_port() for name in ("http", "dns", "server", "serf-lan", "serf-wan")}
    return ports["http"], running(
        [found("consul"), "agent", "-dev", "-bind", "127.0.0.1", "-client", "127.0.0.1", "-grpc-port", "-1",
         "-grpc-tls-port", "-1", *(f"-{name}-port={port}" for name, port in ports.items())],
        os.path.join(folder, "consul"), ports["http"], "/v1/status/leader")


class Peers:
    """The installed programs, for a `with` block that runs their servers.

    ways            {design: the words before the command}
    environment     the variables that they need
    not_measured    [(design, why)]"""

    def __init__(self, server):
        self.server = server

    def __enter__(self):
        self.stack = contextlib.ExitStack()
        self.ways, self.not_measured = {}, []
        self.environment = {"PARALLEL_HOME": os.path.join(self.server.folder, "parallel"), "ETCDCTL_API": "3"}
        with self.stack:
            self.find()
            self.stack = self.stack.pop_all()
        return self

    def __exit__(self, *_):
        self.stack.close()

    def missing(self, design, *programs):
        absent = [program for program in programs if not found(program)]
        if absent:
            self.not_measured.append((design, "not installed" if design.startswith(absent[0])
                                      else f"{' and '.join(absent)} not installed"))
        return absent

    def find(self):
        if not self.missing("redis-cli by hand", "bash", "redis-cli"):
            self.ways["redis-cli by hand"] = [os.path.join(common.HERE, "by-hand"), self.server.path, "by-hand"]
        if not self.missing("sem", "sem"):
            os.mkdir(self.environment["PARALLEL_HOME"])
            self.ways["sem"] = [found("sem"), "--fg", "-q", "--id", "x"]
        if not self.missing("etcdctl lock", "etcdctl", "etcd"):
            port, block = etcd(self.server.folder)
            self.stack.enter_context(block)
            self.etcdctl = [found("etcdctl"), f"--endpoints=127.0.0.1:{port}"]
            self.ways["etcdctl lock"] = [*self.etcdctl, "lock", "x", "--"]
        if not self.missing("consul lock", "consul"):
            port, block = consul(self.server.folder)
            self.stack.enter_context(block)
            self.ways["consul lock"] = [found("consul"), "lock", f"-http-addr=127.0.0.1:{port}", "x"]

    def etcd_keys(self):
        """The number of holders and waiters of the lock in etcd."""
        shown = subprocess.run([*self.etcdctl, "get", "x/", "--prefix", "--keys-only"], check=True, text=True,
                               env=os.environ | self.environment, stdout=subprocess.PIPE).stdout
        return sum(bool(line) for line in shown.splitlines())


def versions():
    """{program: version}"""
    asked = {"redis-server": ["--version"], "flock": ["--version"], "etcd": ["--version"], "sem": ["--version"],
             "consul": ["version"], "bash": ["--version"]}
    said = {}
    for program, words in asked.items():
        path = found(program)
        if path:
            text = subprocess.run([path, *words], text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                  stdin=subprocess.DEVNULL).stdout
            said[program] = text.splitlines()[0] if text else "?"
        else:
            said[program] = "not installed"
    return said
