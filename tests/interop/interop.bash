# The tests with Redisson share this. A file has one server and one Redisson; what it needs
# otherwise, it defines itself behind the `load`: setup, teardown, $KIND (of its locks), or $WATCHDOG_MS (how long
# Redisson's locks last without a renewal).
#
#   use_kind KIND [NAME]           the test uses this kind of Redisson's locks: plain, fair, spin, nonreentrant,
#                                  nonreentrant-fair, mapped, red, write, permit (of one), readwrite or permits (without
#                                  options); sets $name, $theirs (the name that Redisson is given), $prefix (of its
#                                  commands), $channel (on which it listens), and $options (of rlock)
#   for_each_kind FUNCTION KIND ...  runs it for each
#   waiters N                      N clients listen on $channel, or for their turn in a fair lock's queue
#   lock_free                      nothing is left of the lock $name except its fencing token
#   held_by N                      status knows N holders of $name
#   permit_ids                     Redisson's ids of the permits of $name that are taken, sorted
#   holder_shows OWNER HOLDS MODE TAKEN_BY_RLOCK MIN MAX
#                                  status --json has it, and its lease lasts for more than MIN and at most MAX ms
#
# Jobs under the lock $name with $options, each with a label ID:
#   start_job ID [OPTION ...]      `rlock run` in the background, until it is told to end
#   running_job ID [OPTION ...]    and waits until its command has been started
#   waiting_job ID [OPTION ...]    and waits until it is in rlock's queue
#   job_runs ID                    its command has been started
#   job_wakes ID                   waits for that; what has just happened woke it
#   jobs_wait N                    N wait in rlock's queue
#   end_job ID                     lets its command end, and waits for that; rlock exits with 0
#   job_ends ID STATUS             waits for the end; rlock exits with STATUS
#   crash_job ID                   kills all of rlock and the command
# What holds for each kind of Redisson's locks:
#   they_take_turns                exclusion, wake-ups, foreign releases and force, each way
#   turns VERB OPTION ...          Redisson's thread `turns` sends VERB behind one job with each OPTION, gets the lock,
#                                  gives it back, and repeats this until all jobs are done; each time after at most 5
#                                  more. Every second release is open: two, or four if Redisson has missed one
#
# Redisson: a Java process that reads commands from a FIFO and appends its replies to a file (Driver.java).
#
#   redisson_start ADDRESS [MS]    builds the driver if needed and starts it, once per test file. With $JVM set to 2
#                                  a second one, which `redisson` and the others use if $JVM says so
#   redisson_stop                  ends all of them
#   needs_redisson VERSION [WHY]   skips the test with an older one. $REDISSON_VERSION chooses one, 4.7.0 by default
#   redisson THREAD COMMAND NAME [ARG ...]
#                                  makes Redisson do it; $reply is the reply; fails if Redisson threw
#   redisson_throws THREAD ...     the same, but it has to refuse, because the lock is not the thread's
#   redisson_send THREAD ...       the same without waiting for the reply, for commands that block
#   redisson_waits THREAD ...      sends it, and waits until its thread sleeps, without a reply
#   redisson_replies THREAD        waits for the reply; it is in $reply
#   reply FIELD                    a field of the last reply; a quote or a control character in it stays escaped
#   value THREAD COMMAND ...       the same as redisson, and prints what Redisson has returned
#   redisson_wakes THREAD          waits for a successful reply, which what has just happened has caused

declare -F wait_until >/dev/null || source "${BASH_SOURCE[0]%/*}/../lib/common.bash"

# A waiting rlock looks by itself every 5 s, Redisson when the lease is over: a client that starts sooner was woken.
WOKEN_MS=3500

DRIVER=$TESTS_DIR/interop/driver
# Below that folder: the version in its pom.xml, or another one.
REDISSON_TARGET=target${REDISSON_VERSION:+/$REDISSON_VERSION}
declare -gA replies_before job_pids

setup_file() { interop_setup_file; }
teardown_file() {
  redisson_stop
  redis_stop r
}
setup() { interop_setup; }
teardown() { interop_teardown; }

