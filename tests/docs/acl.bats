# The rights that docs/security.md grants are sufficient, and each of them is necessary.

load ../lib/server

# The command of docs/security.md, in one line.
acl_of_docs() {
  sed -n '/^ACL SETUSER rlock reset /,/^```/p' "$TESTS_DIR/../docs/security.md" | grep -v '```' | tr '\n' ' ' | sed 's/>PASSWORD/>pw/'
}

# The patterns of docs/security.md for a team, for names that start with $1.
patterns_of_docs() {
  sed -n '/^~p:/,/^```/p' "$TESTS_DIR/../docs/security.md" | grep -v '```' | tr '\n' ' ' | sed "s/p:/$1/g"
}

# grant [RIGHT]: the rights in docs/security.md, all but RIGHT.
grant() { # shellcheck disable=SC2046 # words of a command
  redis srv $(acl_of_docs | tr ' ' '\n' | grep -vxF -- "${1:-nothing}")
}

# printed [PREFIX]: what rlock prints, with these tests' password.
printed() { rlock doctor --acl "$@" | sed 's/>PASSWORD/>pw/'; }

# grant_team PREFIX: a user of that name, with the rights that rlock prints for these names.
grant_team() { # shellcheck disable=SC2046 # words of a command
  redis srv $(printed "$1" | sed "s/SETUSER rlock/SETUSER team-${1%:}/")
}

# one_a_line: the words of a text.
one_a_line() { tr -s ' \n' '\n\n' | grep .; }

@test "rlock prints the rights in the documents" {
  local man=$TESTS_DIR/../man/rlock.1
  diff <(acl_of_docs | one_a_line) <(printed | one_a_line)
  diff <(acl_of_docs | one_a_line | grep -v '^[~&]') <(printed p: | one_a_line | grep -v '^[~&]')
  diff <(patterns_of_docs p: | one_a_line) <(printed p: | one_a_line | grep '^[~&]')
  diff <(sed -n '/^\.Ss Rights/,/^\.Ss Java/p' "$man" | grep '^[~&]' | one_a_line) <(printed p: | one_a_line | grep '^[~&]')
}

# as_user NAME: from now on rlock is this user, in another database, with the password in a file.
as_user() {
  (umask 077 && printf pw >"$BATS_TEST_TMPDIR/password")
  export RLOCK_PASSWORD_FILE=$BATS_TEST_TMPDIR/password RLOCK_URL="unix://$1@$srv_sock?db=1"
}

# everything: what users of rlock do. Silent; fails if anything fails.
everything() {
  local owner
  rlock run job -- "$RLOCK" run -n job -- true &&
    owner=$(rlock acquire job --lease 30s) && rlock renew job --owner "$owner" && rlock status job &&
    rlock status && ! rlock run --wait 100ms job -- true && handed_over "$owner" &&
    released_before "$owner" && rlock acquire job --lease 30s && rlock force-unlock job --history --yes && rlock run --history job -- true &&
    rlock history job && rlock history && unrecorded &&
    rlock run -s job -- "$RLOCK" run -n -s job -- true && rlock run -x job -- true && slots && beside_fair_locks
}

# A hold whose lease has ended, and that no grant has recorded yet.
unrecorded() {
  local owner
  owner=$(rlock acquire job --history --lease 30s) && redis srv -n 1 zadd 'rlock:hold:{job}:due' 1 "$owner" &&
    [[ $(rlock history job) == *'lease ran out'* ]] && rlock release job --owner "$owner"
}

# A fair waiter of Redisson is called; one of ours joins its queue, and leaves it.
beside_fair_locks() {
  local waiter list='redisson_lock_queue:{job}' times='redisson_lock_timeout:{job}' fine=1
  is_in() { [[ $(redis srv -n 1 lrange "$list" 0 -1 | xargs) == $1 ]]; }
  stays() { redis srv publish 'redisson_lock__channel:{job}' 0 && [[ $(redis srv -n 1 pttl "$list") == -1 ]]; }
  redis srv -n 1 del job
  redis srv -n 1 hset job F:9 1 && redis srv -n 1 pexpire job 60000
  "$RLOCK" run -q --wait 30s job -- true 3>&- &
  waiter=$!
  wait_until is_in '*:*' && redis srv -n 1 rpush "$list" F:1 && redis srv -n 1 zadd "$times" 9000000000000 F:1 &&
    wait_until stays || fine=
  end_mine_wholly "$waiter"
  [[ $fine ]] && is_in F:1 && redis srv -n 1 del job && called && redis srv -n 1 del "$list" "$times" || fine=
  [[ $fine ]]
}

