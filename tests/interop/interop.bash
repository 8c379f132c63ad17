# The tests with Redisson share this. Source it after common.
#
#   interop_setup_file [MS]        starts a server and Redisson; MS: how long its locks last without a renewal
#   interop_teardown_file          stops both
#   interop_setup                  rlock uses the server; skips the test if Redisson is missing
#   interop_teardown               ends the jobs that a failed test has left
#   woken_since START              at most the time of a wake-up has passed since START
#   waiters N                      N clients listen on $channel
#   lock_free                      nothing is left of the lock $name except its fencing token
#   held_by N                      status knows N holders of $name
#
# Jobs under the lock $name, each with a label ID:
#   start_job ID [OPTION ...]      `rlock run` in the background, until it is told to end
#   job_runs ID                    its command has been started
#   job_wakes ID START             waits for that; what happened at START woke it
#   jobs_wait N                    N wait in rlock's queue
#   end_job ID [STATUS]            lets its command end, and waits for that; rlock exits with STATUS, 0 by default
#   job_ends ID STATUS             waits for the end; rlock exits with STATUS
#   crash_job ID                   kills all of rlock and the command
#
# Turns: jobs that all wait in rlock's queue, and write a line into $log when they are done:
#   queue_jobs OPTION ...          one with each OPTION, in this order
#   redisson_gets_turns VERB FREE MOST
#                                  Redisson's thread `turns`, which has sent VERB, gets it, releases it with the command
#                                  FREE, and repeats this until all jobs are done; each time after at most MOST more.
#                                  Every second release is open: two, or four if Redisson has missed one
#
# Redisson: a Java process that reads commands from a FIFO and appends its replies to a file (README.md).
#
#   redisson_missing               says why it is not available; nothing if it is
#   redisson_start ADDRESS [MS]    builds the driver if needed and starts it, once per test file. With $JVM set to 2
#                                  a second one, which `redisson` and the others use if $JVM says so
#   redisson_stop                  ends all of them
#   needs_redisson VERSION [WHY]   skips the test with an older one. $REDISSON_VERSION chooses one, 4.7.0 by default
#   redisson THREAD COMMAND NAME [ARG ...]
#                                  makes Redisson do it; $reply is the reply; fails if Redisson threw
#   redisson_send THREAD ...       the same without waiting for the reply, for commands that block
#   redisson_replies THREAD        waits for the reply; it is in $reply
#   reply FIELD                    a field of the last reply; a quote or a control character in it stays escaped
#   value THREAD COMMAND ...       the same as redisson, and prints what Redisson has returned
#   redisson_wakes THREAD START    waits for a successful reply, which what happened at START has caused

# A waiting rlock looks by itself every 5 s, Redisson when the lease is over: a client that starts sooner was woken.
WOKEN_MS=3500

DRIVER=$TESTS_DIR/interop/driver
# Below that folder: the version in its pom.xml, or another one.
REDISSON_TARGET=target${REDISSON_VERSION:+/$REDISSON_VERSION}
declare -gA replies_before job_pids

interop_setup_file() {
  export REDISSON_MISSING
  REDISSON_MISSING=$(redisson_missing)
  # A CI run that tested nothing would look like one that passed.
  [[ -z $REDISSON_MISSING ]] || {
    echo "$REDISSON_MISSING" >&2
    # The countdown of bats 1.11 outlives a test that ends at once, and bats waits for it.
    export BATS_TEST_TIMEOUT=
    [[ -z ${CI:-} ]]
    return
  }
  export port
  port=$(redis_free_port)
  redis_start r --port "$port" --bind 127.0.0.1
  redisson_start "redis://127.0.0.1:$port" "$@"
}

interop_teardown_file() {
  redisson_stop
  redis_stop r
}

interop_setup() {
  [[ -z $REDISSON_MISSING ]] || skip "$REDISSON_MISSING"
  export RLOCK_URL=redis://127.0.0.1:$port
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
  "$RLOCK" run "$@" "$name" -- sh -c 'echo "$RLOCK_TOKEN" >"$0"; until [ -e "$1" ]; do sleep 0.05; done' \
    "$BATS_TEST_TMPDIR/$id.started" "$BATS_TEST_TMPDIR/$id.end" </dev/null >"$BATS_TEST_TMPDIR/$id.log" 2>&1 3>&- &
  job_pids[$id]=$!
}

