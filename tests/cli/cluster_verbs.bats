# redis+cluster:// addresses: each lock is on the server that keeps its slot, and nothing else is different. These tests
# share a cluster of three servers; cluster.bats has those that change or break one.

unset TEST_OVER # this is a cluster already

load ../lib/odd
load ../lib/cluster_file

@test "regardless of which server is asked, a lock is on the one that keeps its slot" {
  for seed in c1 c2 c3; do
    for owner in c1 c2 c3; do
      name=$(cluster_name "$owner")
      prints 1 rlock run --url "$(cluster_url "$seed")" "$name" -- redis-cli -s "$(eval "echo \$${owner}_sock")" exists "$name"
    done
  done
  all_clean
}

@test "every subcommand finds a lock on any server" {
  for owner in c1 c2 c3; do
    name=$(cluster_name "$owner")
    id=$(rlock acquire "$name" --lease 60s)
    held_on "$owner" "$name"
    run -0 rlock renew "$name" --owner "$id" --lease 90s
    (($(redis "$owner" pttl "$name") > 60000))
    tells 0 "$id" rlock status "$name"
    run -75 rlock run -n "$name" -- true
    run -0 rlock release "$name" --owner "$id"
    rlock acquire "$name" --lease 60s >/dev/null
    run -0 rlock force-unlock --now --yes "$name"
    run -0 rlock run -s "$name-shared" -- true
  done
  all_clean
}

@test "status without names shows the locks of all servers; readers, slots and nested runs" {
  names=("$(cluster_name c1)" "$(cluster_name c2)" "$(cluster_name c3)")
  run -0 --separate-stderr rlock run "${names[@]}" -- "$RLOCK" status --json
  for name in "${names[@]}"; do [[ $output == *"\"$name\""* ]]; done
  all_clean
  prints all rlock run -s book -- "$RLOCK" run -s book -- "$RLOCK" run --slots 2 seats -- "$RLOCK" run --slots 2 seats -- echo all
}

@test "several locks on several servers are renewed together" {
  local names=() name
  for name in c1 c2 c3; do names+=("$(cluster_name $name 1)" "$(cluster_name $name 2)"); done
  job_start --lease 5s "${names[@]}" -- bash -c 'until [[ -e go ]]; do sleep 0.1; done; exit 3'
  wait_until held_on c3 "$(cluster_name c3)"
  renewed() { (($(redis c1 pttl "${names[0]}") > ${left:-0})) && (($(redis c3 pttl "${names[4]}") > 3400)); }
  sleep_until_low() { (($(redis c1 pttl "${names[0]}") < 3500)); }
  wait_until sleep_until_low
  local left=3500
  wait_until renewed
  job_finish go 3
  [[ -z $stderr ]]
  all_clean
}

# channels NODE: those with listeners; Redis 6.2 has no sharded ones.
channels() { redis "$1" pubsub channels && redis "$1" pubsub shardchannels; }

@test "a waiter listens on the lock's server, and a hand-off takes three requests" {
  name=$(cluster_name c3)
  rlock run "$name" -- true # the scripts are known from now on
  id=$(rlock acquire "$name" --lease 60s)
  job_start --url "$(cluster_url c1)" "$name" -- true
  wait_until queued "$name" 1 c3
  wait_until eval '[[ $(channels c3 | grep -c "rlock:grant:{$name}") == 1 ]]'
  job_parts # it is the first one, and ready
  redis c3 config resetstat
  rlock release "$name" --owner "$id"
  job_status 0
  [[ $(scripts_run c3) == 4 ]] # `rlock release` has looked first
  all_clean
}

@test "a holder is asked to stop, regardless of its lock's server" {
  for name in "$(cluster_name c1)" "$(cluster_name c3)"; do
    job_start "$name" "other-$name" -- sleep 600
    asked() { timeout 20 "$RLOCK" force-unlock --yes "$1"; }
    wait_until eval '[[ $(channels c1; channels c2; channels c3) == *"rlock:control:{$name}"* ]]'
    run -0 asked "$name"
    job_status 74
  done
  all_clean
}

@test "a slow password command works for a cluster" {
  for node in c1 c2 c3; do redis "$node" acl setuser worker reset on '>secret-one' '~*' '&*' +@all >/dev/null; done
  name=$(cluster_name c3)
  prints ran rlock run --url "${RLOCK_URL/:\/\//:\/\/worker@}" --password-command 'sleep 2; echo secret-one' "$name" -- echo ran
  all_clean
}

@test "a server that is not a cluster, and a plain address of a cluster, name the right scheme" {
  port=$(redis_free_port)
  redis_start plain --port "$port"
  tells 78 'write redis:// instead of redis+cluster://' rlock run --url "redis+cluster://127.0.0.1:$port" x -- touch ran
  redis_stop plain
  run -78 rlock run --url "redis://127.0.0.1:$c1_port" "$(cluster_name c2)" -- touch ran
  [[ $output == *'write redis+cluster:// instead of redis://'* && ! -e ran ]]
}

@test "seeds that are dead, hang, or are not Redis are skipped" {
  name=$(cluster_name c2)
  prints mine rlock run --url "redis+cluster://127.0.0.1:1,127.0.0.1:$c1_port" "$name" -- echo mine
  odd http
  run -0 rlock run --url "redis+cluster://${url#*//},127.0.0.1:$c1_port" "$name" -- echo mine
  end_odd
  redis_freeze c1
  run -0 rlock run --url "$(cluster_url c1 c3)" "$name" -- echo mine
  redis_thaw c1
  for name in c1 c2 c3; do wait_until cluster_ok "$name"; done
  [[ $output == mine ]]
  run -69 rlock run --url redis+cluster://127.0.0.1:1 x -- touch ran
  [[ $output == *'Connection refused'* && ! -e ran ]]
}

# The slot stays where it is then, so this is the last test.
@test "while half of a lock's keys have moved, a release waits" {
  name=$(cluster_name c1 2)
  slot=$(cluster_slot "$name")
  id=$(rlock acquire "$name" --lease 60s)
  cluster_begin_move "$slot" c1 c2
  redis c1 migrate 127.0.0.1 "$c2_port" "$name" 0 5000
  rlock release -v "$name" --owner "$id" 2>err 3>&- &
  local release=$!
  wait_until grep -q TRYAGAIN err
  cluster_move_keys "$slot" c1 c2
  cluster_end_move "$slot" c1 c2
  wait "$release"
  [[ $(redis c2 exists "$name") == 0 ]]
}