# F:1 is in Redisson's queue, and is notified of a release.
called() {
  local owner listener
  owner=$(rlock acquire job --lease 30s) || return
  redis-cli -s "$srv_sock" subscribe 'redisson_lock__channel:{job}:F:1' >"$BATS_TEST_TMPDIR/turns" 3>&- &
  listener=$!
  wait_until grep -q subscribe "$BATS_TEST_TMPDIR/turns" && rlock release job --owner "$owner" &&
    wait_until grep -qx 0 "$BATS_TEST_TMPDIR/turns"
  local status=$?
  kill "$listener" || true
  return $status
}

waiting() { [[ $(redis srv -n 1 zcard "rlock:queue:{$1}") == 1 ]]; }

slots() {
  local owner
  owner=$(rlock acquire --slots 2 job --lease 30s) && rlock status job &&
    redis srv -n 1 zadd '{job}:timeout' 1 one-that-crashed && rlock run --slots 3 --resize job -- true &&
    rlock release job --owner "$owner"
}

# A second job waits, and the release of the first gives it the lock.
handed_over() {
  rlock run --wait 1m --reason handed job -- true 3>&- &
  local waiter=$!
  wait_until waiting job && rlock release job --owner "$1" && wait "$waiter"
}

released_before() {
  local status=0
  rlock release job --owner "$1" || status=$?
  ((status == 76))
}

# silent: nothing unexpected was printed.
silent() { ! grep -vE 'not acquired|not held|waiting for' "$BATS_TEST_TMPDIR/err"; }

@test "with the documented rights everything works, without a warning" {
  set -f
  grant
  export RLOCK_URL="unix://rlock@$srv_sock?db=1" RLOCK_PASSWORD=pw
  run --separate-stderr -0 rlock run job -- true
  [[ -z $stderr ]]
  unset RLOCK_PASSWORD
  as_user rlock
  everything 2>"$BATS_TEST_TMPDIR/err"
  cat "$BATS_TEST_TMPDIR/err"
  silent
}

# protocol_set NAME: what users of rlock do with a string that other programs lock, too.
protocol_set() {
  local owner waiter
  export RLOCK_PROTOCOL=set
  rlock run "$1" -- "$RLOCK" run -n "$1" -- true && owner=$(rlock acquire "$1" --lease 30s) &&
    rlock renew "$1" --owner "$owner" && rlock status "$1" && rlock status && rlock release "$1" --owner "$owner" &&
    rlock acquire "$1" --lease 30s && rlock force-unlock --yes "$1" || return
  redis srv -n 1 set "$1" random nx px 600000
  "$RLOCK" run -q --wait 1m "$1" -- true 3>&- &
  waiter=$!
  wait_until waiting "$1" && rlock status "$1" && rlock force-unlock --yes "$1" && wait "$waiter"
}

@test "--protocol set needs no other rights, for all names and for a team's" {
  set -f
  grant
  grant_team p:
  as_user rlock
  protocol_set job 2>"$BATS_TEST_TMPDIR/err"
  silent
  as_user team-p
  protocol_set p:job 2>"$BATS_TEST_TMPDIR/err"
  silent
}

@test "each right is necessary: without it, something fails or causes a warning" {
  set -f
  as_user rlock
  # Most of what lacks a right never comes.
  export WAIT_SECONDS=1
  # Without +evalsha everything works, by EVAL: tests/faults/scripts.bats. tests/cli/eviction.table and client_name.bats
  # show +info and +client|setname, TEST_OVER=acl tests/cli/queue.bats +unsubscribe, without which a hand-off may pause.
  for right in $(acl_of_docs | tr ' ' '\n' | grep '^+' | grep -vxF -e +evalsha -e +info -e +unsubscribe -e '+client|setname'); do
    grant "$right"
    redis srv script flush >/dev/null # a server that knows the scripts is not sent them by +eval
    if everything 2>"$BATS_TEST_TMPDIR/err" && silent; then
      echo "$right is not needed"
      return 1
    fi
    redis srv -n 1 flushdb
  done
}