job_runs() { [[ -s $BATS_TEST_TMPDIR/$1.started ]]; }

job_wakes() {
  wait_until job_runs "$1"
  woken_since "$2"
}

jobs_wait() { [[ $(redis r zcard "rlock:queue:{$name}") == "$1" ]]; }

job_ends() {
  local pid=${job_pids[$1]} status=0
  wait_until gone "$pid"
  wait "$pid" || status=$?
  [[ $status == "$2" ]] || {
    echo "rlock ended with status $status, expected $2" >&2
    return 1
  }
  unset "job_pids[$1]"
}

end_job() {
  touch "$BATS_TEST_TMPDIR/$1.end"
  job_ends "$1" "${2:-0}"
}

# The frontend, its child the monitor, and what that has started. The frontend is stopped first, so that neither guard can
# act on the death of the other, as the monitor by a release.
crash_job() {
  local frontend=${job_pids[$1]} monitor command
  monitor=$(monitor_of "$frontend")
  command=$(pgrep -o -P "$monitor")
  kill -STOP "$frontend"
  wait_until in_state "$frontend" T
  kill -KILL "$monitor" "$command"
  wait_until gone "$monitor"
  wait_until gone "$command"
  kill -KILL "$frontend"
  job_ends "$1" 137
}

woken_since() {
  local elapsed=$(($(now_ms) - $1))
  ((elapsed < WOKEN_MS)) || {
    echo "took $elapsed ms" >&2
    return 1
  }
}

waiters() {
  [[ $(redis r pubsub numsub "$channel" | tail -n 1) == "$1" ]]
}

lock_free() {
  # A key that tells a holder who has taken its lock has a TTL.
  not grep -qvE '^redisson_lock_token:|:taken$' < <(redis r --scan --pattern "*$name*")
}

held_by() {
  [[ $(rlock status --json "$name" | grep '"number_of_holders"') == *" $1," ]]
}

queue_jobs() {
  local option
  log=$BATS_TEST_TMPDIR/log queued=()
  : >"$log"
  for option in "$@"; do
    # shellcheck disable=SC2016 # for the sh of the command
    "$RLOCK" run -q "$option" "$name" -- sh -c 'echo >>"$0"; sleep 0.1' "$log" </dev/null 3>&- &
    queued+=($!)
    wait_until jobs_wait ${#queued[@]}
  done
}

redisson_gets_turns() {
  local before=0 after=0 turns='' pid
  until ((after == ${#queued[@]})); do
    wait_until redisson_replies turns
    after=$(wc -l <"$log")
    turns+=" $before-$after"
    ((after - before <= $3)) || {
      echo "asked, and got it after this many of ${#queued[@]} jobs:$turns" >&2
      return 1
    }
    "$2"
    before=$(wc -l <"$log")
    ((before == ${#queued[@]})) || redisson_send turns "$1" "$name"
    after=$before
  done
  echo "# $1: asked, and got it after this many of ${#queued[@]} jobs:$turns" >&3
  for pid in "${queued[@]}"; do wait "$pid"; done
}

redisson_missing() {
  command -v mvn >/dev/null && command -v javac >/dev/null ||
    echo 'not tested: that rlock and Redisson share locks. To test it: apt-get install maven default-jdk-headless'
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
  replies_before[$thread]=$(wc -l <"$driver_dir/out")
  # <> because a plain > would block forever if the driver has died.
  echo "$thread $*" 1<>"$driver_dir/in"
}

redisson_replies() {
  local thread=$BATS_TEST_NUMBER.$1 driver_dir=$BATS_FILE_TMPDIR/jvm${JVM:-1}
  reply=$(tail -n "+$((replies_before[$thread] + 1))" "$driver_dir/out" |
    grep -m 1 "^{\"thread\":\"$thread\",.*\"waited_ms\":[0-9]*}\$")
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

value() {
  redisson "$@" >&2
  reply value
}

redisson_wakes() {
  wait_until redisson_replies "$1"
  woken_since "$2"
  [[ $(reply ok) == true ]]
}
