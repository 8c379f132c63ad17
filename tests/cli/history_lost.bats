# A job with --history that dies with its host writes nothing: the next grant does, and rlock history shows it earlier.

load ../lib/job
load ../lib/history
load ../lib/quorum

setup() {
  redis_start srv
  use_server srv
}
teardown() { redis_stop srv; }

# dies NAME [OPTION...]: a job with --history, which is killed at one instant.
dies() {
  local name=$1
  shift
  rm -f ready
  job_start --history --reason 'release 1.4' --lease 4s "$@" "$name" -- sh -c 'echo >ready; exec sleep 600'
  wait_until test -e ready
  job_parts
  kill_guards
  kill -KILL "$command" 2>/dev/null || true
}
ended() { [[ $(redis srv exists "$1") == 0 ]]; }
over() { (($(redis srv zcount "rlock:hold:{$1}:due" -inf "$(server_ms)") > 0)); }
server_ms() {
  local time
  mapfile -t time < <(redis srv time)
  echo "${time[0]}$(printf '%06d' "${time[1]}" | cut -c 1-3)"
}
losses() { total "$1" losses; }
keys_left() { redis srv --raw keys 'rlock:hold:*' | grep -E ':(due|entry)$' || true; }

@test "a job that dies with its host is in the history: the next grant records it, once" {
  dies a
  wait_until ended a
  # Nobody has asked for the lock since then.
  FIELDS='outcome result lost fine name kind reason' run -0 holds
  [[ $output == 'gone expired True False a plain lock release 1.4' && $(entries a) == 0 ]]
  run -0 rlock history
  [[ ${lines[1]} == *' lease ran out '*release\ 1.4* && ${#lines[@]} == 2 ]]
  rlock run a -- true
  [[ $(entries a) == 1 && $(losses a) == 1 && -z $(keys_left) ]]
  rlock run a -- true
  rlock run --history a -- true
  [[ $(entries a) == 2 && $(losses a) == 1 && -z $(keys_left) ]]
  FIELDS='outcome result' prints $'released exited\ngone expired' holds
  FIELDS='user host pid held_ms' run -0 holds --failed
  read -r user host pid held <<<"$output"
  [[ $user == "$(id -un)" && $host == "$(uname -n)" && $pid == "$frontend" ]]
  ((held >= 1000))
  rlock history --html >page.html
  [[ $(page_data page.html '[[one["outcome"], one["result"]] for one in holds]') == *"['gone', 'expired']"* ]]
  run -0 rlock history --failed
  [[ ${lines[1]} == *' lease ran out '* && ${#lines[@]} == 2 ]]
  (($(redis srv pttl 'rlock:history:{a}') > 2500000000 && $(redis srv pttl 'rlock:totals:{a}') > 2500000000))
}

@test "readers, slots and strings that die are recorded as well" {
  dies r -s
  dies s --slots 2
  dies p --protocol set
  wait_until over r
  wait_until over s
  wait_until over p
  FIELDS='name kind result' run -0 holds
  [[ $(sort <<<"$output") == $'p string lock expired\nr read-write lock expired\ns semaphore expired' ]]
  rlock run -s r -- true
  rlock run --slots 2 s -- true
  rlock run --protocol set p -- true
  for kind in r s p; do [[ $(entries $kind) == 1 && $(losses $kind) == 1 ]]; done
  FIELDS='name kind result' run -0 holds
  [[ $(sort <<<"$output") == $'p string lock expired\nr read-write lock expired\ns semaphore expired' ]]
  [[ -z $(keys_left) ]]
}

@test "a waiter that comes after a dead job records it; a job that renews is never taken for dead" {
  local waiter
  dies a
  rlock run -q --wait 10m a -- true
  [[ $(entries a) == 1 && $(losses a) == 1 ]]
  "$RLOCK" run --history --lease 4s -s b -- sleep 600 3>&- &
  waiter=$!
  wait_until rlock status --is-held b
  wait_until past 5500
  FIELDS=result run -0 holds b
  [[ -z $output ]]
  rlock run -s b -- true
  [[ $(entries b) == 0 ]]
  end_mine_wholly "$waiter"
  FIELDS=result run -0 holds b
  [[ $output == signalled && -z $(losses b) && -z $(keys_left) ]]
}

@test "a job that sleeps past its lease and then writes its own entry is one hold, and one loss" {
  job_start --history --lease 4s a -- sleep 600
  job_parts
  kill -STOP "$frontend" "$monitor"
  wait_until over a
  rlock run a -- true
  [[ $(entries a) == 1 && $(losses a) == 1 ]]
  # Otherwise the frontend would kill the monitor, which writes the entry.
  kill -CONT "$monitor"
  twice() { [[ $(entries a) == 2 ]]; }
  wait_until twice
  end_mine -CONT "$frontend" # the monitor may have ended it
  wait "$frontend" || true
  FIELDS='outcome result lost' run -0 holds
  [[ $output == 'gone lost True' && $(losses a) == 1 ]]
}

@test "releasing, giving up and taking away leave nothing behind" {
  rlock run --history a -- true
  rlock run --history --min-hold 10s m -- true
  owner=$(rlock acquire --history b --lease 1m)
  [[ -n $(keys_left) ]]
  rlock release b --owner "$owner"
  rlock acquire --history c --lease 1m
  rlock force-unlock --history -y --now c
  rlock acquire d --lease 1m
  run -75 rlock run --history -n e d -- true
  rlock run --history -s r -- true
  rlock run --history --slots 2 s -- true
  rlock run --history --protocol set p -- true
  rlock run --history n -- "$RLOCK" run --history n -- true
  [[ -z $(keys_left) ]]
  # All keys have a TTL.
  local key
  rlock acquire --history x --lease 1m
  for key in $(redis srv --raw keys 'rlock:hold:*'); do (($(redis srv pttl "$key") > 0)); done
}

@test "what others have put there breaks neither a grant nor a history, and is recorded once" {
  redis srv set 'rlock:hold:{a}:due' text
  rlock run --history a -- true
  redis srv del 'rlock:hold:{a}:due'
  long=$(head -c 100000 /dev/zero | tr '\0' o)
  redis srv zadd 'rlock:hold:{a}:due' -inf minus 5 "$long" 1 $'o\e[2J' 7 mode 8 text
  redis srv hset $'rlock:hold:{a}:o\e[2J:entry' since 99999999999999999999 host $'h\e' command "$long"
  redis srv set 'rlock:hold:{a}:text:entry' text
  run -0 rlock history a
  [[ $output == *'lease ran out'* && $output != *$'\e'* ]]
  rlock run a -- true
  [[ $(redis srv exists 'rlock:hold:{a}:due') == 0 ]]
  run -0 rlock history a
  [[ $output == *'lease ran out'* && $output != *$'\e'* ]]
  # At most ten per grant; none is lost.
  for i in $(seq 25); do redis srv zadd 'rlock:hold:{b}:due' "$i" "owner:$i" >/dev/null; done
  rlock run b -- true
  [[ $(entries b) == 10 ]]
  rlock run b -- true
  rlock run b -- true
  [[ $(entries b) == 25 && $(losses b) == 25 ]]
  # A key of another type in place of the entry: the grant still succeeds.
  redis srv set 'rlock:history:{c}' text
  redis srv zadd 'rlock:hold:{c}:due' 5 owner:1
  rlock run c -- true
  [[ -z $(losses c) ]]
}

@test "a user without the right to the histories gets the lock, and leaves the entry to others" {
  not_over acl tls cluster 'the user is one of the test, with a password'
  redis srv acl setuser few reset on '>pw' '~?' '~{*' '~rlock:holder:*' '~rlock:hold:*' '~rlock:queue:*' \
    '~rlock:waiters:*' '~redisson_lock_*' '&*' +@all >/dev/null
  redis srv zadd 'rlock:hold:{a}:due' 5 owner:1
  RLOCK_PASSWORD=pw run -0 --separate-stderr rlock --url "unix://few@$srv_sock" run a -- true
  [[ -z $stderr && $(redis srv zcard 'rlock:hold:{a}:due') == 1 ]]
  rlock run a -- true
  [[ $(entries a) == 1 && $(redis srv exists 'rlock:hold:{a}:due') == 0 ]]
}

@test "a nested run that extends the lease also extends its hold; a renewal records anew when the lease ends, if that was deleted" {
  rlock run --history --no-renew --lease 5s a -- "$RLOCK" run --no-renew --lease 10m a -- \
    redis-cli -s "$srv_sock" zrange 'rlock:hold:{a}:due' 0 -1 withscores >due
  (($(tail -n 1 due) > $(server_ms) + 60000))
  [[ $(entries a) == 1 && -z $(keys_left) ]]
  due() { [[ $(redis srv exists 'rlock:hold:{b}:due') == 1 ]]; }
  job_start --history --lease 4s b -- sleep 600
  wait_until due
  redis srv del 'rlock:hold:{b}:due'
  wait_until due
  kill "$frontend"
  job_status 143
}

@test "in a quorum, a hold counts as dead if a majority of the servers says so" {
  quorum_start 3
  dies q
  seen() { FIELDS='name outcome result' holds | grep -qx 'q gone expired'; }
  wait_until seen
  # One that a minority has lost may have continued.
  redis s2 zadd 'rlock:hold:{z}:due' 5 owner:1
  redis s2 xadd 'rlock:history:{y}' '*' outcome gone end expired owner owner:1
  FIELDS=name prints q holds
  rlock run q -- true
  FIELDS='name outcome result' prints 'q gone expired' holds
  [[ $(on_servers xlen 'rlock:history:{q}') == *1*1* && $(on_servers hget 'rlock:totals:{q}' losses) == *1*1* ]]
  quorum_stop
}