# Says so if Redisson is missing, and fails then in CI: a run that tested nothing would look like one that passed.
find_redisson() {
  export REDISSON_MISSING=''
  if command -v mvn >/dev/null && command -v javac >/dev/null; then return; fi
  REDISSON_MISSING='not tested: that rlock and Redisson share locks. To test it: apt-get install maven default-jdk-headless'
  echo "$REDISSON_MISSING" >&2
  # The countdown of bats 1.11 outlives a test that ends at once, and bats waits for it.
  export BATS_TEST_TIMEOUT=
  [[ -z ${CI:-} ]]
}

interop_setup_file() {
  find_redisson || return
  [[ -z $REDISSON_MISSING ]] || return 0
  export port
  port=$(redis_free_port)
  redis_start r --port "$port" --bind 127.0.0.1
  redisson_start "redis://127.0.0.1:$port" ${WATCHDOG_MS:+"$WATCHDOG_MS"}
}

interop_setup() {
  [[ -z $REDISSON_MISSING ]] || skip "$REDISSON_MISSING"
  export RLOCK_URL=redis://127.0.0.1:$port
  use_kind "${KIND:-plain}"
}

use_kind() {
  name=${2:-$1-$BATS_TEST_NUMBER.} theirs=$name prefix=$1- options=()
  local listened=redisson_lock__channel
  case $1 in
    plain) prefix='' ;;
    mapped) name=app:$name ;;
    readwrite) listened=redisson_rwlock ;;
    write) listened=redisson_rwlock options=(-x) ;;
    permits) listened=redisson_sc options=(--java-semaphore) ;;
    permit) listened=redisson_sc options=(--slots 1 --java-semaphore) ;;
  esac
  [[ $1 != permit* ]] || needs_redisson 3.17.0 'it keeps permits in another form'
  [[ $1 != nonreentrant* ]] || needs_redisson 4.4.0
  # Braces are added unless the name has some.
  tagged="{$name}"
  [[ $name != *'{'* ]] || tagged=$name
  channel=$listened:$tagged
  [[ $1 != permit ]] || redisson setup try-set-permits "$name" 1
}

for_each_kind() {
  local function=$1 kind
  shift
  for kind; do
    use_kind "$kind"
    echo "with kind $kind"
    "$function" # no ||, behind which a failure would not end it
  done
}

interop_teardown() {
  local id
  for id in "${!job_pids[@]}"; do
    sed "s/^/$id: /" "$BATS_TEST_TMPDIR/$id.log" || true
    touch "$BATS_TEST_TMPDIR/$id.end"
    gone "${job_pids[$id]}" || kill -TERM "${job_pids[$id]}"
    wait_until gone "${job_pids[$id]}" || kill -KILL "${job_pids[$id]}"
  done
}

start_job() {
  local id=$1
  shift
  rm -f "$BATS_TEST_TMPDIR/$id.started" "$BATS_TEST_TMPDIR/$id.end"
  # shellcheck disable=SC2016 # for the sh of the command
  "$RLOCK" run "${options[@]}" "$@" "$name" -- sh -c 'echo "$RLOCK_TOKEN" >"$0"; until [ -e "$1" ]; do sleep 0.1; done' \
    "$BATS_TEST_TMPDIR/$id.started" "$BATS_TEST_TMPDIR/$id.end" </dev/null >"$BATS_TEST_TMPDIR/$id.log" 2>&1 3>&- &
  job_pids[$id]=$!
}

running_job() {
  start_job "$@"
  wait_until job_runs "$1"
}

waiting_job() {
  local before
  before=$(jobs_waiting)
  start_job "$@"
  wait_until jobs_wait $((before + 1))
  not job_runs "$1"
}

job_runs() { [[ -s $BATS_TEST_TMPDIR/$1.started ]]; }

job_wakes() { woken job_runs "$1"; }

jobs_waiting() { redis r zcard "rlock:queue:$tagged"; }
jobs_wait() { [[ $(jobs_waiting) == "$1" ]]; }

job_ends() {
  wait_until gone "${job_pids[$1]}"
  exits "${job_pids[$1]}" "$2"
  unset "job_pids[$1]"
}

end_job() {
  touch "$BATS_TEST_TMPDIR/$1.end"
  job_ends "$1" 0
}

