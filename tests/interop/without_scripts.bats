# --protocol set on a server that does not allow scripts: SET … NX and SET … IFEQ of a real Valkey 9, or of the server
# $WITH_IFEQ, such as Redis 8.4 and later.

load ../lib/common
load ../lib/job
load clients

setup_file() {
  export VALKEY_MISSING='' VALKEY
  VALKEY_MISSING=$(clients_install valkey) && VALKEY_MISSING=''
  # A CI run that tested nothing would look like one that passed.
  [[ -z $VALKEY_MISSING ]] || {
    echo "$VALKEY_MISSING" >&2
    [[ -z ${CI:-} ]]
    return
  }
  VALKEY=${WITH_IFEQ:-$(clients_folder)/valkey/valkey-server}
  REDIS_SERVER=$VALKEY redis_start srv
  # Exactly what docs/interop.md names, and what starts a connection.
  redis srv acl setuser worker on '>secret-one' '~k*' '&*' +set +getrange +pttl >/dev/null
  redis srv acl setuser hand on '>secret-two' '~*' '&*' +@all -@scripting >/dev/null
}
teardown_file() { [[ -z ${srv_pid:-} ]] || redis_stop srv; }
setup() {
  [[ -z $VALKEY_MISSING ]] || skip "$VALKEY_MISSING"
  export RLOCK_URL RLOCK_PROTOCOL=set
  RLOCK_URL=unix://worker:secret-one@$srv_sock
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  [[ -z $VALKEY_MISSING ]] || return 0
  redis srv flushall >/dev/null
  [[ -z ${jobs[*]:-} ]] || kill -9 "${jobs[@]}" 2>/dev/null || true
}

held_by() { redis srv get k; }
is_free() { [[ $(redis srv exists k) == 0 ]]; }
sets() { redis srv info commandstats | sed -n 's/^cmdstat_set:calls=\([0-9]*\),.*/\1/p' | grep . || echo 0; }
more_sets_than() { (($(sets) > $1)); }
# begin [OPTION…]: a job that runs until the file `end` exists.
begin() {
  rm -f began end
  "$RLOCK" run "$@" k -- sh -c 'echo "$RLOCK_OWNER $RLOCK_TOKEN" >began; until [ -e end ]; do sleep 0.02; done' 2>err 3>&- &
  job=$!
  jobs+=("$job")
  wait_until test -s began
}
end() {
  touch end
  wait "$job"
}

@test "the command runs under a string with a TTL, which nobody else can take, and which is gone when the command ends" {
  begin
  [[ $(cat began) == "$(held_by) 0" ]]
  (($(redis srv pttl k) > 20000 && $(redis srv pttl k) <= 30000))
  [[ -z $(redis srv set k other nx px 1000) ]]
  run -75 --separate-stderr rlock run -n k -- true
  run -0 rlock status k
  [[ $output == *held*"$(cut -d ' ' -f 1 began)"* ]]
  end
  is_free
  [[ ! -s err && -z $(redis srv keys '*') ]]
}

@test "the lease is renewed as long as the command runs" {
  begin --lease 2s
  local before
  before=$(sets)
  wait_until more_sets_than $((before + 4))
  [[ $(held_by) == "$(cut -d ' ' -f 1 began)" ]]
  end
}

@test "a waiter gets the lock when a foreign holder deletes it, and when one of our jobs ends" {
  redis srv set k foreign nx px 600000
  "$RLOCK" run -w 1m k -- touch done 2>err 3>&- &
  jobs+=("$!")
  wait_until grep -q 'waiting for k' err
  redis srv set k foreign ifeq foreign px 1
  wait "${jobs[-1]}"
  [[ -e done ]]
  begin
  "$RLOCK" run -w 1m k -- touch again 2>err-2 3>&- &
  local waiter=$!
  jobs+=("$waiter")
  wait_until grep -q 'waiting for k' err-2
  end
  wait "$waiter"
  [[ -e again ]] && is_free
}

@test "a lock that is taken away: the command is stopped, and the status is 74" {
  begin --lease 2s
  redis srv set k thief xx px 60000
  local status=0
  wait "$job" || status=$?
  [[ $status == 74 && $(held_by) == thief ]]
}

@test "force-unlock, renew, release and acquire by hand" {
  begin
  run -0 rlock force-unlock --yes k
  local status=0
  end || status=$?
  [[ $status == 74 ]]
  local owner
  owner=$(rlock acquire k --lease 1m)
  [[ $(held_by) == "$owner" ]]
  run -0 rlock renew k --owner "$owner" --lease 5m
  (($(redis srv pttl k) > 200000))
  run -76 rlock release k --owner "$(rlock acquire k2 --lease 1m)"
  [[ $(held_by) == "$owner" ]]
  run -0 rlock release k --owner "$owner"
  wait_until is_free
}

