# rlock's JSON fits docs/schema; metrics, alerts and the dashboard agree.

load ../lib/server
load ../lib/quorum

setup() {
  use_server srv
  export RLOCK_HISTORY=true
  ROOT=$TESTS_DIR/..
}
teardown() { redis srv flushall >/dev/null; }

# two_more: the server and two others are a quorum.
two_more() {
  redis_start two
  redis_start three
  RLOCK_URL="$RLOCK_URL $(redis_url two) $(redis_url three)"
}
fits() { python3 "$TESTS_DIR/lib/schema.py" "$ROOT/docs/schema/$1.json"; }

@test "status --json: each kind and state; a forecast, known and unknown; each text of a holder, in full; impossible times" {
  local waiter i job name owner=11111111-2222-3333-4444-555555555555:7 field text fields=()
  rlock acquire plain --lease 1m --reason why
  rlock acquire -s reader --lease 1m
  rlock acquire --slots 2 slot --lease 1m
  rlock acquire --protocol set string --lease 1m
  redis srv rpush list 1
  redis srv hset foreign x:1 1
  redis srv pexpire foreign 60000
  "$RLOCK" run -q plain -- true 3>&- &
  waiter=$!
  wait_until queued plain 1
  rlock status --json plain reader slot string list foreign free >all
  fits status <all
  rlock status --json | fits status
  grep -q waiting_for_ms all
  end_mine_wholly "$waiter"
  for i in 1 2 3 4 5; do rlock run a -- true; done
  "$RLOCK" run a -- sleep 1000 3>&- &
  job=$!
  wait_until rlock status --is-held a
  redis srv hset 'rlock:totals:{a}' lasted '1 1 1 1 3600000' >/dev/null
  rlock status --json a >known
  redis srv hset 'rlock:totals:{a}' lasted '0 0 0 0 0' >/dev/null
  rlock status --json a >unknown
  end_mine_wholly "$job"
  fits status <known
  fits status <unknown
  grep -q '"wait_ms": 3' known
  grep -q '"wait_ms": null' unknown
  redis srv flushall
  mapfile -t fields < <(sed -n '/^local kSelfTexts/p' "$ROOT/lua/07_marks.lua" | grep -o "'[^']*'" | tr -d "'")
  [[ " ${fields[*]} " == *' host '*' reason '* ]]
  rlock acquire a --lease 1m
  printf -v text '%0512d' 0
  for field in "${fields[@]}"; do
    redis srv hset 'rlock:holder:{a}' "$field" "$text" >/dev/null
    grep -qw "$field" "$ROOT/man/rlock-protocol.7"
  done
  rlock status --json a >all
  fits status <all
  for field in "${fields[@]}"; do grep -q "\"$field\": \"$text\"" all; done
  redis srv flushall
  for name in a b c; do foreign srv "$name"; done
  redis srv hset 'rlock:holder:{a}' owner "$owner" since 9007199254740000 lease -5
  redis srv hset 'rlock:holder:{b}' owner "$owner" since -62167219200001 lease -9223372036854775808
  redis srv hset 'rlock:holder:{c}' owner "$owner" since 1700000000000 lease 30000
  rlock status --json >all
  fits status <all
  run -0 python3 -c 'import json; print([(one.get("since"), one.get("lease_ms")) for one in json.load(open("all"))])'
  [[ $output == "[(None, None), (None, None), ('2023-11-14T22:13:20Z', 30000)]" ]]
}

@test "a quorum: locks of other programs count as held if totals name them; status --json fits with two of three servers" {
  two_more
  for one in srv two three; do foreign "$one" q; done
  run -75 rlock run -n q -- true
  run -0 --separate-stderr rlock status --prometheus
  [[ $output == *'rlock_held{name="q"} 1'* && $output == *'rlock_skips_total{name="q"} 1'* ]]
  redis_stop three
  rlock status --json other | fits status
  redis_stop two
}

@test "history --report --json" {
  rlock run --history a -- true
  run ! rlock run --history a -- false
  rlock run --history --slots 2 b -- true
  "$RLOCK" run --history a -- sh -c 'touch begun; until [ -e go ]; do sleep 0.1; done' 3>&- &
  local holder=$! waiter
  wait_until test -e begun
  "$RLOCK" run -q --history a -- true 3>&- &
  waiter=$!
  wait_until queued a 1
  let_pass 200
  touch go
  wait $holder $waiter
  rlock history --report --json >all
  [[ $(python3 -SEc 'import json; print(*(len(one["waited_for"]) for one in json.load(open("all"))))') == '1 0' ]]
  fits report <all
  rlock history --report --json none | fits report
}

@test "history --json and doctor --json" {
  rlock run a -- true
  run -1 rlock run a -- false
  run -137 rlock run a -- sh -c 'kill -9 $$'
  rlock run --min-hold 10s m -- true
  rlock run l -- sh -c "sleep 1000 >/dev/null 2>&1 &"
  rlock acquire f --lease 1m
  rlock force-unlock -y f
  run -74 rlock run e -- sh -c "redis-cli -s $srv_sock del e >/dev/null"
  redis srv zadd "rlock:hold:{x}:due" 5 owner:1
  rlock history --json >all
  [[ $(wc -l <all) == 10 ]]
  grep -q leftovers all
  fits history <all
  rlock history --json none | fits history
  rlock doctor --json >doctor || [[ $? == 1 ]]
  fits doctor <doctor
}

