# The messages of a waiter, and when they are shown.

load ../lib/common

setup() {
  redis_start srv --appendonly yes
  use_server srv
}
teardown() {
  redis_thaw srv
  end_mine_wholly "${waiter:-}"
  assert_clean srv
  redis_stop srv
}

# wait_for_x ID NUMBER OPTION...: a waiter for x, the NUMBER-th in the queue; its messages go to err-ID.
wait_for_x() {
  local id=$1 number=$2
  shift 2
  "$RLOCK" run "$@" --status-fd 5 x -- true >/dev/null 2>"err-$id" 5>"events-$id" 3>&- &
  waiter=$!
  wait_until queued x "$number"
}

# waited ID: how long it waited, in milliseconds, by its own record.
waited() { sed -n 's/.*"event":"acquired".*"waited_ms":\([0-9]*\).*/\1/p' "events-$1"; }

@test "without a terminal a short wait is silent" {
  local owner i short=0
  for i in 1 2 3; do
    owner=$(rlock acquire x --lease 1h)
    wait_for_x "$i" 1
    rlock release x --owner "$owner"
    wait "$waiter"
    (($(waited "$i") < 2000)) || continue # the machine was busy
    [[ ! -s err-$i ]]
    short=$((short + 1))
  done
  ((short > 0))
}

@test "without a terminal there is one line after two seconds, regardless of the queue" {
  owner=$(rlock acquire x --lease 1h --reason 'release 1.4')
  wait_for_x first 1
  first=$waiter
  began=$(now_ms)
  wait_for_x second 2
  wait_until grep -q . err-second
  past 2000
  [[ $(<err-second) == "rlock: waiting for x: held by $(id -un)@"*", reason 'release 1.4', you are 2nd" ]]
  wait_until grep -q . err-first
  # The time is that of the moment when it is shown.
  (($(sed -nE 's/.* for ([0-9]+)s \(.*/\1/p' err-first) >= 2))
  rlock release x --owner "$owner"
  wait "$first" "$waiter"
  # Not again when it moved up.
  [[ $(wc -l <err-first) == 1 && $(wc -l <err-second) == 1 ]]
}

@test "on a terminal the line appears at once; a refused job is shown the holder's reason, escaped" {
  owner=$(rlock acquire x --lease 1h --reason $'it\e[2J')
  tells 75 "not acquired: held by" rlock run -n x -- true
  assert_says "reason 'it\\x1b[2J'"
  rlock release x --owner "$owner"
  rlock acquire x --lease 1h --reason 'release 1.4'
  # It is ended right after the message, and has recorded that it did not wait a second for it.
  run -143 python3 "$TESTS_DIR/lib/terminal.py" "reason 'release 1.4'" SIGTERM "$RLOCK" run -w 1900ms x -- true
  rlock force-unlock -y x
}

@test "a waiter whose server becomes unreachable says so once, also that it is back, and gets the lock" {
  owner=$(rlock acquire x --lease 1h)
  wait_for_x a 1 --server-timeout 300ms
  for round in 1 2; do
    redis_kill9 srv
    said() { [[ $(grep -c "$1" err-a) == "$2" ]]; }
    wait_until said 'still waiting' "$round"
    [[ $(grep 'still waiting' err-a) == "rlock: warning: x: ${RLOCK_URL%%//*}//"*"still waiting, for "* ]]
    redis_start srv --appendonly yes
    wait_until said ': the server answers again' "$round"
  done
  rlock release x --owner "$owner"
  wait "$waiter"
  said 'still waiting' 2
}

@test "the same for a waiter for the second of two locks" {
  owner=$(rlock acquire x --lease 1h)
  "$RLOCK" run --server-timeout 300ms w x -- true >/dev/null 2>err-a 3>&- &
  waiter=$!
  wait_until queued x 1
  redis_freeze srv
  wait_until grep -q 'x: .*still waiting' err-a
  redis_thaw srv
  wait_until grep -q 'x: the server answers again' err-a
  rlock release x --owner "$owner"
  wait "$waiter"
}

@test "a server that stays unreachable: the waiter exits with 69 once its place is lost" {
  rlock acquire x --lease 1h
  wait_for_x a 1 --server-timeout 300ms --lease 2s
  redis_kill9 srv
  exits "$waiter" 69
  grep -q 'still waiting' err-a
  redis_start srv --appendonly yes
  redis srv flushall
}

@test "a server that hangs makes a wait longer by one exchange, and by the half second to give it up" {
  redis_freeze srv
  began=$(now_ms)
  # The second exchange begins before the limit, and ends after it; a third one would take until 9500.
  run -69 rlock run -w 4s --server-timeout 3s x -- true
  (($(now_ms) < began + 9000))
}

@test "slots that are free, but kept for a job that waits for more of them: -n says so" {
  owner=$(rlock acquire --from a,b,c x --lease 1h)
  wait_for_x big 1 --from a,b,c --take 3
  tells 75 '; 2 of 3 slots are free, but a job that waits in front wants 3' rlock run -n --from a,b,c x -- true
  run -75 --separate-stderr rlock run -n --from a,b,c --take 3 x -- true
  [[ $stderr == 'rlock: x: not acquired: held by '* && $stderr != *' slots '* ]]
  rlock release x --owner "$owner"
  wait "$waiter"
}
