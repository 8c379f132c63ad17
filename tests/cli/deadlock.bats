#!/usr/bin/env bats
# Jobs that wait for each other: who notices, who gives up, and who must not.

load ../lib/common

FOREIGN=11111111-2222-3333-4444-555555555555:1

setup() {
  redis_start srv
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  end_mine_wholly "${jobs[@]}"
  for one in "${jobs[@]}"; do wait "$one" || true; done
  assert_clean srv
  redis_stop srv
}

# in_line NAME NUMBER: that many wait.
in_line() { [[ $(redis srv zcard "rlock:queue:{$1}") == "$2" ]]; }
# held NAME [NUMBER]: it is held, by that many readers or in that many slots.
held() { rlock status --json "$1" | python3 -c 'import json, sys; one = json.load(sys.stdin)[0]; sys.exit(one["state"] != "held" or one.get("number_of_holders", 1) < int(sys.argv[1]))' "${2:-1}"; }

# holder ID OUTER...: a job that holds the locks of OUTER, options and names, until it is told what to wait for.
holder() {
  local id=$1
  shift
  mkfifo "go-$id"
  "$RLOCK" run -q "$@" -- bash -c '
    read -ra inner <"go-$0"
    "$RLOCK" run "${inner[@]}" --status-fd 5 -- touch "ran-$0" 2>"err-$0" 5>"events-$0"
    echo $? >"status-$0"
    while [[ -e stay ]]; do sleep 0.02; done' "$id" 3>&- &
  jobs+=($!)
}
# then_wait ID NAME NUMBER INNER...: that job now waits with INNER, for NAME, where NUMBER wait then.
then_wait() {
  local id=$1 name=$2 number=$3
  shift 3
  echo "$@" >"go-$id"
  wait_until in_line "$name" "$number"
}
# circle OPTION...: one holds a and waits for b; two holds b and waits for a, with these options.
circle() {
  holder one a
  holder two b
  wait_until held a
  wait_until held b
  then_wait one b 1 b
  then_wait two a 1 "$@" a
}
ended() { [[ -s status-$1 ]]; }
# the_youngest_gives_up ID OTHER...: ID ends with 75 and says why; the others get their locks.
the_youngest_gives_up() {
  local id=$1
  shift
  wait_until ended "$id"
  [[ $(<"status-$id") == 75 && ! -e ran-$id ]]
  for id; do
    wait_until ended "$id"
    [[ $(<"status-$id") == 0 && -e ran-$id ]]
  done
}
why() { python3 -c 'import json, sys; print(json.loads(open(sys.argv[1]).readlines()[-1]).get("why", "-"))' "events-$1"; }

@test "rlock run a -- rlock run b, beside the reverse: the one that began to wait last ends with 75 and says why" {
  circle
  the_youngest_gives_up two one
  [[ $(grep acquired err-two) == "rlock: a: not acquired: deadlock: you hold b, and pid "*" on $(uname -n) holds a and waits for b; giving up, because you began to wait last" ]]
  [[ $(why two) == "deadlock: you hold b, and pid "*" on $(uname -n) holds a and waits for b" ]]
  grep -q '"result":"not-acquired","status":75,"why":"deadlock' events-two
}

@test "a circle of three, and one of five" {
  local number id next
  for number in 3 5; do
    for id in $(seq "$number"); do holder "$number-$id" "l$id"; done
    for id in $(seq "$number"); do wait_until held "l$id"; done
    for id in $(seq "$number"); do
      next=$((id % number + 1))
      then_wait "$number-$id" "l$next" 1 "l$next"
    done
    the_youngest_gives_up "$number-$number" $(seq -f "$number-%g" $((number - 1)))
    [[ $(why "$number-$number") == "deadlock: you hold l$number, and pid "*" holds l1 and waits for l2, and pid "*" holds l$((number - 1)) and waits for l$number" ]]
  done
}

@test "over two hosts: the message names the other one" {
  needs_uts_namespaces
  mkfifo go-far
  unshare "${uts[@]}" sh -c 'hostname build-2; exec "$@"' - "$RLOCK" run -q b -- bash -c '
    read -r <go-far; "$RLOCK" run a -- touch ran-far; echo $? >status-far' 3>&- &
  jobs+=($!)
  holder near a
  wait_until held a
  wait_until held b
  echo >go-far
  wait_until in_line a 1
  then_wait near b 1 b
  wait_until ended near
  [[ $(<status-near) == 75 && $(<err-near) == *'you hold a, and pid '*' on build-2 holds b and waits for a; '* ]]
  wait_until ended far
  [[ $(<status-far) == 0 ]]
}
needs_uts_namespaces() {
  local as
  for as in '-u' '-U -r -u'; do
    read -ra uts <<<"$as"
    unshare "${uts[@]}" hostname build-2 2>/dev/null && return
  done
  skip 'HOST NAMES CANNOT BE CHANGED HERE: a deadlock over two hosts is not tested'
}