@test "a renewal by hand never shortens a lease" {
  local owner
  owner=$(rlock acquire k --lease 10m)
  run -0 rlock renew k --owner "$owner" --lease 1s
  (($(redis srv pttl k) > 500000))
}

@test "a missing right is found before the command is started" {
  local right
  for right in set getrange pttl; do
    redis srv acl setuser narrow reset on '>secret-four' '~k*' '&*' +set +getrange +pttl "-$right" >/dev/null
    RLOCK_URL=unix://narrow:secret-four@$srv_sock run -77 --separate-stderr rlock run k -- touch ran
    assert_says "no permissions to run the '$right' command"
    [[ ! -e ran && $(redis srv exists k) == 0 && $stderr != *secret-four* ]]
  done
}

@test "a string without a value is a lock, too" {
  redis srv set k '' px 60000
  run -75 rlock run -n k -- true
  run -0 rlock status k
  [[ $output == *held* ]]
  redis srv set k ''
  run -76 --separate-stderr rlock run k -- true
  assert_says 'never expires'
}

@test "--min-hold lets the string run out" {
  run -0 rlock run --min-hold 1m k -- true
  (($(redis srv pttl k) > 50000))
}

@test "all processes killed: another job gets the lock when the lease is over" {
  begin --lease 2s
  local processes
  mapfile -t processes < <(pgrep -P "$job")
  kill -9 "$job" "${processes[@]}"
  run -0 rlock run -w 20s k -- true
}

@test "many jobs and a foreign client: never two at once" {
  echo 0 >count
  cat >add <<'END'
n=$(cat count)
echo $((n + 1)) >count
END
  local worker i
  for worker in 1 2 3; do
    (for i in {1..40}; do "$RLOCK" run -q -w 2m k -- sh add || echo "worker $worker: $?" >>faults; done) 3>&- &
    jobs+=("$!")
  done
  (for i in {1..40}; do
    until [[ $(redis srv set k "foreign $i" nx px 60000) == OK ]]; do sleep 0.01; done
    sh add
    redis srv set k "foreign $i" ifeq "foreign $i" px 1 >/dev/null
  done) 3>&- &
  jobs+=("$!")
  for worker in "${jobs[@]}"; do wait "$worker"; done
  [[ $(cat count) == 160 && ! -e faults ]]
}

# loses WORD COUNT: a server that executes the first COUNT commands with WORD, but does not answer them.
loses() {
  python3 "$TESTS_DIR/lib/proxy.py" "$PWD/p" "$srv_sock" "$PWD/log" "$1" "$2" 3>&- &
  jobs+=("$!")
  wait_until redis-cli -s "$PWD/p" ping
  RLOCK_URL=unix://worker:secret-one@$PWD/p
}

@test "the reply to the acquire is lost: we have the lock once" {
  loses NX 1
  run -0 rlock run k -- touch ran
  [[ -e ran ]] && wait_until is_free
}

@test "the refusal of the first script is lost: the second one counts" {
  loses EVAL 1
  run -0 rlock run k -- touch ran
  [[ -e ran ]] && wait_until is_free
  rm p
  loses EVALSHA 1
  run -0 rlock run k -- touch again
  [[ -e again ]] && wait_until is_free
}

@test "the reply to a release is lost: the lock is free, and nothing was lost" {
  local owner
  owner=$(rlock acquire k --lease 1m)
  loses IFEQ 1
  run -0 --separate-stderr rlock release k --owner "$owner"
  wait_until is_free
  rm p
  # The first one comes before the lock is taken.
  loses IFEQ 2
  run -0 --separate-stderr rlock run --lease 1m k -- touch ran
  [[ -e ran && -z $stderr ]] && wait_until is_free
}

@test "what needs a script is refused with a message: places in a queue, re-entry; a list or a hash is no lock" {
  redis srv set k foreign nx px 60000
  RLOCK_URL=unix://hand:secret-two@$srv_sock run -78 --separate-stderr rlock run -w 1m --priority 3 k -- true
  assert_says 'without scripts there is no queue'
  redis srv del k
  # A command does not inherit the password.
  run -78 --separate-stderr rlock run k -- env "RLOCK_URL=$RLOCK_URL" "$RLOCK" run k -- true
  assert_says 'without scripts a job cannot take the lock that it runs under'
  redis srv hset k a b
  RLOCK_URL=unix://hand:secret-two@$srv_sock run -76 --separate-stderr rlock run k -- true
  assert_says hash
  RLOCK_PROTOCOL=redisson run -77 --separate-stderr rlock run k -- true
  assert_says "'eval'"
}