# As the user of a team: a command on the server, and the same in a script.
as_team() {
  local user=team-${1%:}
  shift
  redis-cli -s "$srv_sock" --user "$user" --pass pw --no-auth-warning -n 1 "$@" 2>&1
}
refused_to() {
  local team=$1 reply
  shift
  reply=$(as_team "$team" "$@")
  [[ $reply == *NOPERM* ]] || { echo "$*: $reply" >&2 && return 1; }
  [[ $1 == pubsub || $1 == subscribe ]] && return
  # shellcheck disable=SC2016 # Lua
  reply=$(as_team "$team" eval 'return redis.call(unpack(ARGV))' 0 "$@")
  [[ $reply == *"can't"* || $reply == *NOPERM* || $reply == *'ACL failure'* || $reply == *'o permissions'* ]] ||
    { echo "in a script, $*: $reply" >&2 && return 1; }
}

@test "a team has all rights that it needs for its own names" {
  set -f
  grant_team p:
  as_user team-p
  # The name of the tests above, with the prefix.
  source <(declare -f everything unrecorded slots handed_over beside_fair_locks called released_before |
    sed 's/{job}/{p:job}/g; s/\bjob\b/p:job/g; s/p:p:/p:/g')
  everything 2>"$BATS_TEST_TMPDIR/err" || { cat "$BATS_TEST_TMPDIR/err" && return 1; }
  silent
}

@test "no team can access another team's names" {
  set -f
  grant_team p:
  grant_team q:
  as_user team-p
  owner=$(rlock acquire p:job --lease 1m)
  rlock run -q --wait 30s p:job -- true 3>&- &
  local waiter=$!
  wait_until waiting p:job
  # A token that prevents grants forever, a place in the queue, an endless description, an unreadable record, a grant, a
  # request to stop, a wake-up, the lock itself.
  refused_to q: set 'redisson_lock_token:{p:job}' junk
  refused_to q: zadd 'rlock:queue:{p:job}' 1 me
  refused_to q: hset 'rlock:waiters:{p:job}' me record
  refused_to q: zrange 'rlock:queue:{p:job}' 0 -1
  refused_to q: hset 'rlock:holder:{p:job}' command long
  refused_to q: hset "rlock:hold:{p:job}:$owner" command long
  refused_to q: del p:job
  refused_to q: set '{p:job}:x:rwlock_timeout:1' 1
  refused_to q: zadd '{p:job}:timeout' 1 one
  refused_to q: rpush 'redisson_lock_queue:{p:job}' me
  refused_to q: zadd 'redisson_lock_timeout:{p:job}' 1 me
  refused_to q: publish 'rlock:grant:{p:job}:me' granted
  refused_to q: publish 'rlock:control:{p:job}' "$owner"
  refused_to q: publish 'redisson_lock__channel:{p:job}' 0
  refused_to q: publish 'redisson_rwlock:{p:job}' 0
  refused_to q: publish 'redisson_sc:{p:job}' 1
  refused_to q: subscribe 'rlock:grant:{p:job}:me'
  refused_to q: subscribe 'rlock:control:{p:job}'
  # The channels of waiters reveal their future owner ids.
  refused_to q: pubsub channels '*'
  refused_to q: pubsub numpat
  as_user team-q
  for name in p:job '{p:job}x' 'p:{job}' other; do
    run -77 rlock run -n "$name" -- true
    run -77 rlock status "$name"
    run -77 rlock force-unlock --yes "$name"
    run -77 rlock release "$name" --owner "$owner"
  done
  # Without names, it sees only its own.
  rlock acquire q:job --lease 1m
  run -0 rlock status
  [[ $output == *q:job* && $output != *p:job* ]]
  rlock force-unlock --yes q:job
  as_user team-p
  rlock release p:job --owner "$owner"
  wait "$waiter"
}
