# Waiting in order, and the options that change it.

load ../lib/server
load ../lib/job

teardown() {
  end_mine_wholly "${waiters[@]}"
  assert_clean srv
}

waiting() { [[ $(redis srv zcard 'rlock:queue:{x}') == "$1" ]]; }
# hold [OPTION ...]: another owner has the lock; sets $owner. let_go releases it.
hold() { owner=$(rlock acquire x --lease 10m); }
let_go() { rlock release x --owner "$owner"; }
# served ORDER: after a release, the waiters have the lock in this order.
served() {
  let_go
  all_done
  order "$1"
}
wait_in_line() { join_line x "$@"; }
order() { [[ $(xargs <log) == "$1" ]]; }

# three_wait: a, b and c. heard_again: each of them is in the queue and listens.
three_wait() {
  hold
  for id in a b c; do wait_in_line $id; done
}
heard_again() {
  local waiter
  for waiter in $(redis srv zrange 'rlock:queue:{x}' 0 -1); do
    [[ $(listeners_on srv "rlock:grant:{x}:$waiter") == 1 ]] || return
  done
  waiting 3
}

@test "first come, first served; a log gets one line, with the place, instead of one for each change" {
  three_wait
  wait_until grep -q 'waiting for x: held by .* (rlock acquire), you are 3rd' err-c
  served 'a b c'
  [[ $(wc -l <err-c) == 1 ]]
}

@test "connections are cut during the wait, or the queue is lost: the order stays" {
  three_wait
  redis srv client kill type pubsub
  redis srv client kill type normal >/dev/null 2>&1 || true
  wait_until heard_again
  served 'a b c'
  rm log
  three_wait
  redis srv del 'rlock:queue:{x}' 'rlock:waiters:{x}'
  # Each is back when it looks, which it does when its connection is cut.
  redis srv client kill type pubsub
  wait_until waiting 3
  served 'a b c'
}

@test "a hand-off takes two commands, plus one of the next waiter, regardless of how many wait" {
  for count in 3 12; do
    hold
    : >log
    for ((id = 1; id <= count; id++)); do
      "$RLOCK" run -q x -- sh -c "echo $id >>log" 3>&- &
      waiters+=($!)
    done
    wait_until waiting "$count"
    redis-cli -s "$srv_sock" monitor >monitor-$count 3>&- &
    local watcher=$!
    wait_until grep -q OK monitor-$count
    let_go
    all_done
    kill_off "$watcher"
    [[ $(wc -l <log) == "$count" ]]
    # Without the commands of scripts, those that start a connection, and those that a Sentinel always sends to its
    # server.
    commands=$(grep -v -e ' lua\]' -e "^OK" monitor-$count |
      grep -cvE '"(CLIENT" "SETNAME|AUTH|INFO|ROLE|PING|PUBLISH" "__sentinel__:hello|ASKING|CLUSTER" "SLOTS)"')
    echo "# $count waiters: $commands commands of clients" >&3
    ((commands <= 3 * count + 2)) # `rlock release` has looked first
  done
}

@test "the first waiter is killed: the next one is not delayed" {
  hold
  wait_in_line a
  wait_in_line b
  dead=$(redis srv zrange 'rlock:queue:{x}' 0 -1)
  "$RLOCK" run x -- sh -c 'echo "$RLOCK_TOKEN" >token' 2>err-c 3>&- &
  waiters+=($!)
  wait_until waiting 3
  kill -9 "$waiter_a" "$waiter_b"
  nobody_listens() { [[ $(listeners_on srv "rlock:grant:{x}:$1") == 0 ]]; }
  for id in $dead; do wait_until nobody_listens "$id"; done
  before=$(server_us srv)
  let_go
  after=$(server_us srv)
  wait "${waiters[2]}"
  # A token is the time of its grant: the release itself has given the lock to the third.
  (($(<token) >= before && $(<token) <= after))
}

@test "the first waiter is stopped: the next one has the lock when the grant runs out, and the first one comes next" {
  hold
  wait_in_line a
  wait_in_line b
  kill -STOP "$waiter_a"
  let_go
  wait "$waiter_b"
  order b
  kill -CONT "$waiter_a"
  all_done
  order 'b a'
}

@test "the holder dies: the first waiter has the lock right after the lease has ended" {
  job_start --lease 6s x -- sleep 1000
  job_parts
  "$RLOCK" run x -- sh -c 'echo "$RLOCK_TOKEN" >token' 2>/dev/null 3>&- &
  waiters=($!)
  wait_until waiting 1
  wait_in_line b
  kill_guards
  # Nobody renews it any longer. A token is the server's time at the grant.
  before=$(server_us srv)
  left=$(($(redis srv pttl x) * 1000))
  after=$(server_us srv)
  ((left > 0))
  all_done
  echo "# granted $((($(<token) - after - left) / 1000)) ms after the end of the lease" >&3
  (($(<token) >= before + left)) # not before its end
  (($(<token) <= after + left + 4000000)) # found out by looking then, not by a look each few seconds
}

