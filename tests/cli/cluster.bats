# redis+cluster:// addresses: clusters that change, break, or have requirements. cluster_verbs.bats has the tests that
# only need a cluster.

unset TEST_OVER # these have clusters of their own

load ../lib/job

setup() {
  source "$TESTS_DIR/lib/cluster.bash"
  cd "$BATS_TEST_TMPDIR" || return
}

teardown() {
  touch "$BATS_TEST_TMPDIR/go"
  cluster_stop
}

# refused STATUS TEXT URL: a job exits with STATUS and TEXT before it starts.
refused() { tells "$1" "$2" rlock run --url "$3" "${4:-x}" -- touch ran && [[ ! -e ran ]]; }

@test "doctor checks each server; one that hangs does not prevent renewals on another; slots without a server are noticed" {
  cluster_use 3 0 --appendonly yes --cluster-require-full-coverage no # else all refuse once they miss it
  live=$(cluster_name c1) dead=$(cluster_name c2)
  run -0 rlock doctor
  [[ $(grep -c '^ok *server ' <<<"$output") == 3 && $output == *'3 servers share the locks'* ]]
  # A name that is longer than the column makes it wider.
  not grep -vE '^(ok|warn)  +[^ ].* ' <<<"$output"
  [[ $(redis c1 command info spublish) != *spublish* ]] || grep -qE '^ok +PUBSUB SHARDNUMSUB +works$' <<<"$output"
  # The job ends as after any loss.
  job_start --lease 5s "$live" "$dead" -- sleep 600
  wait_until held_on c1 "$live"
  wait_until held_on c2 "$dead"
  redis c1 config resetstat
  redis_freeze c2
  renewed() { (($(scripts_run c1) > 0)); }
  wait_until renewed
  job_status 74
  redis_thaw c2
  redis c2 cluster delslots 6000 6001
  redis c1 cluster delslots 6000 6001 || true
  redis c3 cluster delslots 6000 6001 || true
  tells 78 '2 of 16384 hash slots have no server' rlock doctor --url "$(cluster_url c2)"
  redis_kill9 c2
  run -0 rlock run "$live" -- echo mine
  refused 69 '' "$RLOCK_URL" "$dead"
}

@test "a server that is cut off and names a dead owner of the slot is not asked forever" {
  cluster_use 3 0 --cluster-require-full-coverage no
  name=$(cluster_name c2)
  known=$(redis c1 cluster nodes | grep ":$c2_port@" | cut -d' ' -f 9-)
  cluster_cut_off c1
  CLUSTER_MASTERS=(c2 c3)
  cluster_move "$(cluster_slot "$name")" c2 c3
  redis_kill9 c2
  prints mine rlock run --url "$(cluster_url c1 c3)" "$name" -- echo mine
  # Under the seed's name, and under the one in its own list.
  prints mine rlock run --url "redis+cluster://localhost:$c1_port" "$name" -- echo mine
  # It has learned nothing new meanwhile.
  [[ $(redis c1 cluster nodes | grep ":$c2_port@" | cut -d' ' -f 9-) == "$known" ]]
}

@test "one server: addresses, databases, and the rights that doctor prints are sufficient" {
  refused 64 'a host is missing' redis+cluster://
  refused 64 'write the scheme once, before all hosts' redis+cluster://a,redis://b
  cluster_use 1 0 --bind '127.0.0.1 -::1'
  refused 78 'SELECT' "$(cluster_url)/3"
  prints six rlock run --url "redis+cluster://[::1]:$c1_port" x -- echo six
  # shellcheck disable=SC2046 # words of a command
  redis c1 $(rlock doctor --acl | sed 's/>PASSWORD/>pw/')
  export RLOCK_PASSWORD=pw RLOCK_URL=redis+cluster://rlock@127.0.0.1:$c1_port
  hands_over x c1
  run -1 rlock doctor # warnings
  [[ $output != *fail* && $output != *NOPERM* ]]
}

# over_tls NAMES: all servers use TLS from now on, with a certificate for these names.
over_tls() {
  source "$TESTS_DIR/lib/tls.bash"
  tls_authority ca
  tls_certificate server ca "$1"
  CLUSTER_SCHEME=rediss+cluster
  export RLOCK_TLS_CA=$TLS_DIR/ca.crt
}

