# Redisson for tests: a Java process that takes commands by a FIFO and appends its replies to a file (README.md).
#
#   redisson_missing               says why it cannot be had here; nothing if it can
#   redisson_start ADDRESS         builds the driver where needed and starts it; once for a test file
#   redisson_stop
#   redisson THREAD COMMAND NAME [ARG ...]
#                                  has Redisson do it; the reply is in $reply; fails if Redisson threw
#   redisson_send THREAD ...       the same without waiting for the reply, for what blocks
#   redisson_replies THREAD        the reply has come; it is in $reply
#   reply FIELD                    a field of the last reply

DRIVER=$TESTS_DIR/interop/driver
declare -gA replies_before

redisson_missing() {
  command -v mvn >/dev/null && command -v javac >/dev/null ||
    echo 'not tested: that rlock and Redisson share locks. To test it: apt-get install maven default-jdk-headless'
}

# Maven needs seconds even if there is nothing to do, so it is asked only after a change.
redisson_build() {
  local built=$DRIVER/target/built log
  [[ $built -nt $DRIVER/pom.xml && $built -nt $DRIVER/src/main/java/Driver.java ]] && return
  log=$BATS_FILE_TMPDIR/maven.log
  mvn -q -B -f "$DRIVER/pom.xml" package >"$log" 2>&1 3>&- || {
    cat "$log" >&2
    return 1
  }
  touch "$built"
}

redisson_start() {
  redisson_build || return
  driver_dir=$BATS_FILE_TMPDIR/driver
  mkdir "$driver_dir"
  mkfifo "$driver_dir/in"
  # Opened for reading and writing: no end of file comes when a test that has sent a command ends.
  java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$DRIVER/target/classes:$DRIVER/target/lib/*" Driver "$1" \
    <>"$driver_dir/in" >"$driver_dir/out" 2>"$driver_dir/err" 3>&- &
  driver_pid=$!
  export driver_dir driver_pid
  WAIT_SECONDS=60 wait_until grep -q '"event":"ready"' "$driver_dir/out" || {
    cat "$driver_dir/err" >&2
    return 1
  }
}

redisson_stop() {
  [[ -n ${driver_pid:-} ]] || return 0
  kill -TERM "$driver_pid" 2>/dev/null || return 0
  wait_until gone "$driver_pid"
}

# Each test has threads of its own: one that a failed test left waiting must not stand in the way of the next.
redisson_send() {
  local thread=$BATS_TEST_NUMBER.$1
  shift
  replies_before[$thread]=$(wc -l <"$driver_dir/out")
  # <> because a plain > would block for ever once the driver has died.
  echo "$thread $*" 1<>"$driver_dir/in"
}

redisson_replies() {
  local thread=$BATS_TEST_NUMBER.$1
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
  python3 -c '
import json, sys
value = json.loads(sys.argv[1])[sys.argv[2]]
print(value if isinstance(value, str) else json.dumps(value))' "$reply" "$1"
}
