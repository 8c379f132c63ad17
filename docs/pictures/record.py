#!/usr/bin/env python3
"""Records the pictures of the documents from real runs on real terminals.

  docs/pictures/record.py            as root: writes the pictures beside this file. Alice and Bob get hosts of their own,
                                     by namespaces
  docs/pictures/record.py --check    as anybody: plays the same, and compares the text with that of the pictures; numbers,
                                     times and names of hosts may differ. Status 1 and the difference if something else does
  docs/pictures/record.py --at SECONDS   as root: writes waiting.svg as it is at that time to standard output

RLOCK is the program (build/rlock). Needs redis-server.
"""
import difflib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.dont_write_bytecode = True
import draw  # pylint: disable=wrong-import-position
from screen import Screen  # pylint: disable=wrong-import-position

HERE = os.path.dirname(os.path.realpath(__file__))
RLOCK = os.path.realpath(os.environ.get("RLOCK") or os.path.join(HERE, "../../build/rlock"))
CHECK = sys.argv[1:2] == ["--check"]
PACE = 0.1 if CHECK else 1  # nobody reads the check
PEOPLE = {"alice": ("ci-1", 3001), "bob": ("ci-2", 3002), "carol": ("ci-3", 3003)}
DEPLOY = ('#!/bin/sh\necho "deploying release 1.4, fencing token $RLOCK_TOKEN"\n[ -e begun ] || touch begun\n'
          'timeout $TAKES sh -c "until [ -e go.$USER ]; do sleep 0.1; done"\n'
          'echo done\n')


class Terminal:
    """A shell of one person at a terminal, whose deploy takes so many seconds."""

    def __init__(self, stage, person, takes=1000):
        self.stage, self.person, self.states = stage, person, []
        # A check has a wide terminal: names of hosts may be longer, and no line shall break.
        self.screen = Screen(300 if CHECK else draw.COLUMNS)
        stage.terminals.append(self)
        host, user = PEOPLE[person]
        shell = ["bash", "--norc", "--noprofile", "-i"]
        if not CHECK:
            shell = ["unshare", "--mount", "--uts", "sh", "-euc",
                     f'hostname {host}; mount --bind "$1" /etc/passwd; mount -t tmpfs tmpfs /run; ln -s "$2" /run/redis.sock; '
                     f'shift 2; exec setpriv --reuid={user} --regid={user} --clear-groups "$@"',
                     "sh", stage.passwd, stage.socket, *shell]
        environment = {"PATH": f"{stage.folder}/bin:/usr/bin:/bin", "HOME": stage.folder, "USER": person, "TERM": "xterm-256color",
                       "LANG": "C.UTF-8", "RLOCK_URL": "unix://" + (stage.socket if CHECK else "/run/redis.sock"), "HISTFILE": "/dev/null",
                       "XDG_CONFIG_HOME": "/nonexistent", "TAKES": str(takes), "RLOCK_HISTORY": "true",
                       # The first words of a job in the background stand in front of the next prompt.
                       "PROMPT_COMMAND": '[ -e begun ] || until [ -z "$(jobs -p)" ] || [ -e begun ]; do sleep 0.05; done',
                       "PS1": rf"\[\e[32m\]{person}@{host}\[\e[0m\]:~$ "}
        self.pid, self.end = pty.fork()
        if self.pid == 0:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 40, self.screen.columns, 0, 0))
            os.chdir(stage.folder)
            os.execvpe(shell[0], shell, environment)
        self.sees("$ ")

    def text(self):
        return "\n".join("".join(char for char, _ in row) for row in self.screen.rows())

    def sees(self, text):
        """Waits until the screen shows it, at its end if it is a prompt."""
        self.stage.until(lambda: self.text().endswith(text.rstrip()) if text == "$ " else text in self.text(), text)

    def types(self, line):
        for char in line:
            os.write(self.end, char.encode())
            self.stage.pause(0.045)
        self.stage.pause(0.3)
        os.write(self.end, b"\n")


