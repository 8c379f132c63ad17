# KEYS declares each key that a script uses and its caller can know, because Redis Cluster, Dragonfly and managed
# services rely on it. The server says which keys were used (MONITOR).

load ../lib/common

setup_file() { redis_start srv; }
setup() { export RLOCK_URL=unix://$srv_sock; }
teardown_file() { redis_stop srv; }

# undeclared FILE: the keys that scripts have used without declaring them, from the output of MONITOR.
undeclared() {
  python3 - "$1" <<'PYTHON'
import os
import re
import subprocess
import sys

CHANNEL, NO_KEY = {"publish", "spublish"}, {"time", "pubsub", "info"}
SEVERAL = {"exists", "del"}
# A user may lack the right to them, and a server checks the rights to all declared keys (lua/01_request.lua). The same
# applies to the history's marks that a hold was taken away, and that an entry is due.
EXEMPT = ("redisson_lock_queue:", "redisson_lock_timeout:", "rlock:totals:", "rlock:history:", "rlock:once:", "rlock:pool:")
# The description of a holder, and the time of a reader's first hold, because only the script knows that owner. The
# other holds of a reader are counted on the server.
BY_OWNER = re.compile(r"rlock:hold:\{job\}:([^:]+(?::\d+)?)$|\{job\}:(.+):rwlock_timeout:1$")
LATER_HOLD = re.compile(r":rwlock_timeout:([2-9]|\d\d+)$")


def is_known(key):
    if key.startswith(EXEMPT) or key.endswith((":taken", ":due", ":entry")) or LATER_HOLD.search(key):
        return False
    owner = BY_OWNER.match(key)
    owner = owner and (owner[1] or owner[2])
    return not owner or any(owner in word or owner in word.replace("-", "") for word in arguments)


declared, arguments, scripts, beside = set(), (), 0, set()
for line in open(sys.argv[1], errors="surrogateescape"):
    words = re.findall(r'"((?:[^"\\]|\\.)*)"', line)
    if not words:
        continue
    if words[0].lower() in ("eval", "evalsha"):
        number = 3 + int(words[2])
        declared, arguments, scripts = set(words[3:number]), words[number:], scripts + 1
    elif " lua] " in line and words[0].lower() not in NO_KEY:
        for key in words[1:] if words[0].lower() in SEVERAL else words[1:2]:
            beside.add(key)
            if words[0].lower() not in CHANNEL and key not in declared and is_known(key):
                print(words[0], key)
assert scripts > 0
# No lock can have the name of anything that belongs to another one.
for key in beside - {"job"}:
    if subprocess.run([os.environ["RLOCK"], "run", key, "--", "true"], stderr=subprocess.DEVNULL).returncode != 64:
        print("a name:", key)
PYTHON
}

# watch COMMAND...: runs it; fails if one of its scripts uses an undeclared key.
watch() {
  local monitor=$BATS_TEST_TMPDIR/monitor pid
  redis-cli -s "$srv_sock" monitor >"$monitor" 3>&- &
  pid=$!
  wait_until grep -q OK "$monitor"
  "$@"
  redis srv echo the-end >/dev/null
  wait_until grep -q the-end "$monitor"
  kill "$pid"
  run -0 undeclared "$monitor"
  [[ -z $output ]]
}

# whole_life OPTION...: of a lock of that kind.
whole_life() {
  local owner waiter
  rlock run "$@" job -- "$RLOCK" run "$@" job -- true
  owner=$(rlock acquire "$@" job --lease 30s)
  rlock renew job --owner "$owner"
  rlock status job
  rlock run --wait 30s "$@" job -- true 3>&- &
  waiter=$!
  if [[ $* != *-s* && $* != *--slots* ]]; then
    wait_until queued job 1
    kill -TERM "$waiter"
  fi
  wait "$waiter" || true
  rlock release job --owner "$owner"
  owner=$(rlock acquire "$@" job --lease 30s)
  rlock force-unlock job --history --yes
  rlock run --history "$@" job -- true
  redis srv flushall
}

@test "a plain lock" { watch whole_life; }
@test "a reader" { watch whole_life -s; }
@test "a writer" { watch whole_life -x; }
@test "a slot" { watch whole_life --slots 2; }
