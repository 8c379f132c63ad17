#!/usr/bin/env bats
# rlock history, and --history of jobs.

load ../lib/common

setup() {
  redis_start srv
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL RLOCK_HISTORY=true
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { redis_stop srv; }

# holds [ARG...]: the output of rlock history --json as Python values, one per line, with the fields in $FIELDS.
holds() {
  rlock history --json "$@" | python3 -c '
import json, os, sys
for hold in json.load(sys.stdin):
    print(*[hold.get(field, "-") for field in os.environ["FIELDS"].split()])'
}
entries() { redis srv xlen "rlock:history:{$1}"; }
total() { redis srv hget "rlock:totals:{$1}" "$2"; }
# entry NAME FIELD VALUE...: an entry as another program may write it.
entry() {
  local name=$1
  shift
  redis srv xadd "rlock:history:{$name}" '*' "$@" >/dev/null
}

@test "a hold is recorded with who, how long, and the command's result; none without --history" {
  rlock run --reason 'release 1.4' a -- true
  run -3 rlock run a -- sh -c 'exit 3'
  run -137 rlock run a -- sh -c 'kill -9 $$'
  RLOCK_HISTORY=false rlock run a -- true
  RLOCK_HISTORY=false rlock run b -- true
  FIELDS='result status signal outcome fine lost' run -0 holds
  [[ $output == $'signalled - 9 released False False\nexited 3 - released False False\nexited 0 - released True False' ]]
  FIELDS='user host command reason name kind' run -0 holds --limit 3 a
  [[ ${lines[2]} == "$(id -un) $(uname -n) true release 1.4 a plain lock" ]]
  [[ $(redis srv exists 'rlock:history:{b}') == 0 ]]
  (($(redis srv pttl 'rlock:history:{a}') > 2500000000))
  run -0 --separate-stderr rlock history
  [[ ${lines[0]} =~ ^ENDED\ +NAME\ +HELD\ +WAITED\ +RESULT\ +HOLDER\ +PID\ +COMMAND\ +REASON$ && ${#lines[@]} == 4 ]]
  [[ ${lines[1]} == *SIGKILL* && ${lines[2]} == *'exit 3'* && ${lines[3]} == *'release 1.4' && -z $stderr ]]
}

@test "the entry names the processes that the command left behind and that were ended" {
  run -0 rlock run a -- bash -c 'setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $! >pid
    until [[ $(readlink "/proc/$!/exe") == */sleep ]]; do sleep 0.02; done'
  rlock run a -- true
  FIELDS='result status fine leftovers' run -0 holds
  [[ $output == $'exited 0 True -\nexited 0 True '"sleep (pid $(<pid))" ]]
  run -0 rlock history
  [[ ${lines[2]} == *" ok; left sleep (pid $(<pid)) "* && ${lines[1]} != *left* ]]
  # An entry of another program.
  entry a outcome released end exited value 0 leftovers $'\033[31mx'
  run -0 rlock history --limit 1
  [[ $output == *'ok; left \x1b[31mx '* ]]
}

@test "how long it waited and was held" {
  local owner began waiter
  owner=$(RLOCK_HISTORY=false rlock acquire a --lease 1m)
  "$RLOCK" run -q a -- sleep 0.3 3>&- &
  waiter=$!
  waits() { [[ $(redis srv zcard 'rlock:queue:{a}') == 1 ]]; }
  wait_until waits
  began=$(now_ms)
  wait_until past 300
  RLOCK_HISTORY=false rlock release a --owner "$owner"
  wait "$waiter"
  FIELDS='held_ms waited_ms' run -0 holds
  read -r held waited <<<"$output"
  ((held >= 300 && held < 60000 && waited >= 300 && waited < 60000))
}

@test "release by hand, by a keeper, and with --min-hold; a second release writes nothing" {
  local owner
  owner=$(rlock acquire a --lease 1m --reason hand)
  rlock release a --owner "$owner"
  run -76 rlock release a --owner "$owner"
  [[ $(entries a) == 1 && -z $(total a losses) ]]
  sleep 600 3>&- &
  local process=$!
  rlock acquire k --for-pid "$process" >owner
  kill "$process"
  written() { [[ $(entries k) == 1 ]]; }
  wait_until written
  rlock run --min-hold 1m m -- true
  FIELDS='name outcome result reason fine' run -0 holds
  [[ $(sort <<<"$output") == $'a released released hand True\nk released released  True\nm kept exited  True' ]]
  # A hold that was released on request is no loss.
  sleep 600 3>&- &
  process=$!
  owner=$(rlock acquire k --for-pid "$process")
  listens() { [[ $(listeners_on srv 'rlock:control:{k}') == 1 ]]; }
  wait_until listens
  rlock release k --owner "$owner"
  nobody_keeps_it() { ! redis srv client list | grep -q name=rlock:k; }
  wait_until nobody_keeps_it
  kill "$process"
  [[ -z $(total k losses) ]]
}

@test "a hold that was taken away, and one that was lost, with the reason; the reader sees one entry for each" {
  rlock acquire f --lease 1m --reason mine
  rlock force-unlock -y f
  FIELDS='outcome taken_away_by reason lost' run -0 holds f
  [[ $output == "forced $(id -un)@$(uname -n) (rlock force-unlock) mine False" && $(total f forced) == 1 ]]
  run -74 rlock run --lease 5s l -- sh -c "redis-cli -s $srv_sock del l >/dev/null; sleep 600"
  FIELDS='outcome result lost' run -0 holds l
  [[ $output == 'gone lost True' && $(total l losses) == 1 ]]
  run -74 rlock run --lease 5s t -- sh -c "'$RLOCK' force-unlock -y --now t >/dev/null; sleep 600"
  FIELDS='outcome result lost' run -0 holds t
  [[ $output == 'forced lost True' && $(entries t) == 2 && $(total t forced) == 1 && -z $(total t losses) ]]
  run -74 rlock run e -- sh -c "redis-cli -s $srv_sock del e >/dev/null"
  FIELDS='outcome result status' run -0 holds e
  [[ $output == 'gone exited 0' ]]
  run -0 rlock history
  [[ $output == *'taken away by '* && $output == *' lost: the lock is lost'* ]]
}

@test "a hold given up on request is taken away, not lost: of a job and of a keeper" {
  local who process
  who="$(id -un)@$(uname -n)"
  "$RLOCK" run d -- sleep 600 3>&- &
  process=$!
  wait_until rlock status --is-held d
  rlock run --supersede d -- true
  wait_until gone "$process" # only then does a subshell know its status
  run -74 wait "$process"
  FIELDS='outcome taken_away_by result lost fine' run -0 holds --failed d
  [[ $output == "forced $who (--supersede) lost True False" ]]
  [[ $(total d forced) == 1 && -z $(total d losses) ]]
  run -74 rlock run e -- sh -c "'$RLOCK' force-unlock -y e >/dev/null; sleep 600"
  FIELDS='outcome taken_away_by why' run -0 holds e
  [[ $output == "forced $who (rlock force-unlock) -" && $(total e forced) == 1 && -z $(total e losses) ]]
  run -0 rlock history e
  [[ $output == *"taken away by $who (rlock force-unlock)"* && $output != *lost* ]]
  sleep 600 3>&- &
  process=$!
  rlock acquire k --for-pid "$process" >owner
  rlock force-unlock -y k
  kill "$process"
  FIELDS='outcome taken_away_by' run -0 holds k
  [[ $output == "forced $who (rlock force-unlock)" && $(total k forced) == 1 && -z $(total k losses) ]]
}

@test "a lock that somebody asked for and that is gone before the release is taken away; one that was deleted without asking is lost" {
  run -74 rlock run a -- sh -c "trap 'redis-cli -s $srv_sock del a >/dev/null; exit' TERM
    '$RLOCK' force-unlock -y a >/dev/null & while :; do sleep 0.1; done"
  FIELDS='outcome taken_away_by' run -0 holds a
  [[ $output == "gone $(id -un)@$(uname -n) (rlock force-unlock)" && $(total a forced) == 1 && -z $(total a losses) ]]
  run -0 rlock history a
  [[ $output == *'taken away by '* ]]
  run -74 rlock run --lease 5s b -- sh -c "redis-cli -s $srv_sock del b >/dev/null; sleep 600"
  FIELDS='outcome result' run -0 holds b
  [[ $output == 'gone lost' && $(total b losses) == 1 && -z $(total b forced) ]]
}

@test "force-unlock --now: the holder is told who has taken its lock, and its history has it, even if only the holder records it" {
  local who
  who="$(id -un)@$(uname -n)"
  run -74 --separate-stderr rlock run --lease 5s a -- sh -c "RLOCK_HISTORY=false '$RLOCK' force-unlock -y --now a >/dev/null; sleep 600"
  [[ $stderr == *"a: the lock is lost: $who (rlock force-unlock) has taken it away"* ]]
  FIELDS='outcome taken_away_by' run -0 holds a
  [[ $output == "forced $who (rlock force-unlock)" && $(total a forced) == 1 && -z $(total a losses) ]]
  # Its release notices it, and nobody records it.
  RLOCK_HISTORY=false run -74 --separate-stderr rlock run b -- sh -c "'$RLOCK' force-unlock -y --now b >/dev/null"
  [[ $stderr == *"b: $who (rlock force-unlock) has taken the lock away while the command ran"* && -z $(total b forced) ]]
}

@test "only the lost one of several locks counts as lost, for a job and for a keeper" {
  local process
  run -74 rlock run --lease 5s x y -- sh -c "redis-cli -s $srv_sock del x >/dev/null; sleep 600"
  FIELDS='name outcome result lost why' run -0 holds x y
  [[ $output == *'x gone lost True the lock is lost: '* && $output == *'y released stopped False x: the lock is lost: '* ]]
  [[ $(total x losses) == 1 && -z $(total y losses) ]]
  run -0 rlock history y
  [[ $output == *' stopped: x: the lock is lost: '* ]]
  run -0 rlock status --prometheus
  [[ $output == *'rlock_last_status{name="x"} 74'* && $output == *'rlock_last_status{name="y"} 74'* ]]
  sleep 600 3>&- &
  process=$!
  rlock acquire v w --for-pid "$process" --lease 5s
  redis srv del v
  written() { [[ $(entries v) == 1 && $(entries w) == 1 ]]; }
  wait_until written
  kill "$process"
  FIELDS='name outcome result lost' run -0 holds v w
  [[ $(sort <<<"$output") == $'v gone lost True\nw released stopped False' && -z $(total w losses) ]]
}

@test "a job that did not get the lock is counted, but is not a hold" {
  rlock acquire a --lease 1m
  run -75 rlock run -n a -- true
  run -75 rlock run --wait 100ms a -- true
  [[ $(total a skips) == 2 && $(entries a) == 0 ]]
  (($(redis srv pttl 'rlock:totals:{a}') > 2500000000))
}

@test "--failed, --since, --limit and names" {
  local i
  rlock run a -- true
  run -1 rlock run a -- false
  rlock run b -- true
  entry old outcome released owner x end exited value 0
  redis srv del 'rlock:history:{old}'
  redis srv xadd 'rlock:history:{old}' 1000000000000-0 outcome released owner x end exited value 0
  FIELDS='name status' run -0 holds --failed
  [[ $output == 'a 1' ]]
  FIELDS=name run -0 holds --since 1h
  [[ $output == $'b\na\na' ]]
  FIELDS='name ended' run -0 holds --since 2001-09-09 old
  [[ $output == 'old 2001-09-09T01:46:40Z' ]]
  FIELDS=name run -0 holds --since 2001-09-09T01:46:41Z old
  [[ -z $output ]]
  FIELDS=name run -0 holds --limit 1 a
  [[ $output == a ]]
  for i in 'tomorrow' '2026-02-31' '20260101' ''; do
    run -64 --separate-stderr rlock history --since "$i"
    [[ $stderr == *'is not a date'* ]]
  done
  run -64 rlock history --limit 0
  run -0 --separate-stderr rlock history nothing
  [[ $output == 'no holds are recorded here; '* ]]
  run -0 --separate-stderr rlock history --failed b
  [[ $output == 'no such holds are recorded here' ]]
  run -0 --separate-stderr rlock history --since 1h old
  [[ $output == 'no such holds are recorded here' ]]
}

@test "a hold that was taken away is no loss, regardless of how many releases come before its owner notices" {
  local status=0 job i
  "$RLOCK" run -s --lease 6s rd -- sh -c 'echo "$RLOCK_OWNER" >reader; sleep 600' 2>/dev/null 3>&- &
  job=$!
  wait_until test -s reader
  rlock force-unlock -y --now --owner "$(<reader)" rd
  for ((i = 0; i < 12; i++)); do rlock run -s rd -- true; done
  wait "$job" || status=$?
  [[ $status == 74 && $(total rd forced) == 1 && -z $(total rd losses) ]]
}

@test "a user without the right to TIME can release, and the hold is recorded" {
  local owner
  redis srv acl setuser untimed on '>pass' '~*' '&*' +@all -time >/dev/null
  owner=$(rlock acquire t --lease 1m)
  RLOCK_PASSWORD=pass run -0 --separate-stderr rlock --url "unix://untimed@$srv_sock" release t --owner "$owner"
  [[ -z $stderr ]]
  FIELDS='outcome' run -0 holds t
  [[ $output == released && $(redis srv exists t) == 0 ]]
}

@test "other kinds of locks: readers, slots, strings; several names" {
  rlock run -s r -- true
  rlock run --slots 2 s -- true
  rlock run --protocol set p -- true
  rlock run x y -- true
  FIELDS='name kind result' run -0 holds
  [[ $(sort <<<"$output") == $'p string lock exited\nr read-write lock exited\ns semaphore exited\nx plain lock exited\ny plain lock exited' ]] || {
    sort <<<"$output"
    false
  }
}

@test "a nested hold has no entry of its own" {
  rlock run a -- "$RLOCK" run a -- true
  [[ $(entries a) == 1 ]]
}

@test "entries of others are escaped, cut, or ignored" {
  entry p outcome released owner $'o\e[2J' host $'h\r\n' user $'\x9b' command '<script>' end exited value 99999999999999999999
  entry p outcome nonsense owner y
  entry p nothing at all here
  entry p outcome released owner z held -5 waited 999999999999999999 end "$(head -c 100000 /dev/zero | tr '\0' e)"
  run -0 --separate-stderr rlock history p
  [[ ${#lines[@]} == 3 && $output != *$'\e'* && $output != *$'\r'* && $stderr == *'2 entries were not written by rlock'* ]]
  run -0 rlock history --json p
  redis srv set 'rlock:history:{s}' text
  run -0 --separate-stderr rlock history s
  [[ $stderr == *'is not a stream; delete it'* ]]
  # It does not prevent a release.
  run -0 --separate-stderr rlock run s -- true
  [[ $stderr == *'released, but the history could not be written: WRONGTYPE'* ]]
  run -1 rlock status --is-held s
}

@test "a user without the right to the histories can release and force-unlock, with a warning" {
  not_over acl tls cluster 'the user is one of the test, with a password'
  local owner what=' history could not be written: '
  redis srv acl setuser few reset on '>pw' '~?' '~{*' '~rlock:holder:*' '~rlock:hold:*' '~rlock:queue:*' '~rlock:waiters:*' \
    '~redisson_lock_*' '&*' +@all >/dev/null
  (umask 077 && printf pw >password)
  export RLOCK_URL="unix://few@$srv_sock" RLOCK_PASSWORD_FILE=$PWD/password
  run -0 --separate-stderr rlock run a -- true
  [[ $stderr == *"released, but the$what"* && $(redis srv exists a) == 0 ]]
  run -0 --separate-stderr rlock run --protocol set b -- true
  [[ $stderr == *"released, but the$what"* && $(redis srv exists b) == 0 ]]
  owner=$(rlock acquire a --lease 1m)
  run -0 --separate-stderr rlock release a --owner "$owner"
  [[ $stderr == *"released, but the$what"* && $(redis srv exists a) == 0 ]]
  rlock acquire a --lease 1m
  run -0 --separate-stderr rlock force-unlock -y --now a
  [[ $stderr == *"a: the$what"* && $(redis srv exists a) == 0 ]]
  owner=$(rlock acquire a --lease 1m)
  run -75 --separate-stderr rlock run -n a -- true
  rlock release a --owner "$owner"
}

@test "if the totals are refused, the history is still written" {
  redis srv set 'rlock:totals:{f}' text >/dev/null
  rlock acquire f --lease 1m
  run -0 --separate-stderr rlock force-unlock -y --now f
  [[ $stderr == *'the history could not be written: WRONGTYPE'* && $(entries f) == 1 ]]
}

@test "long entries are read in small pages" {
  redis srv eval 'for i = 1, 100 do redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", i, "why", string.rep("t", 30000)) end' \
    1 'rlock:history:{long}' >/dev/null
  FIELDS=owner run -0 holds --limit 100 long
  [[ ${#lines[@]} == 100 && ${lines[0]} == 100 && ${lines[99]} == 1 ]]
}

@test "entries larger than a page are read one by one; one larger than a reply ends that history only" {
  redis srv eval 'for i = 1, 30 do redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", i, "why", string.rep("t", 60000)) end' \
    1 'rlock:history:{long}' >/dev/null
  FIELDS=owner run -0 --separate-stderr holds long
  [[ ${#lines[@]} == 30 && ${lines[29]} == 1 && -z $stderr ]]
  entry poisoned outcome released owner old
  redis srv eval 'redis.call("xadd", KEYS[1], "*", "outcome", "released", "why", string.rep("t", 5000000))
    redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", "new")' 1 'rlock:history:{poisoned}' >/dev/null
  redis srv eval 'redis.call("hset", KEYS[1], "losses", string.rep("t", 5000000))' 1 'rlock:totals:{poisoned}' >/dev/null
  rlock run fine -- true
  FIELDS='name owner' run -0 --separate-stderr holds
  [[ $output == *$'\npoisoned new\n'* && $output == fine* && ${#lines[@]} == 32 ]]
  [[ $stderr == *'poisoned: its history: it cannot be read from here on: '* ]]
  FIELDS=owner run -0 --separate-stderr holds poisoned
  [[ $output == new && -n $stderr ]]
  redis srv xtrim 'rlock:history:{poisoned}' maxlen 2 >/dev/null
  run -0 --separate-stderr rlock status --prometheus
  [[ $output == *'rlock_last_status{name="fine"} 0'* && $stderr == *'poisoned: its totals cannot be read: '* ]]
}

@test "locks that are queried together with a poisoned one are read without a warning" {
  local i
  for i in a b y z; do rlock run "$i" -- true; done
  redis srv eval 'redis.call("xadd", KEYS[1], "*", "outcome", "released", "why", string.rep("t", 5000000))' 1 \
    'rlock:history:{poisoned}' >/dev/null
  redis srv eval 'redis.call("hset", KEYS[1], "losses", string.rep("t", 5000000))' 1 'rlock:totals:{m}' >/dev/null
  FIELDS=name run -0 --separate-stderr holds --limit 1
  [[ $output == z && $stderr == *'poisoned: its history: it cannot be read from here on: '* && ${#stderr_lines[@]} == 1 ]]
  run -0 --separate-stderr rlock status --prometheus
  for i in a b y z; do [[ $output == *"rlock_last_status{name=\"$i\"} 0"* ]]; done
  [[ $(grep -c 'm: its totals cannot be read: ' <<<"$stderr") == 1 && $stderr != *' y: '* && $stderr != *' z: '* ]]
}

@test "more locks than are queried together, with more holds than a page" {
  redis srv eval 'for i = 1, 250 do
    for j = 1, 3 do redis.call("xadd", "rlock:history:{n" .. i .. "}", "*", "outcome", "released", "owner", i .. "-" .. j) end
  end' 0 >/dev/null
  FIELDS=owner run -0 --separate-stderr holds --limit 1000
  [[ ${#lines[@]} == 750 && $(sort -u <<<"$output" | wc -l) == 750 && -z $stderr ]]
  FIELDS=owner run -0 holds --limit 2
  [[ ${#lines[@]} == 2 ]]
}

@test "holds by one owner of another program stay separate; a limit counts holds, and splits none" {
  local i owner=8743c9c0-0795-4907-87fd-6c719a6b4586:1
  for i in 1 2 3; do
    redis srv hset f "$owner" 1 >/dev/null
    redis srv pexpire f 60000 >/dev/null
    rlock force-unlock -y f
  done
  FIELDS=outcome run -0 holds f
  [[ $output == $'forced\nforced\nforced' ]]
  FIELDS=outcome run -0 holds --limit 2 f
  [[ $output == $'forced\nforced' ]]
  entry p outcome released owner a end exited value 0
  entry p outcome forced owner b by me
  entry p outcome released owner c end exited value 0
  entry p outcome gone owner b end lost why reason
  entry p outcome kept owner d end exited value 0
  entry p outcome forced owner d by me
  FIELDS='owner outcome taken_away_by result' run -0 holds p
  [[ $output == $'d forced me exited\nb forced me lost\nc released - exited\na released - exited' ]]
  FIELDS='owner outcome result' run -0 holds --limit 1 p
  [[ $output == 'd forced exited' ]]
  FIELDS='owner outcome result' run -0 holds --limit 2 p
  [[ $output == $'d forced exited\nb forced lost' ]]
}

wall_ms() { date +%s%3N; }
# at TIME NAME FIELD VALUE...: an entry of that time, in milliseconds.
at() {
  local time=$1 name=$2
  shift 2
  redis srv xadd "rlock:history:{$name}" "$time-0" "$@" >/dev/null
}

@test "--failed and --since omit holds, but change none" {
  local i
  at 1700000000000 z outcome released owner y end exited value 0
  at 1700000001000 z outcome kept owner k waited 7 end exited value 0
  at 1700000002000 z outcome forced owner k by me
  at 1700000003000 z outcome forced owner o by root
  for i in $(seq 30); do at "$((1700000003000 + i))" z outcome released owner "r$i" end exited value 0; done
  at 1700000005000 z outcome gone owner o waited 9 end lost why reason
  export FIELDS='owner outcome taken_away_by result status waited_ms'
  run -0 holds --failed z
  [[ $output == $'o forced root lost - 9\nk forced me exited 0 7' ]]
  run -0 holds --failed --limit 1 z
  [[ $output == 'o forced root lost - 9' ]]
  run -0 holds --since 2023-11-14T22:13:22Z --failed z
  [[ $output == $'o forced root lost - 9\nk forced me exited 0 7' ]]
  # The page says what it leaves out.
  rlock history --since 2023-11-14T22:13:22Z --failed --html page.html z
  run -0 page_data page.html '[len(holds), about["holds"], about["only_failures"], about["chosen"]]'
  [[ $output == $'2\nonly failures, since 2023-11-14T22:13:22Z\nTrue\nTrue' ]]
  redis srv del 'rlock:history:{z}' >/dev/null
  at 1700000003000 z outcome forced owner o by root
  at 1700000005000 z outcome gone owner o end lost why reason
  run -0 holds --since 2023-11-14T22:13:24Z z
  [[ $output == 'o forced root lost - -' ]]
  run -0 holds --since 2023-11-14T22:13:26Z z
  [[ -z $output ]]
  rlock history --since 2023-11-14T22:13:26Z --html page.html
  [[ $(page_data page.html '[len(holds), about["chosen"]]') == $'0\nTrue' ]]
}

@test "--since 2h uses the server's clock" {
  not_over tls sentinel cluster 'the server is one of the test'
  redis_start_with_clock slow
  RLOCK_URL=$(redis_url slow)
  clock_step -86400000
  rlock run a -- true
  FIELDS=result run -0 holds --since 1h
  [[ $output == exited ]]
  # And if that is ahead, it shows no more.
  clock_step 0
  rlock run b -- true
  clock_step 7200000
  FIELDS=name run -0 holds --since 1h
  [[ -z $output ]]
  redis_stop slow
}

@test "an absurd time is not believed" {
  local now
  now=$(wall_ms)
  at "$((now - 60000))" a outcome released owner 1 user u host h held 10000 end exited value 0
  at "$((now - 30000))" a outcome released owner 2 user u host h held 99999999999999 waited 99999999999999 end exited value 0
  at "$((now - 20000))" a outcome released owner 3 user u host h held 10000 end exited value 0
  run -0 rlock history a
  [[ $output != *1970-* && $(grep -c ' 10s ' <<<"$output") == 2 ]]
  FIELDS='owner held_ms since' run -0 holds a
  [[ ${lines[1]} == '2 - -' ]]
}

@test "a hold ends by the server's clock, even if an earlier entry is from the future" {
  local future=$(($(wall_ms) + 86400000)) ended
  at "$future" a outcome released owner future end exited value 0
  run -1 rlock run a -- false
  FIELDS='status ended' run -0 holds --failed a
  ended=${output#1 }
  (($(date -d "$ended" +%s) < future / 1000 - 3600))
  # An entry that --since omits does not end the reading.
  redis srv xadd 'rlock:history:{a}' "$((future + 1))-0" outcome released owner old ended 1700000000000 >/dev/null
  FIELDS='owner status' run -0 holds --since 1h --failed a
  [[ $output == *' 1' ]]
}

@test "--failed finds the newest failures of many locks, even if most have only successes" {
  redis srv eval 'for lock = 1, 210 do
      for i = 1, 60 do
        local failed = lock > 205 and i == 60
        redis.call("xadd", "rlock:history:{m" .. lock .. "}", "*", "outcome", "released", "ended", ARGV[1] + i,
          "owner", "o" .. i, "held", 1, "end", "exited", "value", failed and 1 or 0)
      end
    end' 0 "$(wall_ms)" >/dev/null
  FIELDS='name status' run -0 holds --failed
  [[ $(sort <<<"$output") == $'m206 1\nm207 1\nm208 1\nm209 1\nm210 1' ]] || { show && return 1; }
}

@test "many foreign entries are skipped in large pages" {
  local commands
  redis srv eval 'for i = 1, 20000 do redis.call("xadd", KEYS[1], "*", "a", "b") end' 1 'rlock:history:{f}' >/dev/null
  redis srv config resetstat >/dev/null
  run -0 --separate-stderr rlock history --limit 1 f
  commands=$(redis srv info commandstats | grep -oP 'cmdstat_xrevrange:calls=\K[0-9]+')
  [[ $stderr == *'20000 entries were not written by rlock'* ]]
  ((commands < 60))
  # Pages grow again after one that was too long.
  redis srv eval 'redis.call("xadd", KEYS[1], "*", "a", "b")
    for i = 1, 40 do redis.call("xadd", KEYS[1], "*", "a", string.rep("b", 100000)) end' 1 'rlock:history:{f}' >/dev/null
  redis srv config resetstat >/dev/null
  run -0 --separate-stderr rlock history f
  [[ $stderr == *'20041 entries were not written by rlock'* ]]
  commands=$(redis srv info commandstats | grep -oP 'cmdstat_xrevrange:calls=\K[0-9]+')
  ((commands < 5000))
}

@test "the reader is told that there are older holds" {
  local i
  for i in 1 2 3; do rlock run a -- true; done
  run -0 --separate-stderr rlock history --limit 2
  [[ ${#lines[@]} == 4 && ${lines[3]} == 'for older holds, use --limit' && -z $stderr ]]
  run -0 rlock history --limit 3
  [[ ${#lines[@]} == 4 && $output != *older* ]]
  FIELDS=name run -0 holds --limit 2
  [[ $output == $'a\na' ]]
  rlock history --limit 2 --html page.html
  [[ $(page_data page.html '[len(holds), about["holds"]]') == $'2\nthe newest ones (use --limit for older ones)' ]]
  rlock history --limit 3 --html page.html
  [[ $(page_data page.html '[len(holds), about["holds"], "."]') == $'3\n\n.' ]]
}

@test "the histories of many thousand locks are listed" {
  not_over cluster 'a script there writes keys of one slot'
  redis srv eval 'for i = 1, tonumber(ARGV[1]) do
    redis.call("xadd", "rlock:history:{many-" .. i .. "}", i .. "-0", "outcome", "released", "owner", i)
  end' 0 "${RLOCK_TEST_LOCKS:-65000}" >/dev/null
  FIELDS=name run -0 --separate-stderr holds --limit 1
  [[ $output == "many-${RLOCK_TEST_LOCKS:-65000}" && -z $stderr ]]
}

@test "a long history is listed from its end, and one of many thousand is trimmed" {
  redis srv eval 'for i = 1, tonumber(ARGV[1]) do
    redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", i, "held", 1000, "host", "h", "user", "u", "end", "exited", "value", i % 2)
  end' 1 'rlock:history:{h}' "${RLOCK_TEST_HOLDS:-20000}" >/dev/null
  FIELDS=owner run -0 holds --limit 2 h
  [[ $output == "${RLOCK_TEST_HOLDS:-20000}"$'\n'"$((${RLOCK_TEST_HOLDS:-20000} - 1))" ]]
  rlock history --limit 100000 --json h >all
  [[ $(grep -c '"owner"' all) == "${RLOCK_TEST_HOLDS:-20000}" ]]
  rlock run h -- true
  (($(entries h) < 10200))
}

@test "in a quorum each server has the history, and the reader sees one" {
  not_over sentinel cluster 'it cannot be part of a quorum'
  redis_start two
  redis_start three
  local url
  url="$(redis_url srv) $(redis_url two) $(redis_url three)"
  entry q outcome released owner same held 10 end exited value 0
  redis two xadd 'rlock:history:{q}' '*' outcome released owner same held 12 end exited value 0
  redis three xadd 'rlock:history:{q}' '*' outcome gone owner other end lost
  export RLOCK_URL=$url FIELDS='owner'
  run -0 holds q
  [[ $(grep -c same <<<"$output") == 1 && $(grep -c other <<<"$output") == 1 ]]
  redis_stop two
  redis_stop three
}

@test "a job of a quorum has one entry, with a warning if one server cannot write it" {
  source "$TESTS_DIR/lib/quorum.bash"
  quorum_start 3
  run -0 --separate-stderr rlock run w -- true
  FIELDS='name result' run -0 --separate-stderr holds
  [[ $output == 'w exited' && -z $stderr ]]
  redis s3 del 'rlock:history:{w}'
  redis s3 set 'rlock:history:{w}' text
  run -0 --separate-stderr rlock run w -- true
  [[ $stderr == *'released, but the history could not be written: WRONGTYPE'* ]]
  quorum_stop
}

@test "the release writes one entry, even if it is sent twice" {
  rlock run a -- true
  redis srv del 'rlock:history:{a}'
  redis-cli -s "$srv_sock" monitor >monitor 3>&- &
  local pid=$!
  wait_until grep -q OK monitor
  rlock run a -- true
  redis srv echo the-end >/dev/null
  wait_until grep -q the-end monitor
  kill "$pid"
  python3 - "$srv_sock" <<'PYTHON'
import ast, re, socket, sys
line = next(line for line in open("monitor") if '"rlock release"' in line or '"rlock release, sharded"' in line)
words = [ast.literal_eval('b' + word) for word in re.findall(r'"(?:[^"\\]|\\.)*"', line)]
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
sock.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
assert b"released" in sock.recv(4096)
PYTHON
  [[ $(entries a) == 1 ]]
}

# shape: the columns of the widest line.
widest() { python3 -c 'import sys; print(max(map(len, sys.stdin.read().splitlines())))'; }

# on_terminal COLUMNS COMMAND...: what a terminal of that width shows.
on_terminal() {
  local columns=$1
  shift
  python3 "$TESTS_DIR/lib/terminal.py" ' ' '' sh -c "stty cols $columns; NO_COLOR=1 $*"
}

@test "on a narrow terminal the result stays visible: names are cut first, and columns omitted" {
  local columns
  at 1700000000000 a-name-of-thirty-one-characters-x outcome released owner 1 held 1000 waited 1000 end exited value 3
  at 1700000001000 short outcome gone owner 2 end lost why reason
  export LC_ALL=C.UTF-8
  for columns in 20 25 30 40 60; do
    on_terminal "$columns" "'$RLOCK'" history >seen
    grep -q NAME seen
    grep -q 'RESULT' seen
    grep -q 'exit 3' seen
    grep -qE 'a-na.*…' seen
    grep -qE 'short +.*lost' seen
    (($(widest <seen) <= columns))
  done
  on_terminal 40 "'$RLOCK'" history >seen
  grep -q '^11-14 22:13 ' seen
  on_terminal 100 "'$RLOCK'" history >seen
  grep -q '2023-11-14T22:13:20Z  a-name-of-thirty-one-characters-x  1s    1s      exit 3' seen
}

@test "a long history takes little memory, as a table or a page" {
  redis srv eval '
    local text = string.rep("x", 500)
    for i = 1, 40000 do
      redis.call("xadd", KEYS[1], 1700000000000 + i .. "-0", "outcome", "released", "owner", "o" .. i, "held", 1, "end", "exited",
                 "value", 3, "host", "h", "user", "u", "command", text, "reason", text, "token", i)
    end
    redis.call("pexpire", KEYS[1], 600000)' 1 'rlock:history:{a}' >/dev/null
  local most=64 option
  [[ $RLOCK != *sanitize* ]] || most=1024
  for option in '' '--html page.html'; do # shellcheck disable=SC2086 # words
    MOST=$([[ $option == --html* ]] && echo $((2 * most)) || echo "$most") run -0 python3 - "$RLOCK" history --limit 100000 $option <<'PYTHON'
import os, resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
assert done.returncode == 0 and peak < int(os.environ["MOST"]), peak
assert "--html" in sys.argv or done.stdout.count(b"\n") > 40000
PYTHON
  done
  grep -qF '"holds": "the newest ones (a page has no more than 32 MiB of them)"' page.html
  redis srv del 'rlock:history:{a}' >/dev/null
}

@test "--html writes a self-contained page and escapes everything" {
  entry '<b>&"' outcome released owner o user '<script>alert(1)</script>' host '"><img src=x>' held 1000 end exited value 0
  rlock run a -- true
  run -1 rlock run a -- false
  mkdir pages
  cd pages
  run -0 --separate-stderr rlock history --html page.html
  [[ -z $output && -z $stderr && $(ls) == page.html ]]
  python3 - <<'PYTHON'
from html.parser import HTMLParser
class Page(HTMLParser):
    stack, tags = [], []
    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        assert tag not in ("img", "link", "iframe"), tag
        for name, value in attributes:
            assert not name.startswith("on") and name not in ("src", "style"), attributes
            assert name != "href" or value.startswith("#"), attributes
        if tag not in ("meta", "input") and "noscript" not in self.stack[:-1]:
            self.stack.append(tag)
    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, tag
page = Page()
text = open("page.html").read()
page.feed(text)
assert not page.stack and page.tags.count("script") == 2 and "@" + "DATA@" not in text, page.tags
assert "url(" not in text and "@import" not in text and "http:" not in text and "https:" not in text
assert "prefers-color-scheme: dark" in text and "viewport" in text
# Nothing in the data ends their element, opens a comment, or is a line end of JavaScript.
data = text.split('id="data">\n')[1].split("</script>")[0]
assert not set(data) & set("<>&\u2028\u2029") and data.isascii(), data
assert "\\u003cscript\\u003ealert(1)\\u003c/script\\u003e" in data and "\\u0026" in data
PYTHON
  [[ $(page_data page.html '[one["name"] for one in holds]') == $'a\na\n<b>&"' ]]
  # Style and script are allowed by their hashes, and are what the file in the source has.
  python3 - "$TESTS_DIR/../src/show/page.html" <<'PYTHON'
import base64, hashlib, re, sys
for file in "page.html", sys.argv[1]:
    text = open(file).read()
    parts = [re.search(f"<{tag}>(.*)</{tag}>", text, re.S)[1] for tag in ("style", "script")]
    hashes = ["sha256-" + base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in parts]
    policy = re.search('Content-Security-Policy" content="([^"]*)"', open("page.html").read())[1]
    assert policy == f"default-src 'none'; style-src '{hashes[0]}'; script-src '{hashes[1]}'; base-uri 'none'; form-action 'none'", policy
PYTHON
  # An old page stays until the new one is complete; anything but a file is written to directly.
  rlock history --html page.html a
  [[ $(page_data page.html 'len(holds)') == 2 ]]
  # The same users may read it.
  chmod 640 page.html
  rlock history --html page.html a
  [[ $(stat -c %a page.html) == 640 ]]
  rlock history --html /dev/stdout a | grep -q '</html>'
  run -71 --separate-stderr rlock history --html /nowhere/page.html
  [[ $stderr == *'/nowhere/page.html: No such file or directory'* && $(ls) == page.html ]]
  mkdir folder
  run -71 rlock history --html folder
  run -71 rlock history --html /dev/full
  # Another rlock with this pid was killed while it wrote.
  bash -c 'touch page.html.rlock-$$; exec "$0" history --html page.html a' "$RLOCK"
  rm page.html.rlock-*
  local long
  long=$(printf 'n%.0s' {1..250})
  run -71 --separate-stderr rlock history --html "$long"
  [[ $stderr == *"cannot create $long.rlock-"*", which is to replace $long: File name too long" ]]
  run -64 rlock history --html ''
  run -64 --separate-stderr rlock history --html x --json
  [[ $stderr == *'cannot be used together'* ]]
  if [[ $(id -u) != 0 ]]; then
    chmod a-w .
    run rlock history --html page.html
    chmod u+w . # who takes the folder away needs that
    [[ $status == 71 && $output == *'cannot create '*'page.html.rlock-'*', which is to replace '* ]]
  fi
}

# page FILE LINES: one whole page is there, after that number of lines.
page() { [[ $(grep -c '^<!doctype' "$1") == 1 && $(tail -n 1 "$1") == '</html>' && $(sed -n "$(($2 + 1))p" "$1") == '<!doctype html>' ]]; }

@test "--html follows links and keeps them; standard output and pipes are written to directly" {
  rlock run a -- true
  mkdir pages links
  echo old >pages/page.html
  ln -s ../pages/page.html links/to-file
  ln -s "$PWD/links/to-file" links/to-link
  ln -s ../pages/new.html links/to-nothing
  ln -s pages folder
  ln -s loop loop
  ln -s /proc/self/fd/1 out
  mkfifo pipe
  ln -s pipe to-pipe
  rlock history --html links/to-link
  page pages/page.html 0
  rlock history --html links/to-nothing
  page pages/new.html 0
  rlock history --html folder/third.html
  page pages/third.html 0
  [[ $(ls pages) == $'new.html\npage.html\nthird.html' && -L links/to-file && -L links/to-link && -L links/to-nothing ]]
  # Earlier text stays, and later text comes after it. Not /dev/stdout itself, because a bug would replace it for the
  # whole host.
  local name
  for name in out /proc/self/fd/1 /dev/fd/1; do
    { echo before && rlock history --html "$name" && echo after; } >written
    [[ $(head -n 1 written) == before && $(tail -n 1 written) == after ]]
    sed -i '$d' written
    page written 1
    rlock history --html "$name" >written
    page written 0
    rlock history --html "$name" | cat >written
    page written 0
  done
  [[ -L out ]]
  cat pipe >written 3>&- &
  rlock history --html to-pipe
  wait $!
  page written 0
  [[ -L to-pipe && -p pipe ]]
  rlock history --html >(cat >pages/new.html)
  wait_until page pages/new.html 0
  run -71 --separate-stderr rlock history --html loop
  [[ $stderr == *'loop: '*[Ss]'ymbolic link'* ]] # the words are libc's
  [[ -z $(find . -name '*.rlock-*') ]]
}

@test "nothing waits for a reader that is gone" {
  redis srv eval 'for i = 1, 5000 do redis.call("xadd", KEYS[1], "*", "outcome", "released", "owner", i) end' 1 'rlock:history:{h}' >/dev/null
  run -0 timeout 20 bash -c '"$0" history --limit 5000 h | head -n 1' "$RLOCK"
  run -0 timeout 20 bash -c '"$0" history --json --limit 5000 h | head -n 1' "$RLOCK"
}

@test "if the server is out of memory, the release succeeds and is recorded" {
  run -0 --separate-stderr rlock run a -- redis-cli -s "$srv_sock" config set maxmemory 1
  [[ -z $stderr && $(entries a) == 1 && $(redis srv exists a) == 0 ]]
}

@test "--json prints holds as they arrive: memory does not depend on the limit, even with texts of maximum length" {
  redis srv eval 'local t = string.rep("t", 512)
    for i = 1, 20000 do
      redis.call("xadd", KEYS[1], i .. "-0", "outcome", "released", "owner", i, "token", t, "kind", t, "host", t, "user", t,
        "command", t, "reason", t, "end", t, "why", t, "by", t)
    end' 1 'rlock:history:{h}' >/dev/null
  ! grep -q __asan_init "$RLOCK" || skip 'AddressSanitizer keeps what was freed for a while'
  # 20000 such holds are more than 100 MB.
  python3 - "$RLOCK" <<'PYTHON'
import json, resource, subprocess, sys
with open("all", "w") as out:
    subprocess.run([sys.argv[1], "history", "--json", "--limit", "100000", "h"], stdout=out, check=True)
most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
owners = [int(hold["owner"]) for hold in json.load(open("all"))]
assert owners == list(range(20000, 0, -1)), len(owners)
assert most < 60000, most
PYTHON
}

@test "--json merges the histories of many locks, and joins a hold's entries across pages" {
  not_over cluster 'a script there writes keys of one slot'
  redis srv eval 'for i = 1, 6000 do
      redis.call("xadd", "rlock:history:{m-" .. i % 300 .. "}", i .. "-0", "outcome", "released", "owner", i)
    end
    redis.call("xadd", "rlock:history:{m-0}", "6001-0", "outcome", "forced", "owner", "taken", "by", "me")
    for i = 1, 15 do redis.call("xadd", "rlock:history:{m-0}", 6001 + i .. "-0", "outcome", "released", "owner", 6001 + i) end
    redis.call("xadd", "rlock:history:{m-0}", "6017-0", "outcome", "gone", "owner", "taken", "end", "lost")' 0 >/dev/null
  FIELDS='owner outcome' holds --limit 100000 >seen
  [[ $(head -n 1 seen) == 'taken forced' && $(grep -c taken seen) == 1 ]]
  { seq 6016 -1 6002 && seq 6000 -1 1; } >wanted
  tail -n +2 seen | sed 's/ .*//' | cmp - wanted
  FIELDS=owner run -0 holds --limit 3
  [[ $output == $'taken\n6016\n6015' ]]
}

@test "--since accepts today, yesterday and durations" {
  local time
  rlock run now -- true
  at "$(($(wall_ms) - 90 * 60000))" hours outcome released owner 1
  at "$(($(date -d '00:00 yesterday' +%s) * 1000 + 1000))" yesterday outcome released owner 2
  at "$(($(date -d '00:00 yesterday' +%s) * 1000 - 1000))" before outcome released owner 3
  export FIELDS=name
  for time in '1 hour ago' '1 hour' '60 minutes' '30 min ago' '2000 seconds' '1h ago' '0.5 hours'; do
    run -0 holds --since "$time" now hours
    [[ $output == now ]]
  done
  for time in '2 hours' '2 hours ago' '1 day' '2 days' '2 days ago' '120 mins'; do
    run -0 holds --since "$time" now hours
    [[ $output == $'now\nhours' ]]
  done
  run -0 holds --since yesterday now yesterday before
  [[ $output == $'now\nyesterday' ]]
  run -0 holds --since today now yesterday before
  [[ $output == now || $output == '' ]] # at midnight
  for time in 'ago' 'days' '2 dayss' '2 moons' '1 hour later' 'yesterday ago'; do
    run -64 --separate-stderr rlock history --since "$time"
    [[ $stderr == *'is not a date'* ]]
  done
}

@test "times are local, with the zone, on a terminal and with --local; UTC elsewhere" {
  at 1700000000000 a outcome released owner 1 held 1000 end exited value 0
  export TZ=XYZ-5:30
  run -0 rlock history
  [[ $output == *2023-11-14T22:13:20Z* ]]
  run -0 rlock history --local
  [[ $output == *2023-11-15T03:43:20+05:30* && $output == *' ok '* ]]
  on_terminal 120 "'$RLOCK'" history >seen
  grep -q '2023-11-15T03:43:20+05:30' seen
  FIELDS=ended run -0 holds --local
  [[ $output == 2023-11-14T22:13:20Z ]]
  rlock history --html page.html
  [[ $(page_data page.html '[about["local"], holds[0]["ended"]]') == $'False\n2023-11-14T22:13:20Z' ]]
  rlock history --local --html page.html
  [[ $(page_data page.html '[about["local"], holds[0]["ended_ms"]]') == $'True\n1700000000000' ]]
  # --since accepts such a time.
  FIELDS=owner run -0 holds --since 2023-11-15T03:43:20+05:30
  [[ $output == 1 ]]
  FIELDS=owner run -0 holds --since 2023-11-15T03:43:21+05:30
  [[ -z $output ]]
}
