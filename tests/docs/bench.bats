# The benchmarks work. No figure is compared, because those of a busy machine mean nothing.

load ../lib/common

# results: where the benchmarks have written, once for all tests of this file.
results() { echo "$BATS_FILE_TMPDIR/results"; }

setup_file() {
  local program
  for program in cc redis-server redis-cli flock openssl python3; do
    command -v "$program" >/dev/null || skip "no $program"
  done
  mkdir "$BATS_FILE_TMPDIR/t"
  TMPDIR=$BATS_FILE_TMPDIR/t BENCH_ROUNDS=1 BENCH_OUT=$(results) \
    sh "$TESTS_DIR/../bench/run.sh" --quick >"$BATS_FILE_TMPDIR/said" 2>&1 3>&- || {
    cat "$BATS_FILE_TMPDIR/said" >&2
    return 1
  }
}

# check PYTHON: runs the text without an error. It finds all results as `all`, and each program's figures by its name.
check() {
  python3 - "$(results)/latest.json" <<PYTHON
import json, sys
all = json.load(open(sys.argv[1]))
start, handoff, idle, renewals, scale, server = (
    all["programs"][name]["figures"] for name in ("start", "handoff", "idle", "renewals", "scale", "server"))
$1
PYTHON
}

@test "each benchmark measures rlock beside its peers; the results say where they come from, and what was not measured" {
  check '
assert all["failed"] == []
for rows in start["start"], handoff:
    assert {"flock", "floor", "guarded floor", "rlock"} <= {row["design"] for row in rows}
    assert min(row["p50_us"] for row in rows) > 0
assert {"floor", "floor TCP", "rlock TCP", "rlock TLS"} <= {row["design"] for row in start["start"]}
assert {row["design"] for row in start["busy"]} == {"flock -n", "rlock run -n"}
assert len(start["parts"]) == 5
# Once they have run, the server knows the scripts of both floors by the digests in floor.h and guarded.c.
last = {row["design"]: row["commands"] for row in handoff if row["waiters"] == 2}
assert "evalsha" in last["guarded floor"] and not any("eval" in commands for commands in last.values())
assert idle["waiter"]["count"] == 3 and idle["holder"]["count"] == 2
assert [row["design"] for row in renewals] == ["idle", "PING", "Redisson", "rlock"]
one, *masters = scale["held"]
assert one["locks"] == sum(master["locks"] for master in masters) == 200 and one["turns"] >= 400
assert one["least"] > 25000
assert {"PING", "renewal, Redisson", "renewal, rlock", "pair", "short job"} == {row["what"] for row in scale["busy"]}
assert [row["server"] for row in scale["compared"]] == ["one server", "master 1", "master 2", "master 3"]
pairs = {row["design"]: row["commands"] for row in server}
assert pairs["rlock"] == {"CLIENT": 1, "INFO": 1, "EVALSHA": 2} and pairs["rlock, only the scripts"] == {"EVALSHA": 2}
assert pairs["SET NX PX, DEL"] == {"SET": 1, "DEL": 1}
assert all["mode"] == "rounds" and all["machine"]["cores"] > 0
assert all["machine"]["programs"]["rlock"].startswith("rlock ")
assert {"design": "Redisson", "why": "not asked for"} in all["programs"]["server"]["not_measured"]
'
  grep -q 'only shows that the programs work' "$(results)/latest.md"
  grep -q '^Not measured: Redisson (not asked for)' "$(results)/latest.md"
  grep -qE '^\| rlock \| 1 CLIENT, 1 INFO, 2 EVALSHA \|' "$(results)/latest.md"
}

@test "the summary has a line for each kind of work, no progress is written to a file, and the plots show rlock" {
  run -0 "$TESTS_DIR/../bench/report" summary "$(results)/latest.json"
  for work in start 'start, TLS' 'a busy lock, `-n`' 'hand-off, waiters: 2' "the server's CPU for a renewal" \
    'locks that three masters carry'; do
    grep -qF "| $work |" <<<"$output"
    grep -qF "| $work |" "$BATS_FILE_TMPDIR/said"
  done
  run -1 grep -q $'\r' "$BATS_FILE_TMPDIR/said"
  for name in start handoff; do
    python3 -c 'import sys, xml.dom.minidom
texts = xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("text")
assert "rlock" in [text.firstChild.data for text in texts]' "$(results)/$name.svg"
  done
}