@test "seven waiters are killed before the holder's lease ends: the eighth has the lock some seconds later" {
  rlock acquire x --lease 10s
  for waiter in {1..7}; do wait_in_line "$waiter"; done
  "$RLOCK" run x -- sh -c 'echo "$RLOCK_TOKEN" >token' 2>/dev/null 3>&- &
  wait_until waiting 8
  kill -KILL "${waiters[@]}"
  waiters=($!)
  before=$(server_us srv)
  left=$(redis srv pttl x)
  all_done
  local later=$((($(<token) - before) / 1000 - left))
  echo "# granted $later ms after the end of the lease" >&3
  # Each dead waiter costs at most a second. If each were given the lock for five seconds, it would be 35 s.
  ((later >= 0 && later <= 20000)) && [[ ! -e log ]]
}

@test "--min-hold: the first waiter gets the lock afterwards" {
  "$RLOCK" run --lease 10m --min-hold 700ms x -- sh -c 'echo up >>log; while [ ! -e go ]; do sleep 0.1; done' 3>&- &
  waiters=($!)
  wait_until test -s log
  wait_in_line a
  touch go
  all_done
  order 'up a'
}

@test "a waiter that gives up leaves the queue at once: by -w, by TERM" {
  hold
  run -75 rlock run -w 300ms x -- true
  waiting 0
  wait_in_line a
  kill "$waiter_a"
  exits "$waiter_a" 143
  waiting 0
  [[ $(redis srv exists 'rlock:waiters:{x}') == 0 ]]
  waiters=()
  let_go
}

@test "--max-queue: busy at once if the queue is full" {
  hold
  tells 75 '0 are already waiting' rlock run --max-queue 0 x -- true
  wait_in_line a --max-queue 1
  tells 75 '1 are already waiting, which is the limit of --max-queue' rlock run --max-queue 1 x -- true
  let_go
  all_done
  run -0 rlock run --max-queue 0 x -- true
}

@test "--replace-waiting: the newest takes the place of the one before, which exits with 75 and says who replaced it" {
  hold
  wait_in_line a --replace-waiting
  wait_in_line b
  "$RLOCK" run --replace-waiting x -- sh -c 'echo c >>log' 3>&- &
  waiters+=($!)
  local got=0
  wait "$waiter_a" || got=$?
  [[ $got == 75 ]]
  grep -q 'not acquired: replaced in the queue by .*@.* pid' err-a
  let_go
  wait "${waiters[1]}" "${waiters[2]}"
  order 'c b'
}

@test "a waiter that one with a higher priority has overtaken stops listening for releases, until it is the first again" {
  hold
  wait_in_line a
  wait_until channels 2
  wait_in_line b --priority 10
  wait_until channels '1 2'
  served 'b a'
  # Among the others of its priority, a waiter is the last.
  rm log
  hold
  wait_in_line a
  wait_in_line b --priority 10
  wait_in_line c --priority -1
  wait_in_line d --priority 10
  served 'b d a c'
}
# The numbers of channels on which the waiters listen, in the order of their arrival.
channels() { [[ $(redis srv client list | grep " name=rlock" | grep -o " s*sub=[1-9]" | cut -d = -f 2 | xargs) == "$1" ]]; }

@test "--supersede: the holder is asked to stop, and the lock is ours when it has" {
  job_start x -- bash -c 'trap "sleep 0.3; echo stopped >>log; exit" TERM; echo up >>log; while :; do sleep 0.05; done'
  wait_until test -s log
  run -0 --separate-stderr rlock run --supersede --reason "r 2" x -- sh -c 'echo ran >>log'
  order 'up stopped ran'
  job_status 74 'asked to give up the lock by'
  assert_says "(--supersede, reason 'r 2')"
}

@test "--supersede: a holder that cannot be asked is waited for, with a message" {
  hold
  "$RLOCK" run --supersede x -- sh -c 'echo ran >>log' 2>err 3>&- &
  waiters=($!)
  wait_until grep -q 'cannot be asked to stop; waiting until it releases' err
  served ran
}

@test "status shows the waiters in order" {
  hold
  wait_in_line a --reason 'release 1'
  wait_in_line b
  run -0 rlock status x
  [[ $output == *"waiting   1. $(id -un)@"*'(sh): release 1'*' 2. '* ]]
  run -0 rlock status
  [[ ${lines[0]} == *WAITING* && ${lines[1]} =~ \ 2\  ]]
  let_go
  all_done
}
