#!/usr/bin/env python3
"""Requests to the script of lua/ on a real server, and what it has to reply.

  tables.py SCRIPT SOCKET TABLE [WAY...]   SCRIPT: lib/script_words.lua with the script. WAY: of redis-cli, for requests

  == a newcomer waits                 a section, with an empty server and a lock of its own
  @ kind: plain semaphore             this section once for each word; with several names, a word has one of each in it
  acquire a -> granted a ?token       a command, and the first words of its reply, which is a flat list
  acquire b 5000 -> held 25000..      a number within limits; ?NAME keeps a word as $NAME; * is any text, a|b one of them
  release a ; hgetall $lock => b 1    another command behind it; => is the whole reply; an owner a:0 is shown as a
    +> a 1                            these words are somewhere in it; !> none of these is. An indented line goes on
  without hset acquire c ! right      it fails with this text; `right`, or <right> in a reply: because a right is missing
  # comment                           lines before the first section are the beginning of each

A request is a verb with OWNER [LEASE [HOLD]], of which a release has [HOLD [KEEP]]; then NAME=VALUE as in the request, mode=
and layout= if they are not those of `use`, and host:h for what the owner says about itself. An owner a is a:0, and its
hold ha; =a is only a. Owners 1, 2 ... have ids of a semaphore's owner, and 1x3 one for three slots. enqueue is acquire by a
waiter, and `inspect a` shows this holder, too. Otherwise a command is one of Redis, or one of these:

  use LAYOUT [MODE [NAME]]            the lock. Sets $lock $token_key $holder $queue $waiters $channel $holds $pool $permits
  listen OWNER...                     waiters listen; `hear NAME`: another program does, for releases, `turns ID`: for its turn
  line OWNER OWNER...                 the first has the lock, and the others listen and wait
  hears WHO WORD...                   has received it; `silent WHO`: nothing; `leaves OWNER...` listens no longer
  queue                               the waiters; `slots`: how many are free, and taken; `ttls KEY...`: as of PTTL
  calls COMMAND                       how often the server has executed it, also in scripts
  check EXPRESSION                    of Python; `let NAME EXPRESSION` keeps its value as $NAME
  def NAME WORDS                      from now on, %NAME is short for these words
  do 'LINE'...                        these lines; `for NAME FROM TO 'LINE'...` for each number
  only COMMAND                        leaves the section out if the server cannot do it
  full                                the server has no memory left; `free`: it has
  immortal [KEY...]                   these keys, or all, may stay without a TTL, which otherwise only fencing tokens may

  wait COMMAND                        again and again until the reply is right
  try COMMAND                         it may fail; `if ok COMMAND` and `if failed COMMAND` depend on that
  without RIGHT COMMAND               by a user without it; `as 'RULES' COMMAND`: by one with these rules
  turn COMMAND                        in the turn of others; `begun LUA COMMAND`: after this Lua
  little COMMAND                      it executes less than 2000 commands; `until_done MOST COMMAND`, again while it says `again`
  size MOST COMMAND                   its reply has less bytes
  unchanged COMMAND                   no key is changed or gets another time
"""
import argparse
import itertools
import re
import shlex
import socket
import ssl
import sys
import time

options = argparse.ArgumentParser()
for option in ("script", "socket", "table", "-s", "--cacert", "--user", "--pass"):
    options.add_argument(option)
options.add_argument("-p", type=int)
for option in ("--tls", "--sharded", "--no-auth-warning"):
    options.add_argument(option, action="store_true")
options = options.parse_args()
SCRIPT = open(options.script, encoding="latin-1").read()
S = "s" if options.sharded else ""
RIGHTS = """time get set hget hset hexists hdel hmget hgetall hlen pttl pexpire exists del publish type getrange hscan zadd zcard
    zcount zrange zrangebyscore zrank zrem zremrangebyscore zrevrange zscore pubsub hkeys incrby lrange rpush
    lrem persist info"""
