# rlock status: one in full, several as a table, all that rlock has taken, and JSON.

load ../lib/server

free() { rlock force-unlock -y "$1" >/dev/null; }

# As an address without a password.
shown_server() { echo "${RLOCK_URL/:[^@\/]*@/@}"; }

@test "the first line of the full status is the server, without the password" {
  not_over acl 'another user than this one'
  redis_listen srv
  redis srv acl setuser alice on '>sesame' '~*' '&*' +@all
  local url="redis://alice:sesame@127.0.0.1:$port"
  run -0 --separate-stderr rlock status --url "$url" a
  [[ ${lines[0]} =~ ^server\ +redis://(alice@)?127\.0\.0\.1:$port && $output != *sesame* ]]
  run -0 --separate-stderr rlock status --url "$url" --json a
  [[ $output == *'"server": "redis://'*"127.0.0.1:$port"* && $output != *sesame* ]]
  redis srv acl deluser alice
  redis_listen_no_more srv
}

@test "a waiter whose place was deleted is not called another program" {
  owner=$(take a)
  rlock run a -- true 3>&- &
  waiter=$!
  listens() { [[ $(listeners_on srv 'redisson_lock__channel:{a}') == 1 && $(redis srv zcard 'rlock:queue:{a}') == 1 ]]; }
  wait_until listens
  kill -STOP "$waiter"
  redis srv del 'rlock:queue:{a}' 'rlock:waiters:{a}'
  run -0 rlock status a
  kill -CONT "$waiter"
  rlock release a --owner "$owner"
  wait "$waiter"
  [[ ${lines[-1]} =~ ^'waiting '+'clients that listen for the release: 1'$ ]] || { echo "$output" && return 1; }
}

@test "a held lock is shown in full" {
  run -0 --separate-stderr rlock run --lease 45s --reason 'release 1.4' a -- sh -c '"$RLOCK" status a; echo "$RLOCK_OWNER $RLOCK_TOKEN"'
  read -r owner token <<<"${lines[-1]}"
  for line in 'name      a' 'state     held' "owner     $owner" "holder    $(id -un)@$(uname -n) pid ${owner##*:}" \
    'command   sh' 'reason    release 1.4' 'lease     45s' "token     $token"; do
    grep -qxF -- "$line" <<<"$output"
  done
  [[ $output =~ since\ +$(date -u +%Y)-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z ]]
  # Not "expires in 44s", for which nobody need wait.
  [[ $output =~ 'renewed '[0-9.]+'s ago; free '[34][0-9]s' after its host dies' && $output != *expires* ]]
  [[ $output != *holds* ]]
}

@test "--json: an array with an object for each" {
  foreign c
  rlock run --lease 45s --reason 'a "b"' a -- "$RLOCK" status --json a b c >json
  redis srv del c
  OWNER=$FOREIGN SERVER=$(shown_server) python3 - <<'EOF'
import json, os, socket
with open("json") as file:
    a, b, c = json.load(file)
assert a["name"] == "a" and a["state"] == "held" and a["holds"] == 1 and a["taken_by_rlock"] is True, a
assert a["host"] == socket.gethostname() and isinstance(a["pid"], int) and a["owner"].endswith(":%d" % a["pid"]), a
assert a["reason"] == 'a "b"' and a["lease_ms"] == 45000 and 0 < a["expires_in_ms"] <= 45000 and a["user"], a
assert 0 <= a["held_for_ms"] < 45000 and a["since"].endswith("Z") and a["token"].isdigit() and a["command"], a
assert b.pop("server") == os.environ["SERVER"], b
assert b == {"name": "b", "state": "free", "known": False, "kind": "plain lock", "waiting": 0, "queue": []}, b
assert a["known"] and c["known"], (a, c)
assert c["owner"] == os.environ["OWNER"] and c["taken_by_rlock"] is False and c["state"] == "held", c
assert "host" not in c and "pid" not in c, c
EOF
}

@test "names and reasons in any script are aligned in the table" {
  for name in plain Büro 日本語 $'e\u0301t\u00e9'; do rlock acquire "$name" --lease 1m; done
  run -0 rlock status
  python3 - "$output" <<'EOF'
import sys, unicodedata
def width(text):
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
lines = sys.argv[1].splitlines()
assert len(lines) == 5, lines
assert len({width(line[:line.index(" held ")]) + 1 for line in lines[1:]} | {lines[0].index("STATE")}) == 1, lines
EOF
  for name in plain Büro 日本語 $'e\u0301t\u00e9'; do rlock force-unlock -y "$name"; done
}

@test "thousands of locks: SCAN finds all of them, and the first lines come soon" {
  local number=${RLOCK_TEST_LOCKS:-5000} calls
  redis srv eval 'for i = 1, tonumber(ARGV[1]) do
    local name, owner = "lock-" .. i, "o:" .. i
    redis.call("hset", name, owner, 1) redis.call("pexpire", name, 600000)
    redis.call("hset", "rlock:holder:{" .. name .. "}", "owner", owner, "host", "h", "pid", i)
    redis.call("pexpire", "rlock:holder:{" .. name .. "}", 600000)
  end' 0 "$number" >/dev/null
  redis srv config resetstat >/dev/null
  rlock status >all
  [[ $(wc -l <all) == $((number + 1)) && $(sort -u all | wc -l) == $((number + 1)) ]]
  [[ $(redis srv info commandstats) != *cmdstat_keys:* ]]
  run -0 timeout 60 bash -c '"$0" status | head -n 1' "$RLOCK"
  [[ $output == NAME* ]]
  redis srv flushall
}

@test "one team with too many locks: those of the others are shown, and how many are left out" {
  not_over cluster 'a script may not write so many keys'
  redis srv eval '
    local text = string.rep("x", 500)
    for i = 1, tonumber(ARGV[1]) + 1 do
      local name = i > tonumber(ARGV[1]) and "web:1" or "ci:" .. i
      local owner = "0f0f0f0f-1111-2222-3333-444444444444:1"
      redis.call("hset", name, owner, 1)
      redis.call("hset", "rlock:holder:{" .. name .. "}", "owner", owner, "host", "h", "pid", 7, "user", "u", "command", text, "reason", text)
      for _, key in ipairs({name, "rlock:holder:{" .. name .. "}"}) do redis.call("pexpire", key, 600000) end
    end' 0 16000 >/dev/null
  run -0 --separate-stderr rlock status --json
  [[ $stderr =~ ' locks are left out, '.*': '[0-9]+' of ci:*' ]]
  python3 -c 'import json, sys; names = {one["name"] for one in json.load(sys.stdin)}; assert "web:1" in names and 4000 < len(names) < 16001, len(names)' <<<"$output"
  run -0 --separate-stderr rlock status --prometheus
  [[ $output == *'rlock_held{name="web:1"} 1'* && $output =~ 'rlock_left_out{prefix="ci:"} '[1-9] && -n $stderr ]]
  rlock status --html >page.html
  run -0 page_data page.html '[remarks, "web:1" in [one["name"] for one in locks], "locks are left out" in table]'
  [[ $output == *'locks are left out'*$'\nTrue\nTrue' ]]
  # The limit is what it says: 32 MiB, and what the program and the table take.
  MOST=$([[ $RLOCK == *sanitize* ]] && echo 1024 || echo 64) run -0 python3 - "$RLOCK" status <<'PYTHON'
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
assert done.returncode == 0 and b"web:1 " in done.stdout and peak < int(os.environ["MOST"]), peak
PYTHON
  redis srv flushall >/dev/null
  tells 0 'rlock_left_out{prefix=""} 0' rlock status --prometheus
}

@test "--html prints a page: who holds and waits, of the named locks or of all, and what happened" {
  rlock run --history b -- true
  owner=$(rlock acquire --lease 30s --reason '<release>' a)
  foreign c
  rlock status --html >page.html
  run -0 page_data page.html '[about["holds"], len(holds)] + [[one["name"], one["state"], one.get("reason")] for one in locks]'
  [[ $output == $'at most 100 of each lock\n1\n'"['a', 'held', '<release>']"$'\n'"['b', 'free', None]" ]]
  # Its locks and holds are those of --json, member by member, except for what has passed meanwhile.
  rlock status --json a b >status.json
  rlock history --json >history.json
  python3 - <<'PYTHON'
import json, re, subprocess, sys
data = json.loads(re.search('id="data">\n(.*?)</script>', open("page.html").read(), re.S)[1])
still = lambda all: [{key: value for key, value in one.items() if not key.endswith("_ms") and key != "epoch"} for one in all]
assert still(data["locks"]) == still(json.load(open("status.json"))), data["locks"]
assert data["holds"] == json.load(open("history.json")), data["holds"]
PYTHON
  grep -q '^a .*&lt;release&gt;' page.html
  rlock status --html c >out
  [[ $(page_data out '[[one["name"], one["owner"], one["taken_by_rlock"]] for one in locks]') == "['c', '$FOREIGN', False]" ]]
  rlock release a --owner "$owner"
  rlock status --html >page.html a
  [[ $(page_data page.html '[[one["name"], one["state"]] for one in locks]') == "['a', 'free']" ]]
  redis srv del 'rlock:history:{b}' 'rlock:totals:{b}' >/dev/null
  free c
  tells 64 '--watch and --html cannot be used together' rlock status --html --watch
  tells 64 'cannot be used together' rlock status --html --json
}

@test "a page has locks that are only waited for, or that jobs did not get" {
  not_over cluster 'its servers have no epoch guard'
  owner=$(rlock acquire --lease 1m a)
  run -75 rlock run -n --history a -- true
  rlock release a --owner "$owner"
  rlock status --html >page.html
  [[ $(page_data page.html '[one["name"] for one in locks] + totals') == $'a\n'*"'name': 'a',"*"'skips': 1}" ]]
  # A waiter that the epoch guard holds back waits for a free lock.
  redis srv hset rlock:epoch life another server another longest 600000 >/dev/null
  "$RLOCK" run --epoch-guard b -- true 2>/dev/null 3>&- &
  waiter=$!
  wait_until eval '[[ $(redis srv zcard "rlock:queue:{b}") == 1 ]]'
  rlock status --html >page.html
  [[ $(page_data page.html '[[one["name"], one["state"], one["waiting"], len(one["queue"])] for one in locks]') == *"['b', 'free', 1, 1]"* ]]
  run -0 rlock status
  grep -qE '^b +free +- +- +- +- +1' <<<"$output"
  end_mine_wholly "$waiter"
  redis srv del rlock:epoch 'rlock:totals:{a}' >/dev/null
}

@test "a page of more locks than memory has room for shows fewer holds of each" {
  not_over cluster 'a script there writes keys of one slot'
  redis srv eval 'for i = 1, 700 do for j = 1, 100 do
    redis.call("xadd", "rlock:history:{" .. i .. "}", 1700000000000 + j .. "-1", "outcome", "released", "owner", j,
      "held", 20000, "host", "ci-9", "user", "ann", "pid", j, "command", "./deploy.sh", "end", "exited", "value", 0)
  end end' 0 >/dev/null
  rlock status --html >page.html
  [[ $(page_data page.html '[len(holds), about["holds"]]') == $'17500\nat most 25 of each lock' ]]
  redis srv eval 'for i = 1, 700 do redis.call("del", "rlock:history:{" .. i .. "}") end' 0 >/dev/null
}

@test "a page without the right to the present state: history --html says so, status --html fails" {
  not_over acl 'another user than this one'
  rlock run --history a -- true
  redis_listen srv
  redis srv acl setuser reader on '>sesame' '~rlock:history:*' +@read +@connection +info
  local url="redis://reader:sesame@127.0.0.1:$port"
  run -77 --separate-stderr rlock status --url "$url" --html a
  [[ ! -e page.html ]]
  rlock history --url "$url" --html >page.html a
  [[ $(page_data page.html '[locks, len(holds)] + remarks + [table]') == $'None\n1\nIt is unknown who holds the locks now: '*NOPERM*$'\nIt is unknown'*NOPERM* ]]
  # Without a name, locks that the user may not read are counted, also if that is all of them.
  owner=$(rlock acquire --lease 1m other)
  redis srv acl setuser reader resetkeys '~rlock:*' +@all
  rlock status --url "$url" --html >page.html
  [[ $(page_data page.html '[locks, about["refused"]] + remarks') == $'[]\n2\nIt is unknown who holds 2 locks: this user has no right to read them' ]]
  run -0 --separate-stderr rlock status --url "$url"
  [[ $stderr == *'rlock: warning: it is unknown who holds 1 lock: this user has no right to read it' ]]
  rlock release other --owner "$owner"
  redis srv acl deluser reader
  redis_listen_no_more srv
  redis srv del 'rlock:history:{a}' 'rlock:totals:{a}' >/dev/null
}
