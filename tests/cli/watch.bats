# status --watch.

load ../lib/common

setup() {
  redis_start srv
  use_server srv
  export NO_COLOR=1
  rlock run x -- true # it is known from now on
  watcher=
}
teardown() {
  [[ -z $watcher ]] || kill "$watcher" || true
  assert_clean srv
  redis_stop srv
}

watch() {
  "$RLOCK" status --watch "$@" >seen 2>err 3>&- &
  watcher=$!
}
times() { [[ $(grep -c "$1" seen) == "$2" ]]; }

@test "holder and waiters are printed when they change, and only then" {
  watch x
  wait_until times 'state     free' 1
  owner=$(rlock acquire x --lease 1m)
  wait_until times 'state     held' 1
  "$RLOCK" run x -- true 2>/dev/null 3>&- &
  waiter=$!
  wait_until times '^waiting' 1
  let_pass 2500 # two looks
  times 'state     held' 2
  rlock release x --owner "$owner"
  wait "$waiter"
  wait_until times 'state     free' 2
  "$RLOCK" run --min-hold 1m x -- sh -c 'until [ -e end ]; do sleep 0.1; done' 3>&- &
  wait_until times 'state     held' 3
  touch end
  wait_until grep -q 'has ended' seen
  wait "$!"
  rlock force-unlock -y --now x
  not gone "$watcher"
}

@test "a waiter in the queue of RFairLock is a change, too" {
  owner=$(rlock acquire x --lease 1m)
  watch x
  wait_until times 'state     held' 1
  redis srv rpush 'redisson_lock_queue:{x}' 11111111-2222-3333-4444-555555555555:1
  wait_until times 'state     held' 2
  redis srv del 'redisson_lock_queue:{x}'
  rlock release x --owner "$owner"
}

@test "--json: one line each time" {
  watch --json x
  wait_until times '"free"' 1
  owner=$(rlock acquire x --lease 1m)
  wait_until times '"held"' 1
  [[ $(wc -l <seen) == 2 ]]
  python3 -c 'import json; [json.loads(line) for line in open("seen")]'
  rlock release x --owner "$owner"
}

@test "a server that is unreachable for a while is waited for; one that never answered is not" {
  watch x
  wait_until times free 1
  redis_stop srv
  wait_until grep -q 'trying again' err
  redis_start srv
  redis srv hset x java:1 1
  redis srv pexpire x 20000
  wait_until times held 1
  redis srv del x
  run -69 rlock --url unix:///nowhere/s status --watch x
}

@test "a terminal is redrawn, and Ctrl-C ends it, as the end of its reader does" {
  run -130 python3 "$TESTS_DIR/lib/terminal.py" free $'\x03' "$RLOCK" status --watch x
  [[ $output == *$'\e[H\e[2J'*'state     free'* ]]
  # It ends when its reader is gone, even if nothing changes.
  run -0 timeout 20 bash -o pipefail -c '"$0" status --watch x | head -n 2' "$RLOCK"
  [[ ${lines[1]} == *x ]]
}

@test "of several holders the one that has had it longest is shown, and renewals are no change" {
  local reason first='local permit = redis.call("zrange", KEYS[1], 0, 0)[1]; redis.call("zincrby", KEYS[1], 60000, permit)'
  for reason in old young younger; do
    rlock acquire --slots 3 x --lease 10m --reason "$reason"
    let_pass 10 # a time of its own
  done
  watch x
  wait_until times 'slots taken' 1
  for reason in 1 2 3; do
    run -0 rlock status x free
    [[ ${lines[1]} == *' +2 '*' old' ]]
    redis srv eval "$first" 1 '{x}:timeout'
  done
  let_pass 2500 # two looks
  times 'slots taken' 1
}

# Locks a, b with a waiter, and c; with a number, more of them.
locks() {
  local name
  for name in a b c; do rlock acquire "$name" --lease 10m --reason "why $name"; done
  "$RLOCK" run -q b -- true 3>&- &
  watcher=$!
  wait_until queued b 1
  for ((name = 1; name <= ${1:-0}; name++)); do rlock acquire "m$name" --lease 10m; done
}
at_terminal() { SOCKET=$srv_sock timeout -k 1 100 /usr/bin/python3 "$TESTS_DIR/lib/watching.py" "$1"; }

@test "on a terminal it shows what status shows" { locks && at_terminal all_of_them; }
@test "Ctrl-Z and fg; in the background it does not touch the terminal" { locks && at_terminal background; }
@test "narrow terminals, down to one column: no line is wrapped" { locks && at_terminal narrow; }
@test "a terminal of six lines shows the first locks, and how many lines more there are" { locks 5 && at_terminal short; }
@test "the holding time is updated" { rlock acquire a --lease 10m && at_terminal moving; }
@test "colours on a terminal only, and not with NO_COLOR or TERM=dumb" {
  rlock acquire a --lease 10m
  at_terminal colours
  NO_COLOR='' run -0 rlock status a
  [[ $output != *$'\e'* ]]
}