LACKING = ("can't run this command", "can't access at least one of the keys", "ACL failure", "NOPERM", "channel")
TURN = """do local t = redis.call('time')
    redis.call('hset', KEYS[5], 'open', string.format('%.0f', math.floor(t[1] * 1000 + t[2] / 1000))) end\n"""
PICTURE = """local lines, time = {}, redis.call('time')
    for _, key in ipairs(redis.call('keys', '*')) do
      local ttl = redis.call('pttl', key)
      lines[#lines + 1] = {key, redis.sha1hex(redis.call('dump', key)),
        ttl < 0 and ttl or string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + ttl)}
    end
    table.sort(lines, function(a, b) return a[1] < b[1] end)
    return lines"""
IMMORTAL = """local found = {}
    for _, key in ipairs(redis.call('keys', '*')) do
      if redis.call('pttl', key) == -1 then found[#found + 1] = key end
    end
    return found"""
CHANNELS = {"plain": "redisson_lock__channel:", "read_write": "redisson_rwlock:", "semaphore": "redisson_sc:",
            "string": "redisson_lock__channel:"}
WAITS = ("place", "priority", "aging", "most")


class Failure(Exception):
    """A reply that is not what it has to be."""


class Refusal(Exception):
    """An error of the server."""


class LeftOut(Exception):
    """A section that this server cannot do."""


class Connection:
    def __init__(self, user, directly=True):
        if directly or not options.p:
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(options.socket)
        else:
            self.socket = socket.create_connection(("127.0.0.1", options.p))
        if options.tls and not directly:
            context = ssl.create_default_context(cafile=options.cacert)
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        self.file = self.socket.makefile("rb")
        if user:
            self.ask("auth", *user)

    def ask(self, *words):
        words = [str(word).encode("latin-1") for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(word), word) for word in words))
        return self.read()

    def read(self):
        line = self.file.readline().decode("latin-1")
        kind, rest = line[:1], line[1:-2]
        if kind == "-":
            raise Refusal(rest)
        if kind == "$":
            return "" if rest == "-1" else self.file.read(int(rest) + 2)[:-2].decode("latin-1")
        if kind == "*":
            return [self.read() for _ in range(max(int(rest), 0))]
        return rest

    def close(self):
        self.file.close()
        self.socket.close()


def lacks_a_right(text):
    return any(one in text for one in LACKING)


def id_of(owner):
    """The whole id of an owner."""
    if match := re.fullmatch(r"(\d+)(?:x(\d+))?", owner):
        number, taken = match.groups()
        return f"{number:>08}-0000-8000-8000-{int(taken):012x}:1" if taken else f"{number:>08}-0000-4000-8000-{0:012}:1"
    if owner[:1] == "=":
        return owner[1:]
    return owner if ":" in owner or not owner else owner + ":0"


def shown(word):
    if match := re.fullmatch(r"0{7}(\d)-0000-[48]000-8000-0{8}(\w{4}):1", word):
        return match[1] + (f"x{int(match[2], 16)}" if int(match[2], 16) else "")
    return re.sub(r"^([^: ]*):0$", r"\1", word)


def flat(reply):
    if reply is None:
        return []
    if isinstance(reply, (list, tuple)):
        return [word for one in reply for word in flat(one) or [""]]
    return [shown(reply)]


