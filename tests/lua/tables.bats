# Runs the tables beside this file, each as one test. What their lines mean is in tables.py.

load ../lib/common
load ../lib/tables

setup_file() {
  redis_start srv
  # As rlock does in a cluster from Redis 7 on.
  export sharded=''
  [[ ${TEST_OVER:-} != cluster || $(redis srv command info spublish) != *spublish* ]] || sharded=--sharded
  cmake -DOUT="$BATS_FILE_TMPDIR/lua" -P "$TESTS_DIR/../lua/embed.cmake"
  export WORDS=$BATS_FILE_TMPDIR/words.lua
  sed -e "/^--SCRIPT/{r $BATS_FILE_TMPDIR/lua/script.lua" -e 'd}' "$TESTS_DIR/lib/script_words.lua" >"$WORDS"
  # Sentinel publishes on the server, too, where some tests count.
  way_to srv
  export WAY="${way[*]}"
  [[ ${TEST_OVER:-} != sentinel ]] || redis_freeze srv_watch
}
teardown_file() { redis_stop srv; }

table_file() {
  local words
  read -ra words <<<"$WAY"
  python3 -B "$TESTS_DIR/lua/tables.py" "$WORDS" "$srv_sock" "$1" ${sharded:+"$sharded"} "${words[@]}"
}

@test "every table has a test here" { each_table_has_a_test; }

# wrong TEXT LINE...: the same for a section with these lines.
wrong() { noticed "$1" '== a' "${@:2}"; }

@test "a wrong expectation is noticed, with its line, and so is a line that means nothing" {
  wrong 'wrong.table:3: renew a => renewed' 'acquire a -> granted' 'renew a => renewed' 'inspect'
  wrong '-> held: not so' 'acquire a -> held'
  wrong '+> a 2: not so' 'acquire a' 'hgetall $lock +> a 2'
  wrong '!> a: not so' 'acquire a' 'hgetall $lock !> a'
  wrong '1..2: not so' 'acquire a' 'pttl $lock -> 1..2'
  wrong 'it does not fail' 'acquire a ! OOM'
  wrong 'OOM' full 'acquire a ! right'
  wrong 'the server says: ERR unknown command' 'acquired a'
  wrong 'there is no $lick' 'exists $lick => 0'
  wrong 'keys without a TTL: x' 'set x y'
  wrong 'does not hold: 1 == 2' 'check 1 == 2'
  wrong 'has not heard it' 'listen b' 'hears b granted'
  wrong 'has heard' 'line a b' 'release a' 'silent b'
  wrong 'keys have changed' 'unchanged acquire a'
  wrong 'it executed' 'for i 1 9 "set x$i y px 60000"' "little eval \"for i = 1, 2000 do redis.call('get', 'x') end\" 0"
  wrong 'not done after 0 calls' 'until_done 0 acquire a'
  wrong 'the reply is too long' 'size 9 acquire a'
  wrong "with {'x': '2'}" '@ x: 1 2' 'check $x == 1'
  wrong '0 failures in 0 sections' '@ x:'
}

@test "acquire" { table acquire; }
@test "acquire_refused" { table acquire_refused; }
@test "bounded" { table bounded; }
@test "fair" { table fair; }
@test "force_unlock" { table force_unlock; }
@test "inspect" { table inspect; }
@test "kind" { table kind; }
@test "once" { table once; }
@test "pools" { table pools; }
@test "queue" { table queue; }
@test "raise" { table raise; }
@test "read_write" { table read_write; }
@test "release" { table release; }
@test "renew" { table renew; }
@test "semaphore" { table semaphore; }
@test "string" { table string; }
@test "token" { table token; }
@test "untrusted" { table untrusted; }