@test "over TLS, with a password: a holder, a waiter, and a slot that moves" {
  over_tls IP:127.0.0.1
  cluster_use
  name=$(cluster_name c3)
  export RLOCK_PASSWORD=secret REDISCLI_AUTH=secret
  for server in c1 c2 c3; do REDISCLI_AUTH='' redis $server config set requirepass secret; done
  job_start --lease 10s "$name" "$(cluster_name c1)" -- bash -c 'until [[ -e go ]]; do sleep 0.1; done; echo first >>order'
  wait_until held_on c3 "$name"
  "$RLOCK" run "$name" -- bash -c 'echo second >>order' 3>&- &
  second=$!
  wait_until queued "$name" 1 c3
  cluster_move "$(cluster_slot "$name")" c3 c2
  wait_until eval '[[ $(redis c2 pubsub shardchannels) == *"rlock:grant:{$name}"* ]]'
  job_finish go 0
  wait "$second"
  [[ $(paste -sd' ' order) == 'first second' ]]
  all_clean
}

@test "user and password are used for every server, also for one that joins after a job's start and gets its slot" {
  cluster_use
  for server in c1 c2 c3; do redis $server config set requirepass secret; done
  refused 77 'requires a password' "$RLOCK_URL"
  (umask 077 && echo secret >password)
  export REDISCLI_AUTH=secret
  for server in c1 c2 c3; do
    name=$(cluster_name $server)
    run -0 rlock run --password-file password "$name" -- echo mine
    run -0 rlock run --password-command 'echo secret' "$name" -- echo mine
  done
  export RLOCK_PASSWORD=secret
  job_start --lease 10s "$name" -- bash -c 'until [[ -e go ]]; do sleep 0.1; done'
  wait_until held_on c3 "$name"
  cluster_node c4 --requirepass secret
  cluster_join c4
  wait_until cluster_ok c4
  cluster_move "$(cluster_slot "$name")" c3 c4
  wait_until eval '(($(scripts_run c4) > 0))' # it is renewed there
  job_finish go 0
  prints mine rlock run -n "$name" -- echo mine
}

@test "over TLS, a server is verified by the name that it announces" {
  over_tls DNS:localhost
  cluster_use 2 0 --cluster-announce-hostname localhost
  # c2 is known only from the list of c1, which has its address, too.
  prints mine rlock run --url "rediss+cluster://localhost:$c1_port" "$(cluster_name c2)" -- echo mine
  refused 69 '127.0.0.1' "$RLOCK_URL"
}

@test "replicas have each lock before the command starts; a master dies while a job holds and another waits: its replica takes over" {
  cluster_use 3 1
  prints all rlock run --wait-replicas 1 "$(cluster_name c1)" "$(cluster_name c2)" "$(cluster_name c3)" -- echo all
  redis_freeze c3r1
  run -0 rlock run --wait-replicas 1 "$(cluster_name c1)" -- echo mine
  run -69 rlock run -n --wait-replicas 1 "$(cluster_name c1)" "$(cluster_name c3)" -- echo all
  redis_thaw c3r1
  name=$(cluster_name c2)
  job_start --lease 20s "$name" -- bash -c 'until [[ -e go ]]; do sleep 0.1; done; echo first >>order'
  wait_until held_on c2 "$name"
  "$RLOCK" run -w 2m "$name" -- bash -c 'echo second >>order' 2>/dev/null 3>&- &
  local second=$!
  copied() { [[ $(printf 'readonly\nzcard "rlock:queue:{%s}"\n' "$name" | redis c2r1 | tail -1) == 1 ]]; }
  wait_until copied
  redis_kill9 c2
  wait_until eval '[[ $(redis c2r1 role) == master* ]]'
  left=$(redis c2r1 pttl "$name")
  wait_until renewed_past "$left" "$name" c2r1
  job_finish go 0
  wait "$second"
  [[ $(paste -sd' ' order) == 'first second' ]]
}

@test "databases, if the servers have them" {
  [[ $("$REDIS_SERVER" --version) =~ ^Valkey.*v=([0-9]+) && ${BASH_REMATCH[1]} -ge 9 ]] || skip 'this server has one database in a cluster'
  cluster_start 1 0 --cluster-databases 4
  RLOCK_URL=$(cluster_url)/3 prints 1 rlock run x -- redis-cli -p "$c1_port" -n 3 exists x
  id=$(RLOCK_URL=$(cluster_url)/3 rlock acquire x --lease 60s)
  run -0 rlock run --url "$(cluster_url)" -n x -- true
  RLOCK_URL=$(cluster_url)/3 job_start x -- echo mine
  waits_in_3() { [[ $(redis c1 -n 3 zcard 'rlock:queue:{x}') == 1 ]]; }
  wait_until waits_in_3
  RLOCK_URL=$(cluster_url)/3 rlock release x --owner "$id"
  job_status 0
  [[ $output == mine ]]
  run -78 rlock status --url "$(cluster_url)/4"
}