@test "data that does not match the schema is noticed" {
  for bad in '{}' '[{}]' '[{"check": "x", "result": "good", "seen": "", "advice": ""}]' \
    '[{"check": 1, "result": "ok", "seen": "", "advice": ""}]' \
    '[{"check": "x", "result": "ok", "seen": "", "advice": "", "more": 1}]'; do
    run -1 fits doctor <<<"$bad"
  done
}

# measures: the names that alerts, the dashboard and the man page use, one per line.
measures() { grep -ohE '\brlock_[a-z_]+\b' "$@" | sed 's/_seconds_\(bucket\|sum\|count\)$/_seconds/' | sort -u; }

@test "--prometheus prints metrics, with those of the history" {
  rlock run a -- true
  run -3 rlock run a -- sh -c 'exit 3'
  rlock acquire 'q"\ü' --lease 1m
  run -75 rlock run -n 'q"\ü' -- true
  run -74 rlock run e -- sh -c "redis-cli -s $srv_sock del e >/dev/null"
  run -0 --separate-stderr rlock status --prometheus
  [[ -z $stderr ]]
  python3 - "$output" <<'PYTHON'
import re, sys
seen, kind = {}, None
for line in sys.argv[1].splitlines():
    if line.startswith("#"):
        kind = re.fullmatch(r"# (?:HELP (\w+) .+\.|TYPE (\w+) (?:gauge|counter|histogram))", line).group(1, 2)
        continue
    name, label, limit, value = re.fullmatch(
        r'(\w+)\{(?:name|prefix)="((?:[^"\\\n]|\\["\\n])*)"((?:,le="[0-9+Inf]+")?)\} ([0-9.e+-]+)', line).groups()
    assert re.sub("_seconds_(bucket|sum|count)$", "_seconds", name) in kind, (name, kind)
    label += limit
    assert (name, label) not in seen
    seen[name, label] = float(value)
assert seen["rlock_held", "a"] == 0 and seen["rlock_last_status", "a"] == 3 and seen["rlock_losses_total", "a"] == 0
odd = 'q\\"\\\\\\\\ü'  # as rlock status shows it, with two backslashes, each of which is escaped in a label
assert seen["rlock_held", odd] == 1 and seen["rlock_skips_total", odd] == 1 and seen["rlock_waiters", odd] == 0, seen
assert seen["rlock_held_seconds", odd] >= 0 and seen["rlock_losses_total", "e"] == 1 and seen["rlock_last_status", "e"] == 74
buckets = [seen["rlock_hold_seconds_bucket", 'a,le="%s"' % limit] for limit in (1, 10, 60, 600, 3600, "+Inf")]
assert buckets == sorted(buckets) and buckets[-1] == seen["rlock_hold_seconds_count", "a"] == seen["rlock_wait_seconds_count", "a"] == 2
assert seen["rlock_hold_seconds_sum", "a"] >= 0 and ("rlock_hold_seconds_count", "e") not in seen
assert seen["rlock_last_end_timestamp_seconds", "a"] > 1e9 and seen["rlock_last_duration_seconds", "a"] >= 0
PYTHON
  rlock run b -- true
  run -0 rlock status --prometheus b
  [[ $output == *'rlock_held{name="b"} 0'* && $output != *'"a"'* ]]
  tells 64 'cannot be used together' rlock status --prometheus --json
  run -64 rlock status --prometheus --watch
}

# foreign SERVER NAME: another program holds that lock.
foreign() {
  redis "$1" hset "$2" 11111111-2222-3333-4444-555555555555:7 1
  redis "$1" pexpire "$2" 600000
}

@test "without names, locks of other programs count as held if a history, totals or a queue names them" {
  local waiter name
  rlock run deploy -- true
  foreign srv deploy
  foreign srv skipped
  foreign srv queued
  foreign srv unknown
  run -75 rlock run -n skipped -- true
  "$RLOCK" run -q deploy -- true 3>&- &
  waiter=("$!")
  RLOCK_HISTORY=false "$RLOCK" run -q queued -- true 3>&- &
  waiter+=("$!")
  wait_until queued deploy 1
  wait_until queued queued 1
  run -0 --separate-stderr rlock status --prometheus
  for name in deploy skipped queued; do
    grep -qxF "rlock_held{name=\"$name\"} 1" <<<"$output" || { echo "$name: $output" && return 1; }
  done
  [[ $output == *'rlock_waiters{name="deploy"} 1'* && $output == *'rlock_waiters{name="queued"} 1'* ]]
  [[ $output == *'rlock_waiters{name="skipped"} 0'* && $output != *unknown* ]]
  run -0 rlock status --names
  [[ $output == queued || $output == $'deploy\nqueued' ]]
  end_mine_wholly "${waiter[@]}"
}