@test "the guarded floor is guarded: it ends its tree and frees the lock if its frontend is killed, and fails if its monitor is" {
  local frontend monitor child guarded=$BATS_TEST_TMPDIR/guarded
  cc -O2 -o "$guarded" "$TESTS_DIR/../bench/guarded.c"
  redis_start srv
  cd "$BATS_TEST_TMPDIR"
  run -7 "$guarded" "$srv_sock" x sh -c 'exit 7'
  [[ $(redis srv exists x) == 0 ]]
  # starts: a job whose command leaves a child in a session of its own.
  starts() {
    rm -f child
    "$guarded" "$srv_sock" x sh -c 'setsid sh -c "echo \$\$ >pid && mv pid child && exec sleep 600" & sleep 600' 3>&- &
    frontend=$!
    wait_until test -s child
    read -r child <child
  }
  starts
  run -75 "$guarded" "$srv_sock" x true
  kill -9 "$frontend"
  wait_until gone "$child"
  wait_until eval '[[ $(redis srv exists x) == 0 ]]'
  starts
  monitor=$(pgrep -P "$frontend")
  kill -9 "$monitor"
  exits "$frontend" 74
  gone "$child"
  [[ $(redis srv exists x) == 1 ]]
  redis_stop srv
}

@test "a benchmark stops its servers if its terminal is closed, even while they start" {
  local TMPDIR=$BATS_TEST_TMPDIR/t pid
  mkdir "$TMPDIR"
  export TMPDIR
  run -129 python3 -c 'import signal, sys; sys.path.insert(0, sys.argv[1]); import common, os
class Server(common.Server):
    def starts(self, *options):
        super().starts(*options)
        os.kill(os.getpid(), signal.SIGHUP)
    def __exit__(self, *_):
        os.kill(os.getpid(), signal.SIGHUP)  # the second one of a terminal
        super().__exit__()
with Server(): pass' "$TESTS_DIR/../bench" 3>&-
  "$TESTS_DIR/../bench/renewals" --rlock "$RLOCK" --locks 10 --seconds 60 >/dev/null 3>&- &
  pid=$!
  wait_until eval '[[ $(ls -A "$TMPDIR"/*/s) ]]'
  kill -HUP "$pid"
  exits "$pid" 129
  [[ -z $(ls -A "$TMPDIR") ]]
  run -1 pgrep -fa "$TMPDIR/"
}

@test "a benchmark says what it cannot run with" {
  run -1 "$TESTS_DIR/../bench/scale" --rlock /nowhere/rlock
  [[ $output == 'scale: /nowhere/rlock: not found; build rlock as the README says, '* ]]
  run -69 env RLOCK=/nowhere/rlock sh "$TESTS_DIR/../bench/run.sh" --quick
  [[ $output == *'/nowhere/rlock not found' ]]
  run -2 "$TESTS_DIR/../bench/scale" --rlock "$RLOCK" --locks 2
  [[ $output == *'must be at least 100' ]]
  run -1 prlimit --nofile=256:256 "$TESTS_DIR/../bench/scale" --rlock "$RLOCK"
  [[ $output == 'scale: the limit of open files is 256; '* ]]
  local TMPDIR
  TMPDIR=$BATS_TEST_TMPDIR/$(printf 'x%.0s' {1..100})
  mkdir "$TMPDIR"
  TMPDIR=$TMPDIR run -1 "$TESTS_DIR/../bench/renewals" --rlock "$RLOCK"
  [[ $output == 'renewals: the name of TMPDIR is too long for a socket in it' && -z $(ls -A "$TMPDIR") ]]
}

@test "the benchmarks leave no process and no file behind" {
  run -1 pgrep -fa "$BATS_FILE_TMPDIR/t/"
  [[ -z $(ls -A "$BATS_FILE_TMPDIR/t") ]]
}
