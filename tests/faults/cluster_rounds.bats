# One exchange with several servers of a cluster, one of which hangs, forgets, or has lost its slot.

unset TEST_OVER # these have a cluster of their own

CLUSTER_WITH=(--cluster-require-full-coverage no)
load ../lib/cluster_file

setup() {
  CLUSTER_MASTERS=(c1 c2 c3) CLUSTER_NODES=(c1 c2 c3)
  cd "$BATS_TEST_TMPDIR" || return
  # Names on two servers, which no other test uses. rlock takes its locks in the order of their names.
  one="1-{$(cluster_name c1 "$BATS_TEST_NUMBER")}"
  other="2-{$(cluster_name c2 "$BATS_TEST_NUMBER")}"
}
teardown() {
  touch go
  redis_thaw c2
}

until_told() { printf '%s' 'until [[ -e go ]]; do sleep 0.1; done'; }
# calls SERVER COMMAND ...: how often it has executed them.
calls() {
  local IFS='|'
  redis "$1" info commandstats | awk -F'[=,]' "/^cmdstat_(${*:2}):/ { sum += \$2 } END { print sum + 0 }"
}
scripts() { calls "$1" eval evalsha; }
# scripts_beyond SERVER NUMBER
scripts_beyond() { (($(scripts "$1") > $2)); }
# job_holds OPTION ... NAME ...: a job holds them all until it is told to end.
job_holds() {
  job_start "$@" -- bash -c "$(until_told)"
  job_parts
}

@test "a slot moves, and its old server closes its connections, between two renewals: both locks are kept" {
  # Nothing but the renewal tells the job who keeps the slot now.
  for server in c1 c2 c3; do redis $server acl setuser default -subscribe -ssubscribe >/dev/null; done
  job_holds --lease 5s "$one" "$other"
  so_far=$(scripts c2)
  wait_until scripts_beyond c2 "$so_far"
  cluster_move "$(cluster_slot "$other")" c2 c1
  redis c2 client kill type normal >/dev/null
  so_far=$(scripts c1)
  wait_until scripts_beyond c1 $((so_far + 4))
  held_on c1 "$one"
  held_on c1 "$other"
  touch go
  job_status
  show
  for server in c1 c2 c3; do redis $server acl setuser default +subscribe +ssubscribe >/dev/null; done
  # If the move takes long, a renewal says that it finds no server for the slot.
  [[ $status == 0 && ( -z $stderr || $stderr == *'disagree about who keeps the lock: ASK '*'renewed again' ) ]]
}

@test "the time is up while half of a lock's keys have moved: 69, and the server's message" {
  slot=$(cluster_slot "$one")
  id=$(rlock acquire "$one" --lease 60s)
  cluster_begin_move "$slot" c1 c2
  redis c1 migrate 127.0.0.1 "$c2_port" "$one" 0 5000
  tells 69 TRYAGAIN rlock status --server-timeout 500ms "$one"
  assert_says "slot $slot is being moved"
  [[ $stderr == *":$c2_port"*TRYAGAIN* ]] # it is c2 that says so, which c1 names
  cluster_move_keys "$slot" c1 c2
  cluster_end_move "$slot" c1 c2
  run -0 rlock release "$one" --owner "$id"
}

@test "a server says that its lock is gone while another one hangs: the job is told" {
  job_holds --lease 6s "$one" "$other"
  redis_freeze c2
  redis c1 del "$one"
  job_status
  redis_thaw c2
  show
  [[ $status == 74 && $stderr == *"$one"*'it is no longer held'* ]]
}

@test "a waiter still listens while its locks on other servers are renewed" {
  id=$(rlock acquire "$other" --lease 60s)
  job_start --lease 5s "$one" "$other" -- true
  wait_until eval '[[ $(redis c2 zcard "rlock:queue:$other") == 1 ]]'
  so_far=$(scripts c1)
  wait_until scripts_beyond c1 "$so_far"
  asked=$(calls c2 ssubscribe subscribe)
  wait_until scripts_beyond c1 $((so_far + 2))
  [[ $(calls c2 ssubscribe subscribe) == "$asked" ]]
  rlock release "$other" --owner "$id"
  job_status 0
}

@test "a connection without the reply to ASKING is not used again" {
  slot=$(cluster_slot "$one")
  cluster_begin_move "$slot" c1 c2
  # Redis refuses a script on both sides until the move is over, because keys that it names do not exist.
  job_start -v -w 10m --server-timeout 2s "$one" -- true
  ours() { redis c2 client list | sed -n "s/^id=\([0-9]*\) .* name=rlock:.*/\1/p" | grep -vx "${1:-}"; }
  wait_until ours
  connection=$(ours)
  redis_freeze c2
  wait_until said 'no answer in time'
  redis_thaw c2
  wait_until ours "$connection"
  cluster_end_move "$slot" c1 c2
  job_status 0
}

@test "only a server that has forgotten the scripts is sent them again" {
  "$RLOCK" run "$one" "$other" -- true
  redis c1 config resetstat
  redis c2 config resetstat
  job_holds --lease 8s "$one" "$other"
  redis c2 script flush
  wait_until eval '(($(calls c2 eval) > 0))'
  job_finish go 0
  [[ $(calls c1 eval) == 0 && $(calls c1 evalsha) == "$(calls c2 evalsha)" ]]
}