@test "Spring's waiters are woken; a message says that those of python-redis-lock are not, and that no history is written" {
  RLOCK_URL=unix://hand:secret-two@$srv_sock
  redis srv subscribe REGISTRY-channel >heard 3>&- &
  jobs+=("$!")
  wait_until grep -q subscribe heard
  run -0 rlock run --like spring --key REGISTRY:% k -- true
  [[ -z $output ]]
  wait_until grep -qx REGISTRY:k heard
  run -0 --separate-stderr rlock run --like python-redis-lock --history k -- true
  assert_says 'waiters could not be told'
  assert_says 'the history could not be written'
}

@test "doctor says that only this kind of lock works" {
  RLOCK_URL=unix://hand:secret-two@$srv_sock run -78 rlock doctor
  grep -q '^ok  *SET IFEQ ' <<<"$output"
  grep -q '^warn  *EVAL .*only string locks work' <<<"$output"
  grep -q '^fail  *acquire ' <<<"$output"
}

@test "the right to scripts is revoked inside a nested run: its end does not release the outer run's lock" {
  redis srv acl setuser fickle on '>secret-three' '~*' '&*' +@all >/dev/null
  RLOCK_URL=unix://fickle:secret-three@$srv_sock
  cat >nested <<END
RLOCK_URL=$RLOCK_URL "$RLOCK" run k -- redis-cli -s "$srv_sock" acl setuser fickle -@scripting
redis-cli -s "$srv_sock" exists k >still-held
redis-cli -s "$srv_sock" acl setuser fickle +@scripting
END
  run -0 rlock run k -- sh nested
  [[ $(cat still-held) == 1 ]]
}

@test "several names: all or none" {
  redis srv set k2 foreign nx px 60000
  run -75 rlock run -n k1 k2 -- true
  [[ $(redis srv exists k1) == 0 ]]
  redis srv del k2
  run -0 rlock run k1 k2 -- redis-cli -s "$srv_sock" exists k1 k2
  [[ $output == 2 ]]
}

looks() { redis "$1" info commandstats | sed -n 's/^cmdstat_pttl:calls=\([0-9]*\),.*/\1/p' | grep . || echo 0; }
more_looks_than() { (($(looks "$1") > $2)); }

@test "a refusal of scripts is remembered as long as the connection, so it happens once" {
  redis srv set k foreign nx px 600000
  redis srv acl log reset
  "$RLOCK" run -w 1m k -- true 2>err 3>&- &
  jobs+=("$!")
  wait_until more_looks_than srv $(($(looks srv) + 10))
  run -0 redis srv acl log
  [[ $(awk '$0 == "count" { getline times } $0 == "object" { getline; print $0, times }' <<<"$output" |
    grep eval | sort) == $'eval 1\nevalsha 1' ]]
}

@test "a server that does not know EVAL: one connection serves all looks" {
  REDIS_SERVER=$VALKEY redis_start bare --rename-command EVAL '' --rename-command EVALSHA ''
  RLOCK_URL=unix://$bare_sock
  redis bare set k foreign nx px 600000
  "$RLOCK" run -w 1m k -- touch ran 2>err 3>&- &
  local waiter=$! named
  jobs+=("$waiter")
  wait_until more_looks_than bare $(($(looks bare) + 10))
  named=$(redis bare info commandstats | sed -n 's/^cmdstat_client|setname:calls=\([0-9]*\),.*/\1/p')
  redis bare del k
  wait "$waiter"
  redis_stop bare
  [[ -e ran ]]
  ((named <= 4))
}

@test "a server without IFEQ: refused before anything is taken, and the message says what is missing" {
  redis_start old
  redis old acl setuser worker on '>secret-one' '~k*' '&*' +@all -@scripting
  if [[ $(redis old set k a ifeq b px 1) == *'syntax error'* ]]; then
    RLOCK_URL=unix://worker:secret-one@$old_sock run -77 --separate-stderr rlock run k -- touch ran
    assert_says 'SET with IFEQ, which this server does not have'
    [[ ! -e ran && -z $(redis old keys '*') && $stderr != *secret-one* ]]
  else
    RLOCK_URL=unix://worker:secret-one@$old_sock run -0 rlock run k -- touch ran
  fi
  redis_stop old
}