# The frontend, its child the monitor, and what that has started. The frontend is stopped first, so that neither guard can
# act on the death of the other, as the monitor by a release.
crash_job() {
  local frontend=${job_pids[$1]} monitor command
  monitor=$(monitor_of "$frontend")
  command=$(child_of "$monitor")
  kill -STOP "$frontend"
  wait_until in_state "$frontend" T
  kill -KILL "$monitor" "$command"
  wait_until gone "$monitor"
  wait_until gone "$command"
  kill -KILL "$frontend"
  job_ends "$1" 137
}

# woken COMMAND ...: waits for that, no longer than a wake-up takes.
woken() {
  local start elapsed
  start=$(now_ms)
  wait_until "$@"
  elapsed=$(($(now_ms) - start))
  ((elapsed < WOKEN_MS)) || { echo "took $elapsed ms" >&2 && return 1; }
}

waiters() {
  [[ $(redis r pubsub numsub "$channel" | tail -n 1) == "$1" ]] ||
    [[ $(redis r pubsub channels "$channel:*" | grep -c .) == "$1" ]]
}

lock_free() {
  # A key that tells a holder who has taken its lock has a TTL.
  not grep -qvE '^redisson_lock_token:|:taken$' < <(redis r --scan --pattern "*$name*")
}

held_by() {
  [[ $(rlock status --json "$name" | grep '"number_of_holders"') == *" $1," ]]
}

permit_ids() {
  # shellcheck disable=SC2016 # Lua
  redis r eval 'local ids = redis.call("zrange", KEYS[1], 0, -1)
    for i, id in ipairs(ids) do
      ids[i] = id:gsub(".", function(byte) return string.format("%02x", byte:byte()) end)
    end
    return ids' 1 "$tagged:timeout" | sort
}

holder_shows() {
  rlock status --json "$name" | python3 -c '
import json, sys
owner, holds, mode, ours, least, most = sys.argv[1:]
lock, = json.load(sys.stdin)
one, = (holder for holder in lock.get("holders", [lock]) if holder["owner"] == owner)
assert (one.get("holds", 1), one.get("mode", ""), one["taken_by_rlock"]) == (int(holds), mode, ours == "yes"), one
assert int(least) < one["expires_in_ms"] <= int(most), one' "$@"
}

they_take_turns() {
  redisson a "${prefix}lock" "$theirs"
  run -75 rlock run -n "${options[@]}" "$name" -- true
  run -76 rlock release "$name" --owner 11111111-2222-3333-4444-555555555555:7
  run -0 rlock status "$name"
  assert_says 'not taken by rlock'
  waiting_job rlock
  redisson a "${prefix}unlock" "$theirs"
  job_wakes rlock

  # A RedLock's unlock does not say that it has failed.
  if [[ $prefix == red- ]]; then redisson b red-unlock "$name"; else redisson_throws b "${prefix}unlock" "$theirs"; fi
  not redisson b "${prefix}trylock" "$theirs" 0 30000 || [[ $(reply value) == @(false|null) ]]
  redisson_waits a "${prefix}lock" "$theirs"
  end_job rlock
  redisson_wakes a
  waiting_job rlock
  rlock force-unlock --yes --now "$name"
  job_wakes rlock
  end_job rlock
}