@test "one job with several names, and one that nests" {
  holder nests c
  wait_until held c
  # It holds a and b while it waits for c.
  "$RLOCK" run a b c -- touch ran-several 2>err-several 3>&- &
  jobs+=($!)
  wait_until in_line c 1
  then_wait nests b 1 b
  the_youngest_gives_up nests
  wait_until test -e ran-several
}

@test "a job that holds many locks, with long names: the outermost one counts, too" {
  local names
  mapfile -t names < <(for i in {10..25}; do printf "l$i-%0508d\n" 0; done)
  holder one "${names[@]}"
  holder two z
  wait_until held "${names[15]}"
  wait_until held z
  then_wait one z 1 z
  then_wait two "${names[0]}" 1 "${names[0]}"
  the_youngest_gives_up two one
}

@test "readers: a writer that waits for one of them" {
  holder reader -s data
  wait_until held data
  holder other -s data
  wait_until held data 2
  holder writer log
  wait_until held log
  then_wait writer data 1 -x data
  then_wait reader log 1 log
  wait_until ended reader
  [[ $(<status-reader) == 75 && $(why reader) == *'you hold data, and pid '*' holds log and waits for data' ]]
  echo free >go-other
  wait_until ended writer
  [[ $(<status-writer) == 0 ]]
}

@test "readers: one that waits behind a writer, which waits for the other reader" {
  holder reader -s data
  holder second log
  wait_until held data
  wait_until held log
  "$RLOCK" run -q -x data -- true 3>&- &
  jobs+=($!)
  wait_until in_line data 1
  then_wait second data 2 -s data
  then_wait reader log 1 log
  the_youngest_gives_up reader second
}

@test "a circle through a plain lock, a string and a read-write lock, which rlock acquire closes" {
  holder one a
  holder two --protocol set b
  wait_until held a
  wait_until held b
  then_wait one b 1 --protocol set b
  then_wait two c 0 -x c
  wait_until ended two
  holder three -s c
  wait_until held c
  mkfifo go-four
  "$RLOCK" run -q --protocol set d -- bash -c 'read -r <go-four
    "$RLOCK" acquire -x c --lease 1m 2>err-four; echo $? >status-four' 3>&- &
  jobs+=($!)
  wait_until held d
  then_wait three d 1 --protocol set d
  echo >go-four
  wait_until ended four
  [[ $(<status-four) == 75 && $(<err-four) == *'c: not acquired: deadlock: you hold d, and pid '*' holds c and waits for d; '* ]]
  wait_until ended three
  wait_until ended one
  [[ $(<status-three) == 0 && $(<status-one) == 0 ]]
}

@test "slots: only if all of them are in it" {
  holder one --slots 2 s
  holder two --slots 2 s
  holder lone x
  wait_until held s 2
  wait_until held x
  then_wait lone s 1 --slots 2 s
  then_wait one x 1 -v x
  # The other slot is not in the circle.
  sees_none one
  [[ ! -e status-one && ! -e status-lone ]]
  run -0 rlock status s
  [[ $output != *deadlock* ]]
  then_wait two x 2 x
  wait_until ended two
  [[ $(<status-two) == 75 ]]
  the_youngest_gives_up two lone one
}

@test "slots: one job has all of them, and those who want several count" {
  holder one --slots 2 --take 2 s
  holder two x
  wait_until held s 1
  wait_until held x
  then_wait one x 1 x
  then_wait two s 1 --slots 2 s
  wait_until ended two
  [[ $(<status-two) == 75 ]]
  the_youngest_gives_up two one
}

@test "slots: a job that wants more than the others leave is stuck" {
  holder one --slots 2 s
  holder two x
  wait_until held s 1
  wait_until held x
  then_wait one x 1 x
  then_wait two s 1 --slots 2 --take 2 s
  wait_until ended two
  [[ $(<status-two) == 75 ]]
  the_youngest_gives_up two one
}

@test "slots: a job that waits behind one that wants more, of which a slot is in the circle" {
  holder one --slots 2 s
  holder two x
  wait_until held s 1
  wait_until held x
  "$RLOCK" run -q --slots 2 --take 2 s -- touch ran-big 3>&- &
  jobs+=($!)
  wait_until in_line s 1
  then_wait one x 1 x
  then_wait two s 2 --slots 2 s
  the_youngest_gives_up two one
  wait_until test -e ran-big
}
# sees_none ID: that waiter, which has -v, has looked for a deadlock.
sees_none() { wait_until grep -q ': no deadlock' "err-$1"; }

@test "a holder of another program ends the search" {
  holder one a
  wait_until held a
  redis srv hset b "$FOREIGN" 1 >/dev/null
  redis srv pexpire b 600000 >/dev/null
  then_wait one b 1 -v b
  sees_none one
  [[ ! -e status-one ]]
  redis srv del b >/dev/null
  redis srv publish redisson_lock__channel:{b} 0 >/dev/null
  wait_until ended one
  [[ $(<status-one) == 0 ]]
}