class Section:
    numbers = itertools.count(1)

    def __init__(self, admin):
        self.admin, self.names, self.short, self.ears = admin, {"rights": RIGHTS}, {}, {}
        self.user, self.before, self.mortal, self.failed = None, "", (), False
        admin.ask("flushall")
        admin.ask("config", "resetstat")
        admin.ask("config", "set", "maxmemory", "0")
        self.do_use("plain", "", f"lock-{next(self.numbers)}")

    def end(self):
        for ear, _ in self.ears.values():
            ear.close()
        left = [key for key in self.admin.ask("eval", IMMORTAL, 0)
                if key not in ("rlock:epoch", *self.mortal) and not key.startswith("redisson_lock_token:")]
        if left and "*" not in self.mortal:
            raise Failure("keys without a TTL: " + " ".join(left))

    # Words.

    def value(self, name):
        kind, _, of = name.partition(".")
        if kind in ("hex", "raw"):  # of a permit: $hex.2, $hex.2x3, and of the other two $hex.2x3.1
            owner, _, number = of.partition(".")
            digits = re.sub("-|:.*", "", id_of(owner))
            digits = digits[:28] + f"{int(number):04x}" if number else digits
            return digits if kind == "hex" else bytes.fromhex(digits).decode("latin-1")
        if kind == "timeout":  # of a reader: $timeout.a
            return f"{self.names['tag']}:{id_of(of)}:rwlock_timeout:1"
        if kind == "x":  # so many
            return "x" * int(of)
        if kind == "now":  # the server's clock in milliseconds, so many seconds later: $now.30, or with a fraction $now.30.5
            seconds, micros = map(int, self.admin.ask("time"))
            later, _, fraction = of.partition(".")
            return str(seconds * 1000 + micros // 1000 + int(later or 0) * 1000) + (fraction and "." + fraction)
        return self.names[kind]

    def filled(self, text, later=False):
        """With the values of names. `later`: what has none yet stays."""
        def one(match):
            try:
                return self.filled(self.value(match[1] or match[2]))
            except KeyError:
                if later:
                    return match[0]
                raise Failure(f"there is no {match[0]}") from None
        return re.sub(r"\$(?:\{([\w.-]+)\}|(now\.-?[\d.]+|timeout\.[\w:]+|\w+(?:\.\w+)*))", one, text)

    def fits(self, wanted, word):
        if wanted[:1] == "?" and wanted[1:].isidentifier():
            self.names[wanted[1:]] = word
            return True
        if match := re.fullmatch(r"(-?\d*)\.\.(-?\d*)", wanted):
            limits = float(match[1] or "-inf"), float(match[2] or "inf")
            return bool(re.fullmatch(r"-?[\d.]+", word)) and limits[0] <= float(word) <= limits[1]
        if wanted == "<right>":
            return lacks_a_right(word)
        return any(re.fullmatch(re.escape(one).replace(r"\*", ".*"), word, re.S) for one in wanted.split("|"))

    def compare(self, marker, wanted, words):
        def at(start):
            return len(words) - start >= len(wanted) and all(map(self.fits, wanted, words[start:]))
        if marker == "!>":
            right = not any(self.fits(one, word) for one in wanted for word in words)
        elif marker == "+>":
            right = any(map(at, range(len(words))))
        else:
            right = at(0) and (marker == "->" or len(words) == len(wanted))
        if not right:
            raise Failure(f"{marker} {shlex.join(wanted)}: not so: {shlex.join(words)}"[-1000:])

    @staticmethod
    def wait(until):
        by = time.monotonic() + 60
        while True:
            try:
                return until()
            except Failure:
                if time.monotonic() > by:
                    raise
                time.sleep(0.01)

    def line(self, text):
        text = re.sub(r"%(\w+)", lambda match: self.short.get(match[1], match[0]), text)
        if text.startswith("wait "):
            self.wait(lambda: self.line(text[5:]))
            return
        if match := re.match(r"def (\w+) (.*)", text, re.S):
            self.short[match[1]] = match[2]
            return
        later = text.startswith(("do ", "for "))
        command, expected = [], []
        for word in [*shlex.split(text, comments=True), ";"]:
            if word == ";":
                self.command([self.filled(one, later) for one in command],
                             [(marker, [self.filled(one) for one in wanted]) for marker, wanted in expected])
                command, expected = [], []
            elif word in ("->", "=>", "+>", "!>", "!"):
                expected.append((word, []))
            else:
                (expected[-1][1] if expected else command).append(word)

    def command(self, command, expected):
        first, *rest = command
        if first == "if":
            return self.command(rest[1:], expected) if (rest[0] == "failed") == self.failed else None
        may_fail = first == "try"
        try:
            words = flat(self.reply(rest if may_fail else command))
        except Refusal as refusal:
            self.failed = self.failed or may_fail
            wanted = [" ".join(wanted) for marker, wanted in expected if marker == "!"]
            if may_fail and not wanted:
                return None
            if wanted and (wanted[0] in str(refusal) or wanted[0] == "right" and lacks_a_right(str(refusal))):
                return None
            raise Failure(f"the server says: {refusal}") from None
        self.failed = False if may_fail else self.failed
        for marker, wanted in expected:
            if marker == "!" and not may_fail:
                raise Failure(f"it does not fail: {shlex.join(words)}")
            if marker != "!":
                self.compare(marker, wanted, words)
        return None

    def reply(self, command):
        first, *rest = command
        own = getattr(self, "do_" + first.replace("-", "_"), None)
        return own(*rest) if own else sorted(self.admin.ask("keys", *rest)) if first == "keys" else self.admin.ask(*command)

    # Requests.

    def do_use(self, layout, mode="", name=None):
        lock = name or self.names["lock"]
        tag = lock if "{" in lock else f"{{{lock}}}"
        self.names |= {"lock": lock, "layout": layout, "mode": mode or ("set" if layout == "string" else ""), "tag": tag,
                       "token_key": "redisson_lock_token:" + tag, "channel": CHANNELS[layout] + tag, "permits": tag + ":timeout",
                       "grants": f"rlock:grant:{tag}:", "holds": f"rlock:hold:{tag}:", "fair": "redisson_lock_queue:" + tag,
                       "fair_times": "redisson_lock_timeout:" + tag, "wanted": f"rlock:control:{tag}:wanted"}
        for word in ("holder", "queue", "waiters", "once", "pool", "history"):
            self.names[word] = f"rlock:{word}:{tag}"

    def script(self, verb, given, words=()):
        layout, mode = given.pop("layout", self.names["layout"]), given.pop("mode", self.names["mode"])
        resize = int(given.pop("resize", "0"))
        if verb == "acquire" and mode[:1].isdigit():
            slots, *more = mode.split(" ")
            given |= dict(zip(("want.slots", "want.taken", "", "want.names"), [slots, *more]))
            given.pop("", None)
        elif verb == "acquire" and mode:
            given["want.mode"] = mode
        given |= {"resize": "true"} if resize % 2 else {}
        given |= {"adopt": "true"} if resize > 1 else {}
        keys = [self.names[key] for key in ("lock", "token_key", "holder", "queue", "waiters")]
        keys += [f"{self.names['holds']}{given['id']}:released"] if "id" in given else []
        user = self.user or options.user and (options.user, getattr(options, "pass"))
        connection = Connection(user, directly=False)
        try:
            return connection.ask("eval", self.before + SCRIPT, len(keys), *keys, verb, layout, S and "sharded",
                                  *(f"{name}={value}" for name, value in given.items()), *words)
        finally:
            connection.close()

    @staticmethod
    def named(words, *positions):
        """The words that have places, by the names of these; those with names; and what is said about the owner."""
        given, about, rest = {}, [], []
        for i, word in enumerate(words):
            if i and (match := re.fullmatch(r"([a-z][\w.]*)=(.*)", word, re.S)):
                given[match[1]] = match[2]
            elif i and (match := re.fullmatch(r"([a-z]+):(.*)", word, re.S)):
                about += ["about=" + match[1], "about=" + match[2]]
                if match[1] == "history":
                    given["history"] = "true"
            else:
                rest.append(word)
        given = dict(zip(positions, rest)) | given
        return given | {key: id_of(given[key]) for key in ("owner", "heir") if key in given}, about

    def do_acquire(self, owner, *words, waits=False):
        given, about = self.named([owner, *words], "owner", "lease", "hold")
        given = {"lease": 30000, "hold": "h" + owner} | given
        if waits:
            about = about or [f"about={word}" for word in ("host", "h", "pid", owner, "user", "u")]
            given = {"priority": 0} | given
            given = {f"wait.{key}" if key in (*WAITS, "replace") else key: value for key, value in given.items()}
        return self.script("acquire", given, about)

    def do_enqueue(self, *words):
        return self.do_acquire(*words, waits=True)

    def do_renew(self, *words):
        return self.script("renew", {"lease": 30000} | self.named(words, "owner", "lease")[0])

    def do_release(self, owner, *words):
        given = {"hold": "h" + owner, "keep": 0, "id": "request", "remember": 0}
        return self.script("release", given | self.named([owner, *words], "owner", "hold", "keep")[0])

    def do_force_unlock(self, *words):
        return self.script("force-unlock", {"begun": "", "count": 1000, "by": "me"} | self.named(words, "owner")[0])

    def do_raise(self, *words):
        return self.script("raise", self.named(words, "owner", "token")[0])

    def do_inspect(self, owner=""):
        return self.script("inspect", {"owner": id_of(owner)} if owner else {})

    # How they are made.

    def do_as(self, rules, *command):
        self.admin.ask("acl", "setuser", "weak", "reset", "on", ">pw", *shlex.split(rules))
        self.user = ("weak", "pw")
        try:
            return self.reply(command)
        finally:
            self.user = None

    def do_without(self, right, *command):
        return self.do_as(f"~* &* +@all -{right}" + (" -spublish" if S and right == "publish" else ""), *command)

    def do_begun(self, lua, *command):
        self.before = lua + "\n"
        try:
            return self.reply(command)
        finally:
            self.before = ""

    def do_turn(self, *command):
        return self.do_begun(TURN, *command)

    def executed(self, pattern=r"\w+"):
        return sum(map(int, re.findall(rf"^cmdstat_{pattern}:calls=(\d+)", self.admin.ask("info", "commandstats"), re.M)))

    def do_calls(self, command):
        return str(self.executed(S + command if command == "publish" else command))

    def do_little(self, *command):
        before = self.executed()
        reply = self.reply(command)
        number = self.executed() - before
        if number >= 2000:
            raise Failure(f"it executed {number} commands")
        return reply

    def do_size(self, most, *command):
        reply = self.reply(command)
        if sum(len(word) + 8 for word in flat(reply)) >= int(most):
            raise Failure("the reply is too long")
        return reply

    def do_until_done(self, most, *command):
        for calls in range(1, int(most) + 1):
            self.names["calls"] = str(calls)
            reply = self.do_little(*command)
            if reply[0] != "again":
                return reply
        raise Failure(f"not done after {most} calls")

    def do_unchanged(self, *command):
        before = self.admin.ask("eval", PICTURE, 0)
        reply = self.reply(command)
        after = self.admin.ask("eval", PICTURE, 0)
        if [one[:2] for one in before] != [one[:2] for one in after] or \
           any(abs(int(one[2]) - int(other[2])) > 50 for one, other in zip(before, after)):
            raise Failure(f"keys have changed: {before}, now {after}")
        return reply

    # Who listens.

    def hear(self, name, channel):
        self.ears[name] = Connection(("admin", "any") if options.user else None), []
        self.ears[name][0].ask(S + "subscribe", channel)

    def heard(self, name):
        """What has been published by now."""
        ear, messages = self.ears[name]
        reply = ear.ask("ping")
        while reply[0] != "pong":
            messages.append(reply[2])
            reply = ear.read()
        return messages

    def do_listen(self, *owners):
        for owner in owners:
            self.hear(owner, self.names["grants"] + id_of(owner))

    def do_line(self, holder, *owners):
        self.do_acquire(holder)
        self.do_listen(*owners)
        for owner in owners:
            self.do_enqueue(owner)

    def do_turns(self, name):
        self.hear(name, f"{self.names['channel']}:{name}")

    def do_hear(self, *names):
        for name in names:
            self.hear(name, self.names["channel" if name != "wanted" else name])

    def do_hears(self, name, *wanted):
        for message in self.heard(name):
            words = message.split(" ")
            if len(words) == len(wanted) and all(map(self.fits, wanted, words)):
                return words
        raise Failure(f"{name} has not heard it, but: {self.heard(name)}")

    def do_silent(self, name):
        if self.heard(name):
            raise Failure(f"{name} has heard: {self.heard(name)}")

    def do_leaves(self, *owners):
        for owner in owners:
            self.ears.pop(owner)[0].close()
            count = ["pubsub", ("shard" if S else "") + "numsub", self.names["grants"] + id_of(owner)]
            self.wait(lambda: self.command(count, [("->", ["*", "0"])]))

    # What else there is.

    def do_queue(self):
        return self.admin.ask("zrange", self.names["queue"], 0, -1)

    def do_ttls(self, *keys):
        return [self.admin.ask("pttl", key) for key in keys]

    def do_slots(self):
        return self.admin.ask("get", self.names["lock"]), self.admin.ask("zcard", self.names["permits"])

    def do_check(self, *words):
        if not eval(" ".join(words), {}):
            raise Failure("does not hold: " + " ".join(words))

    def do_let(self, name, *words):
        self.names[name] = str(eval(" ".join(words), {}))

    def do_do(self, *lines):
        for text in lines:
            self.line(text)

    def do_for(self, name, first, last, *lines):
        for number in range(int(first), int(last) + 1):
            self.names[name] = str(number)
            self.do_do(*lines)
        del self.names[name]

    def do_only(self, *command):
        try:
            return self.admin.ask(*command)
        except Refusal as refusal:
            raise LeftOut(refusal) from None

    def do_full(self):
        self.admin.ask("config", "set", "maxmemory-policy", "noeviction")
        self.admin.ask("config", "set", "maxmemory", "1")

    def do_free(self):
        self.admin.ask("config", "set", "maxmemory", "0")

    def do_immortal(self, *keys):
        self.mortal += keys or ("*",)


def read(name):
    """The lines before the first section, and [title, lines] of each section; a line is [number, text]."""
    sections = [["", []]]
    for number, text in enumerate(open(name, encoding="latin-1").read().split("\n"), 1):
        if text.startswith("== "):
            sections.append([text[3:], []])
        elif text.startswith(" ") and sections[-1][1]:
            sections[-1][1][-1][1] += "\n" + text
        elif text and not text.startswith("#"):
            sections[-1][1].append([number, text])
    return sections[0][1], sections[1:]


def variants(lines):
    """For each choice of words in lines with @: the names, and the other lines."""
    choices = []
    for _, text in (line for line in lines if line[1].startswith("@ ")):
        names, words = text[2:].split(":", 1)
        words = shlex.split(words.replace("$rights", RIGHTS))
        choices.append([dict(zip(names.split(), shlex.split(word) if " " in names else [word])) for word in words])
    rest = [line for line in lines if not line[1].startswith("@ ")]
    return [({name: word for one in chosen for name, word in one.items()}, rest) for chosen in itertools.product(*choices)]


def main():
    admin = Connection(("admin", "any") if options.user else None)
    head, sections = read(options.table)
    bad = ran = 0
    for title, lines in sections:
        for names, lines in variants(lines):
            section = Section(admin)
            section.names |= names
            ran += 1
            number, text = 0, "the end"
            try:
                for number, text in head + lines:
                    section.line(text)
                text = "the end"
                section.end()
            except LeftOut as reason:
                print(f"left out: {title}: {reason}")
            except (Failure, Refusal, ValueError, TypeError) as failure:
                bad += 1
                print(f"{options.table}:{number}: {text}\n  {failure}\n  in: {title}", f"with {names}" if names else "")
    print(f"{bad} failures in {ran} sections")
    sys.exit(bad > 0 or ran == 0)


main()
