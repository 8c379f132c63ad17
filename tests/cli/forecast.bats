# How long a wait will probably take, judging by the last holds in the lock's history.

load ../lib/common
load ../lib/quorum

setup() {
  redis_start srv
  use_server srv
}
teardown() {
  end_mine_wholly "${job:-}"
  [[ -z ${job:-} ]] || wait "$job" || true
  redis_stop srv
}

spans() { redis srv hget "rlock:totals:{$1}" lasted; }
# lasted NAME MS...: as releases have left it.
lasted() {
  local name=$1
  shift
  redis srv hset "rlock:totals:{$name}" lasted "$*" >/dev/null
}
# hold NAME: a job with a history holds the lock.
hold() {
  "$RLOCK" run --history "$@" -- sleep 1000 3>&- &
  job=$!
  wait_until rlock status --is-held "$1"
}
field() { rlock status --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)[0].get("forecast", {}).get(sys.argv[1], "-"))' "$2"; }

@test "a release remembers how long the hold lasted, of the last twenty, the newest first" {
  for i in $(seq 22); do rlock run --history a -- true; done
  rlock run --history a -- sleep 0.5
  read -ra all <<<"$(spans a)"
  ((${#all[@]} == 20 && all[0] >= 500 && all[1] < all[0]))
  (($(redis srv pttl 'rlock:totals:{a}') > 2500000000))
  [[ ${all[0]} == "$(rlock history --json --limit 1 a | python3 -c 'import json, sys; print(json.load(sys.stdin)[0]["held_ms"])')" ]]
}

@test "without --history nothing is remembered; --min-hold counts; a hold that was taken away does not" {
  rlock run a -- true
  [[ $(redis srv exists 'rlock:totals:{a}') == 0 ]]
  rlock run --history --min-hold 1h a -- true
  (($(spans a) > 3500000 && $(spans a) <= 3600100))
  rlock force-unlock --yes --now a
  hold a
  tells 0 'a: free; its command may still run until rlock notices' rlock force-unlock --yes --now --history a
  wait "$job" || true
  [[ $(spans a) != *' '* ]]
}

@test "a release that is sent again after a lost reply counts once" {
  know_scripts srv
  python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$srv_sock" "$PWD/passed" 'rlock release' 2 3>&- &
  job=$!
  wait_until test -S p
  rlock --url "unix://$PWD/p" run --history a -- true
  [[ $(grep -c 'rlock release' passed) == 3 && $(spans a) != *' '* && $(spans a) != '' ]]
}

@test "four holds are not enough, five are" {
  hold a
  lasted a 60000 60000 60000 60000
  [[ $(field a holds) == - ]]
  run -0 rlock status a
  [[ $output != *forecast* ]]
  lasted a 60000 60000 60000 60000 60000
  [[ $(field a holds) == 5 && $(field a median_ms) == 60000 && $(field a p90_ms) == 60000 ]]
  tells 0 'forecast  usually 1m00s each (median of the last 5): about ' rlock status a
}

@test "a waiter says how long it may take: three in front, four minutes each, of which the job has used two" {
  local i waiters=()
  lasted a 240000 240000 240000 240000 240000 240000
  hold a
  # As if it had begun two minutes ago.
  redis srv hset 'rlock:holder:{a}' since "$(($(date +%s%3N) - 120000))" >/dev/null
  for i in 1 2 3; do
    "$RLOCK" run a -- true 2>/dev/null 3>&- &
    waiters+=($!)
    wait_until queued a "$i"
  done
  "$RLOCK" run --status-fd 5 a -- true 2>err 5>events 3>&- &
  waiters+=($!)
  wait_until grep -q forecast events
  wait_until grep -q . err
  [[ $(<err) == *', you are 4th; usually 4m00s each (median of the last 6): about 1'[34]'m'* ]]
  wait=$(python3 -c 'import json; print(json.loads(open("events").readline())["forecast"]["wait_ms"])')
  ((wait > 780000 && wait <= 840000))
  (($(field a wait_ms) > 1020000 && $(field a wait_ms) <= 1080000))
  tells 0 'rlock_expected_wait_seconds{name="a"} 1' rlock status --prometheus a
  end_mine_wholly "${waiters[@]}"
}

@test "-v adds how long most of them took; a job that takes longer than all of them has no forecast" {
  lasted a 100 200 300 400 500 600 700 800 900 100000
  hold a
  redis srv hset 'rlock:holder:{a}' since "$(($(date +%s%3N) - 1000))" >/dev/null
  tells 0 'usually 0.5s each (median of the last 10, 9 of 10 took at most 0.9s): about 1m' rlock status -v a
  redis srv hset 'rlock:holder:{a}' since 1000 >/dev/null
  tells 0 '(median of the last 10); this one already takes longer than the last 10' rlock status a
  [[ $(field a wait_ms) == None ]]
}

@test "a quorum knows what is usual, but not how many wait" {
  quorum_start 3
  for i in 1 2 3 4 5; do rlock run --history a -- true; done
  hold a
  run -75 --separate-stderr rlock run -v -w 1s a -- true
  [[ $stderr == *'; usually 0.0s each (median of the last 5, 9 of 10 took at most '* && $stderr != *': about '* ]]
  [[ $(field a holds) == 5 && $(field a wait_ms) == None ]]
  end_mine_wholly "$job"
  job=
  quorum_stop
}

@test "what another program has left there is ignored" {
  hold a
  redis srv set 'rlock:totals:{a}' text >/dev/null
  [[ $(field a holds) == - ]]
  redis srv del 'rlock:totals:{a}' >/dev/null
  redis srv hset 'rlock:totals:{b}' lasted "$(printf '7 %.0s' {1..300})" >/dev/null
  rlock run --history b -- true
  read -ra all <<<"$(spans b)"
  ((${#all[@]} == 20))
}