@test "a holder that merely takes long, and a chain that ends, are no deadlock" {
  holder one a
  holder two b
  holder three c
  for name in a b c; do wait_until held "$name"; done
  then_wait one b 1 -v b
  then_wait two c 1 -v c
  sees_none one
  sees_none two
  run -0 rlock status --json a b c
  [[ $output != *'"deadlock"'* ]]
  then_wait three free 0 -v free
  the_youngest_gives_up_nobody one two three
}
the_youngest_gives_up_nobody() {
  for id; do
    wait_until ended "$id"
    [[ $(<"status-$id") == 0 ]]
    [[ $(<"err-$id") != *'deadlock: '* ]]
  done
}

@test "the record of a waiter that was killed is not in a circle" {
  holder one a
  holder two b
  wait_until held a
  wait_until held b
  # The first waiter has guards, which would clear up.
  "$RLOCK" run -q a -- true 3>&- &
  jobs+=($!)
  wait_until in_line a 1
  then_wait two a 2 a
  # Only the rlock that waits dies. Its job keeps b, and its record stays until somebody looks.
  touch stay
  kill -9 "$(rlock status --json a | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["queue"][1]["pid"])')"
  wait_until ended two
  in_line a 2
  then_wait one b 1 -v b
  sees_none one
  [[ ! -e status-one ]]
  rm stay
  wait_until ended one
  [[ $(<status-one) == 0 ]]
}

@test "--deadlock wait: it goes on waiting, and the next youngest gives up" {
  circle --deadlock wait
  the_youngest_gives_up one two
}

@test "the youngest is far back in the queue, where it seldom looks: it gives up before it looks again" {
  holder one a
  holder two b
  wait_until held a
  wait_until held b
  for number in {1..6}; do
    "$RLOCK" run -q a -- true 3>&- &
    jobs+=($!)
    wait_until in_line a "$number"
  done
  then_wait two a 7 -v a
  sees_none two
  local id
  id=$(redis srv zrange 'rlock:queue:{a}' -1 -1)
  redis srv config set slowlog-max-len 100000 slowlog-log-slower-than 0 >/dev/null
  then_wait one b 1 --deadlock wait b
  the_youngest_gives_up two one
  redis srv slowlog get -1 >asked
  grep -qaF "$id" asked
  run -1 grep -aF "rlock:waiters:{a}:$id" asked
}

@test "--deadlock wait of all: all go on waiting, and status, its list, JSON and metrics show it" {
  export RLOCK_DEADLOCK=wait
  circle
  wait_until grep -q 'deadlock: you hold b, and .*; none of them gives up' err-two
  # The older one notices, too, and each says so once.
  wait_until grep -q 'deadlock: you hold a, ' err-one
  run -0 rlock status a
  [[ $output == *$'\nwaiting   1. '*', holds b'* && $output =~ $'\ndeadlock  pid '[0-9]+' on '.*' holds '[ab]' and waits for '[ab]', and pid ' ]]
  run -0 rlock status
  [[ ${lines[1]} =~ ^a\ .*held,\ deadlock && ${lines[2]} =~ ^b\ .*held,\ deadlock ]]
  rlock status --json | python3 -c 'import json, sys
for one in json.load(sys.stdin):
    assert one["deadlock"].startswith("pid "), one
    assert [hold["name"] for hold in one["queue"][0]["holds"]] == ["b" if one["name"] == "a" else "a"], one'
  rlock status --json | python3 "$TESTS_DIR/lib/schema.py" "$TESTS_DIR/../docs/schema/status.json"
  run -0 rlock status --prometheus
  [[ $output == *'rlock_deadlock{name="a"} 1'* && $output == *'rlock_deadlock{name="b"} 1'* ]]
  run -1 rlock doctor
  [[ $output == *'warn  deadlocks '*'pid '*' holds '*' and waits for '* ]]
  [[ ! -e status-one && ! -e status-two && $(grep -c deadlock err-two) == 1 ]]
}

@test "what others write into a waiter's record makes no circle" {
  holder one a
  wait_until held a
  redis srv hset b "$FOREIGN" 1 >/dev/null
  redis srv pexpire b 600000 >/dev/null
  then_wait one b 1 -v b
  redis srv eval "
    redis.call('zadd', KEYS[1], 1, 'x')
    redis.call('hset', KEYS[2], 'x', cmsgpack.pack({version = 2, alive = 2^52, since = 1, lease = '1000', hold = 'h',
      about = {'within', ARGV[1], 'id', 'y', 'listening', '1'}}))" \
    2 'rlock:queue:{a}' 'rlock:waiters:{a}' "$FOREIGN b" >/dev/null
  sees_none one
  rlock status a
  redis srv del b 'rlock:queue:{a}' 'rlock:waiters:{a}' >/dev/null
}

@test "a quorum cannot see who waits: --deadlock end is refused" {
  run -64 --separate-stderr rlock --url "$RLOCK_URL unix:///x unix:///y" run --deadlock end a -- true
  [[ $stderr == *"with several servers you cannot use --deadlock end: "* ]]
}