class Stage:
    """A folder, a server, and people at terminals. What they see is recorded with its time."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="pic.", dir=os.environ.get("TMPDIR", "/tmp"))
        self.socket, self.passwd, self.terminals, self.marks = self.folder + "/s", self.folder + "/passwd", [], []
        os.mkdir(self.folder + "/bin")
        shutil.copy(RLOCK, self.folder + "/bin/rlock")
        for name, text in ("deploy.sh", DEPLOY), ("smoke-test.sh", "#!/bin/sh\nsleep $TAKES\nexit 3\n"), ("passwd", "".join(
                f"{person}:x:{user}:{user}::/:/bin/sh\n" for person, (_, user) in PEOPLE.items())):
            with open(os.path.join(self.folder, name), "w", encoding="ascii") as file:
                file.write(text)
            os.chmod(file.name, 0o755)
        os.chmod(self.folder, 0o755 if CHECK else 0o777)
        self.server = subprocess.Popen(["redis-server", "--port", "0", "--unixsocket", self.socket, "--unixsocketperm", "777",
                                        "--save", "", "--dir", self.folder], stdout=subprocess.DEVNULL)
        self.began = time.monotonic()
        self.until(lambda: os.path.exists(self.socket), "the server")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for terminal in self.terminals:
            os.close(terminal.end)  # which hangs up
        for terminal in self.terminals:
            os.waitpid(terminal.pid, 0)
        time.sleep(0.2)
        self.server.terminate()
        self.server.wait()
        shutil.rmtree(self.folder)

    def look(self, seconds):
        """Takes in what comes within that time."""
        ready = select.select([terminal.end for terminal in self.terminals], [], [], seconds)[0]
        for terminal in self.terminals:
            if terminal.end in ready:
                try:
                    terminal.screen.feed(os.read(terminal.end, 65536))
                except OSError:
                    continue
                terminal.states.append((time.monotonic() - self.began, [list(row) for row in terminal.screen.rows()]))

    def pause(self, seconds):
        end = time.monotonic() + seconds * PACE
        while (left := end - time.monotonic()) > 0:
            self.look(left)

    def until(self, done, what):
        end = time.monotonic() + 60
        while not done():
            if time.monotonic() > end:
                sys.exit(f"waited in vain for: {what}\n" + "\n".join(terminal.text() for terminal in self.terminals))
            self.look(0.05)

    def mark(self, terminal, text, words):
        """The next event is in the last row of this terminal that has the text, once it shows that."""
        terminal.sees(text)
        row = max(row for row, line in enumerate(terminal.text().split("\n")) if text in line)
        self.marks.append((self.terminals.index(terminal), row, time.monotonic() - self.began, words))

    def first(self):
        """When all have their first prompt, which is when a picture begins."""
        return max(terminal.states[0][0] for terminal in self.terminals)

    def events(self):
        return [(window, row, moment - self.first(), words) for window, row, moment, words in self.marks]

    def windows(self, titles):
        first, found = self.first(), []
        for terminal, title in zip(self.terminals, titles):
            states = [(max(0.0, moment - first), rows) for moment, rows in terminal.states]
            found.append((title, max(len(rows) for _, rows in states), states))
        return found

    def still(self, terminal, title):
        rows = terminal.screen.rows()
        while rows and not rows[-1]:
            rows.pop()
        return [(title, len(rows), [(0, rows)])]


def waiting():
    """Bob waits behind Alice; her rlock is killed by -9, and he has the lock at once."""
    with Stage() as stage:
        alice, bob = Terminal(stage, "alice"), Terminal(stage, "bob", takes=2 * PACE)
        stage.pause(0.8)
        alice.types("rlock run deploy -- ./deploy.sh &")
        alice.sees("fencing token")
        stage.mark(alice, "fencing token", "Alice has the lock")
        stage.pause(1.2)
        bob.types("rlock run deploy -- ./deploy.sh")
        stage.mark(bob, "./deploy.sh", "Bob asks for it, and waits")
        bob.sees("you are 1st")
        stage.pause(2.5)
        alice.types("kill -9 %1")
        stage.mark(alice, "kill -9", "Alice's rlock is killed")
        bob.sees("fencing token")
        stage.mark(bob, "fencing token", "Bob has the lock")
        stage.pause(1)
        while "Killed" not in alice.text():  # a shell says so in front of a prompt
            os.write(alice.end, b"\n")
            stage.pause(0.5)
        bob.sees("done")
        bob.sees("$ ")
        stage.pause(0.5)
        return (stage.windows(["Alice, on ci-1", "Bob, on ci-2"]),
                "Bob waits for the lock of Alice; her rlock is killed, and he is next", stage.events())


def held_and_awaited(stage):
    """Terminals of three people, one of whom holds a lock for which another one waits."""
    alice, bob, carol = (Terminal(stage, person) for person in PEOPLE)
    alice.types("rlock run --reason 'release 1.4' deploy -- ./deploy.sh")
    alice.sees("fencing token")
    bob.types("rlock run --priority 5 deploy -- ./deploy.sh")
    bob.sees("you are 1st")
    return alice, bob, carol


def status():
    with Stage() as stage:
        _, _, carol = held_and_awaited(stage)
        carol.types("rlock acquire nightly --lease 1h --reason 'new disks' >owner")
        carol.sees("$ ")
        stage.pause(1)
        carol.types("rlock status deploy")
        carol.sees("waiting")
        carol.sees("$ ")
        carol.types("rlock status")
        carol.sees("disks")
        carol.sees("$ ")
        return stage.still(carol, "Carol, on ci-3"), "rlock status deploy shows holder, reason, lease and waiters"


def watch():
    with Stage() as stage:
        _, _, carol = held_and_awaited(stage)
        carol.types("rlock status --watch")
        stage.until(lambda: "watch" not in carol.text() and "deploy" in carol.text(), "the screen of --watch")
        stage.pause(1.5)
        return stage.still(carol, "Carol, on ci-3: rlock status --watch"), "rlock status --watch shows all locks, and looks again each second"


def history():
    with Stage() as stage:
        alice, bob, carol = (Terminal(stage, person, takes) for person, takes in
                             (("alice", 1000), ("bob", 3 * PACE), ("carol", PACE)))
        alice.types("rlock run deploy -- ./deploy.sh")
        alice.sees("fencing token")
        bob.types("rlock run deploy -- ./deploy.sh")
        bob.sees("you are 1st")
        carol.types("rlock run deploy -- ./smoke-test.sh")
        carol.sees("you are 2nd")
        open(stage.folder + "/go.alice", "w", encoding="ascii").close()
        for terminal in alice, bob, carol:
            terminal.sees("$ ")
        # The last thing alone is in the picture.
        carol.types("clear")
        stage.until(lambda: carol.text().strip() == "carol@ci-3:~$", "an empty screen")
        carol.types("rlock history deploy")
        stage.until(lambda: carol.text().count("deploy.sh") == 2 and carol.text().endswith("$"), "three holds")
        return stage.still(carol, "Carol, on ci-3"), "rlock history shows who held a lock when, and how long each job waited"


SCENES = {"waiting": waiting, "status": status, "watch": watch, "history": history}

# Each run has its own of these.
MASKS = [(r"[\w.-]+@[\w.-]+(?= )", "USER@HOST"), (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:\d+", "OWNER"), (r"\d{16}", "TOKEN"),
         (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"), (r"\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|s)\b", "DURATION"), (r"(?<=\[1\] )\d+", "PID"),
         (r"unix://\S+", "SERVER"), (r"(?<=pid )\d+", "PID"), (r"(USER@HOST +)\d+", r"\1PID"), 
         (r" +(REASON|\w*…)$", ""), (r"[░█▓][░█▓ ]*", "BAR"), (r" {2,}", "  ")]


def masked(lines):
    for pattern, word in MASKS:
        lines = [re.sub(pattern, word, line) for line in lines]
    return [line.rstrip() for line in lines if not re.fullmatch(r".*@.*:~\$ ?", line)]


def check(name):
    with open(f"{HERE}/{name}.svg", encoding="utf-8") as file:
        wanted = draw.texts(file.read())
    found = draw.texts(draw.draw(*SCENES[name]()))
    differences = [line for want, have in zip(wanted, found, strict=True)
                   for line in difflib.unified_diff(masked(want), masked(have), f"{name}.svg", "this run", lineterm="")]
    print("\n".join(differences) if differences else f"{name}.svg: as it is")
    return not differences


def main():
    if CHECK:
        sys.exit(not all([check(name) for name in sys.argv[2:] or SCENES]))
    if sys.argv[1:2] == ["--at"]:
        windows, about, marks = waiting()
        moment = float(sys.argv[2])
        sys.stdout.write(draw.draw(draw.state_at(windows, moment), about, [mark for mark in marks if mark[2] <= moment]))
        return
    if set(sys.argv[1:]) - set(SCENES):
        sys.exit(__doc__)
    for name in sys.argv[1:] or SCENES:
        picture = draw.draw(*SCENES[name]())
        with open(f"{HERE}/{name}.svg", "w", encoding="utf-8") as file:
            file.write(picture)
        print(f"{name}.svg")


if __name__ == "__main__":
    main()