@test "without names, all of many locks that only a history knows are checked" {
  for i in {1..300}; do printf 'xadd rlock:history:{old-%s} * outcome released end exited value 0\n' "$i"; done | redis srv >/dev/null
  foreign srv old-7
  run -0 --separate-stderr rlock status --prometheus
  [[ $(grep -c '^rlock_held{' <<<"$output") == 300 && $output == *'rlock_held{name="old-7"} 1'* ]]
  [[ $(grep -c '^rlock_held{.* 1$' <<<"$output") == 1 ]]
}

@test "labels are the names as rlock status shows them, each one once, and the text is UTF-8" {
  bytes=$(printf '\xff%.0s' {1..300})
  for name in 'ba"d\name' "${bytes}a" "${bytes}b" 'Büro'; do rlock acquire "$name" --lease 1m; done
  rlock status --prometheus >text
  python3 - <<'PYTHON'
import re
text = open("text", encoding="utf-8").read()
held = re.findall(r'^rlock_held\{name="((?:[^"\\\n]|\\["\\n])*)"\} 1$', text, re.M)
names = [re.sub(r"\\(.)", r"\1", one) for one in held]
assert len(names) == 4 == len(set(names)), names
assert 'ba"d\\\\name' in names and "Büro" in names and "\\xff" * 300 + "a" in names, names
PYTHON
}

# measure_all: all metrics that there are, in one.txt and, of a quorum, in two.txt.
measure_all() {
  local i
  for i in 1 2 3 4 5; do rlock run a -- true; done
  rlock run --once 1 a -- true
  rlock acquire a --history --lease 1m
  redis srv hset 'rlock:totals:{a}' lasted '60000 60000 60000 60000 60000' >/dev/null
  rlock acquire --slots 2 slot --lease 1m
  rlock run renewed -- "$RLOCK" status --prometheus >one.txt
  quorum_start 3
  redis s1 hset rlock:epoch since 1 >/dev/null
  rlock status --prometheus >two.txt
  quorum_stop
}

@test "alerts and dashboard use each metric, and so does the man page; each lock has one alert" {
  measure_all
  measures one.txt two.txt >known
  (($(wc -l <known) == 20))
  diff known <(measures "$ROOT/man/rlock-status.1")
  diff <(grep -vE 'rlock_(wait|hold)_seconds' known) <(measures "$ROOT"/packaging/prometheus/*)
  python3 - "$ROOT"/packaging/prometheus/{dashboard.json,alerts.yml} <<'PYTHON'
import json, re, sys, yaml
board = json.load(open(sys.argv[1]))
assert board["uid"] and board["schemaVersion"] >= 30 and len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
places = set()
for panel in board["panels"]:
    at = panel["gridPos"]
    cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
    assert at["x"] + at["w"] <= 24 and not cells & places, panel["title"]
    places |= cells
    for target in panel["targets"]:
        # One metric each, which several hosts may export for the same server.
        assert len(re.findall(r"\brlock_\w+", target["expr"])) == 1, target
        assert re.match(r"(time\(\) - )?max by \((name|server)\) \(", target["expr"]), target
    if panel["type"] == "table":
        assert all(target["instant"] and not target["range"] and target["format"] == "table" for target in panel["targets"])
        organized = [one["options"] for one in panel["transformations"] if one["id"] == "organize"]
        assert organized and organized[0]["excludeByName"] == {"Time": True}, panel
        assert organized[0]["renameByName"] == {"name": "Lock", "Value": "Status"}, panel
# A loss is visible among hundreds of skips.
for counter in ("losses", "skips", "forced"):
    of = [panel for panel in board["panels"] if counter + "_total" in json.dumps(panel)]
    assert len(of) == 1 and len(of[0]["targets"]) == 1, counter
# Each lock has one alert, regardless of how many hosts export it.
for group in yaml.safe_load(open(sys.argv[2]))["groups"]:
    for rule in group["rules"]:
        # absent() has one result, whatever it is asked for.
        rest = re.sub(r"absent\(rlock_\w+|max by \((?:name|server|prefix)\) \((increase\(|max_over_time\()?rlock_\w+", "", rule["expr"])
        assert not re.search(r"\brlock_", rest), rest
PYTHON
}

@test "the alerts fire when they should" {
  command -v promtool >/dev/null || skip 'PROMTOOL IS MISSING (package prometheus): no test fires the alerts'
  promtool check rules "$ROOT/packaging/prometheus/alerts.yml"
  cp "$ROOT/packaging/prometheus/alerts.yml" "$TESTS_DIR/docs/alerts_test.yml" .
  promtool test rules alerts_test.yml
}

@test "a real Prometheus reads the metrics; each panel of the dashboard has data, and each alert can be evaluated" {
  command -v prometheus >/dev/null || skip 'PROMETHEUS IS MISSING (package prometheus): no test reads the metrics'
  measure_all
  python3 "$TESTS_DIR/lib/prometheus.py" "$ROOT/packaging/prometheus" one.txt two.txt
}