turns() {
  local verb=$1 log=$BATS_TEST_TMPDIR/log queued=() before=0 after=0 turns='' option owner
  shift
  : >"$log"
  # shellcheck disable=SC2086 # words
  owner=$(rlock acquire "${options[@]}" $1 "$name" --lease 1m)
  for option; do
    # shellcheck disable=SC2016,SC2086 # for the sh of the command; words
    "$RLOCK" run -q "${options[@]}" $option "$name" -- sh -c 'echo >>"$0"; sleep 0.1' "$log" </dev/null 3>&- &
    queued+=($!)
    wait_until jobs_wait ${#queued[@]}
  done
  redisson_send turns "$verb" "$name"
  wait_until waiters 2
  rlock release "$name" --owner "$owner"
  until ((after == ${#queued[@]})); do
    wait_until redisson_replies turns
    after=$(wc -l <"$log")
    turns+=" $before-$after"
    ((after - before <= 5)) || {
      echo "asked, and got it after this many of ${#queued[@]} jobs:$turns" >&2
      return 1
    }
    redisson turns "${verb/lock/unlock}" "$name"
    before=$(wc -l <"$log")
    ((before == ${#queued[@]})) || redisson_send turns "$verb" "$name"
    after=$before
  done
  echo "# $verb: asked, and got it after this many of ${#queued[@]} jobs:$turns" >&3
  for owner in "${queued[@]}"; do wait "$owner"; done
}

# Maven needs seconds even if there is nothing to do, so it only runs after a change.
redisson_build() {
  local built=$DRIVER/$REDISSON_TARGET/built log version=()
  # Test files run in parallel.
  local turn
  exec {turn}<"$DRIVER/pom.xml"
  flock "$turn"
  [[ -e $built && -z $(find "$DRIVER/pom.xml" "$DRIVER/src" -type f -newer "$built") ]] && return
  [[ -z ${REDISSON_VERSION:-} ]] || version=("-Dredisson.version=$REDISSON_VERSION" "-Dtarget=$REDISSON_TARGET")
  log=$BATS_FILE_TMPDIR/maven.log
  mvn -q -B -f "$DRIVER/pom.xml" "${version[@]}" package >"$log" 2>&1 3>&- {turn}<&- || {
    cat "$log" >&2
    return 1
  }
  touch "$built"
}

redisson_start() {
  (redisson_build) || return
  local driver_dir=$BATS_FILE_TMPDIR/jvm${JVM:-1}
  mkdir "$driver_dir"
  mkfifo "$driver_dir/in"
  # Opened for reading and writing, so that no end of file comes when a test that has sent a command ends.
  java -XX:+UseSerialGC -Xshare:auto -XX:TieredStopAtLevel=1 \
    -cp "$DRIVER/$REDISSON_TARGET/classes:$DRIVER/$REDISSON_TARGET/lib/*" Driver "$@" \
    <>"$driver_dir/in" >"$driver_dir/out" 2>"$driver_dir/err" 3>&- &
  echo $! >"$driver_dir/pid"
  WAIT_SECONDS=60 wait_until grep -q '"event":"ready"' "$driver_dir/out" || {
    cat "$driver_dir/err" >&2
    return 1
  }
}

redisson_stop() {
  local file pid
  for file in "$BATS_FILE_TMPDIR"/jvm*/pid; do
    [[ -e $file ]] || continue
    pid=$(<"$file")
    kill -TERM "$pid" 2>/dev/null || continue
    wait_until gone "$pid"
  done
}

needs_redisson() {
  printf '%s\n' "$1" "${REDISSON_VERSION:-$1}" | sort -CV || skip "not with Redisson ${REDISSON_VERSION:-}: ${2:-it has this since $1}"
}

# Each test has its own threads, so that one that a failed test left waiting does not affect the next.
redisson_send() {
  local thread=$BATS_TEST_NUMBER.$1 driver_dir=$BATS_FILE_TMPDIR/jvm${JVM:-1}
  shift
  mapfile -t <"$driver_dir/out"
  replies_before[$thread]=${#MAPFILE[@]}
  # <> because a plain > would block forever if the driver has died.
  echo "$thread $*" 1<>"$driver_dir/in"
}

redisson_replies() {
  local thread=$BATS_TEST_NUMBER.$1 driver_dir=$BATS_FILE_TMPDIR/jvm${JVM:-1}
  mapfile -ts "${replies_before[$thread]}" <"$driver_dir/out"
  for reply in "${MAPFILE[@]}" ''; do
    [[ $reply != "{\"thread\":\"$thread\","*'"waited_ms":'*([0-9])'}' ]] || return 0
  done
  return 1
}

redisson() {
  redisson_send "$@"
  wait_until redisson_replies "$1"
  echo "$reply"
  [[ $(reply ok) == true ]]
}

reply() {
  [[ $reply =~ \"$1\":(\"([^\"]*)\"|([^,}]*)) ]] && echo "${BASH_REMATCH[2]}${BASH_REMATCH[3]}"
}

redisson_throws() {
  not redisson "$@"
  [[ $(reply error) == Illegal@(MonitorState|Argument)Exception ]]
}

redisson_waits() {
  redisson_send "$@"
  wait_until sleeping "$1"
  waiters 1
  not redisson_replies "$1"
}

sleeping() { [[ $(value looker is-waiting "$BATS_TEST_NUMBER.$1") == true ]]; }

value() {
  redisson "$@" >&2
  reply value
}

redisson_wakes() {
  woken redisson_replies "$1"
  [[ $(reply ok) == true ]]
}
