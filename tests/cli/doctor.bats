# rlock doctor: what it finds out about a server and a user's rights.

load ../lib/common

teardown() {
  redis_stop replica
  redis_stop srv
}

# start [OPTION VALUE ...]: a suitable server, apart from the options.
start() {
  redis_start srv --appendonly yes "$@"
  also_allow srv '+config|get' # what the doctor asks beyond the rights for locks
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
}

# says RESULT CHECK TEXT: the last run has that line, containing TEXT.
says() {
  grep -E "^$1 +$2  " <<<"$output" | grep -qF -- "$3" || {
    echo "no line '$1 $2' with: $3" >&2
    echo "$output$stderr" >&2
    return 1
  }
}

# others_are_fine CHECK...: all checks but these are ok.
others_are_fine() {
  local names
  names=$(IFS='|' && echo "$*")
  ! grep -vE '^(ok |[0-9]+ warnings?: )' <<<"$output" | grep -vE "^[a-z]+ +($names)  "
}

# grant [RIGHT [PREFIX]]: the user "job" gets the rights that `doctor --acl` prints and those that doctor itself needs, but
# not RIGHT.
grant() { # shellcheck disable=SC2046 # words of a command
  redis srv $(rlock doctor --acl "${@:2}" | sed 's/SETUSER rlock/SETUSER job/; s/>PASSWORD/>pw/; s/$/ +info +config|get/' |
    tr ' ' '\n' | grep -vxF -- "${1:-nothing}")
}

@test "a suitable server: every line is ok, the status is 0, and no lock is left" {
  start
  run -0 --separate-stderr rlock doctor
  others_are_fine
  [[ -z $stderr && ${#lines[@]} -ge 20 ]]
  says ok 'round trip' ' ms, median of '
  says ok clock 'runs evenly'
  says ok role master
  says ok persistence 'appendfsync everysec'
  says ok replicas none
  says ok acquire works
  is_clean srv
  [[ -z $(redis srv --scan --pattern 'redisson_lock_token:*') ]]
  # A private server is one, too.
  export RLOCK_URL=local:$BATS_TEST_TMPDIR/private
  run --separate-stderr rlock doctor
  rlock local stop
  [[ $status == 0 ]]
}

@test "a server that can lose data: a warning, and status 1; --json says the same" {
  start --appendonly no
  run -1 --separate-stderr rlock doctor
  others_are_fine persistence
  says warn persistence 'set appendonly yes'
  [[ $output == *$'\n1 warning: fit for locks, but see above' ]]
  run -1 --separate-stderr rlock doctor --json
  python3 - "$output" <<'PYTHON'
import json, sys
checks = {check["check"]: check for check in json.loads(sys.argv[1])}
assert all(set(check) == {"check", "result", "seen", "advice"} for check in checks.values()), checks
assert checks["persistence"]["result"] == "warn" and "appendonly" in checks["persistence"]["advice"], checks
assert checks["role"] == {"check": "role", "result": "ok", "seen": "master", "advice": ""}, checks
PYTHON
}

@test "a default user without rights: a warning if a restarted server drops the locks in its file" {
  local TEST_OVER= as_admin=(--user admin --pass any --no-auth-warning)
  start --appendfsync always --user admin on nopass '~*' '&*' +@all --user default off
  [[ $(redis srv "${as_admin[@]}" acl dryrun admin get x 2>&1) == OK ]] || skip 'this server has no ACL DRYRUN'
  export RLOCK_URL=unix://admin@$srv_sock RLOCK_PASSWORD=any
  local then=0
  if redis srv "${as_admin[@]}" info server | grep -qE '^valkey_version:(9\.[1-9]|[1-9][0-9])'; then
    run -0 --separate-stderr rlock doctor # it loads the file with all rights
    then=75
  else
    run -1 --separate-stderr rlock doctor
    others_are_fine persistence
    says warn persistence 'give that user its rights (~* &* +@all)'
  fi
  # Checks the precondition.
  rlock acquire job --lease 10m
  redis_kill9 srv
  redis_start srv --appendonly yes --appendfsync always --user admin on nopass '~*' '&*' +@all --user default off
  run "-$then" rlock run -n job -- true
  redis srv "${as_admin[@]}" acl setuser default '~*' '&*' +@all
  run -0 --separate-stderr rlock doctor
  others_are_fine
  rlock acquire other --lease 10m
  redis_kill9 srv
  redis_start srv --appendonly yes --appendfsync always --user admin on nopass '~*' '&*' +@all --user default off '~*' '&*' +@all
  run -75 rlock run -n other -- true
}

@test "a replica fails, and its master is told when a failover is safe" {
  not_over sentinel cluster 'the test has a port and a replica of its own'
  port=$(redis_free_port)
  start --port "$port"
  redis_start replica --replicaof 127.0.0.1 "$port"
  also_allow replica '+config|get'
  attached() { [[ $(redis srv info replication) == *state=online* && $(redis replica info replication) == *link_status:up* ]]; }
  wait_until attached
  run -78 --separate-stderr rlock doctor --url "$(redis_url replica)"
  says fail role "a replica of 127.0.0.1:$port"
  [[ $output != *acquire* ]]
  run -1 --separate-stderr rlock doctor
  others_are_fine replicas
  says warn replicas '1 connected'
  says warn replicas 'set min-replicas-to-write 1'
  says warn replicas '42s (min-replicas-max-lag + 2s + the lease of 30s)'
}

@test "a server that is unreachable, or hangs while it is checked, ends it with 69, a wrong password with 77" {
  start
  run -77 --separate-stderr rlock doctor --url "unix://job:wrong@$srv_sock"
  [[ -z $output && $stderr == *WRONGPASS* && $stderr != *:wrong* ]]
  redis_freeze srv
  run -69 --separate-stderr rlock doctor --server-timeout 100ms
  [[ -z $output && -n $stderr ]]
  redis_stop srv
  run -69 --separate-stderr rlock doctor
  [[ -z $output && -n $stderr ]]
}

@test "each missing right and channel is named" {
  start
  grant
  export RLOCK_URL="unix://job:pw@$srv_sock"
  run -0 --separate-stderr rlock doctor
  others_are_fine
  for case in +scan/SCAN/warn +subscribe/SUBSCRIBE/warn +evalsha/EVALSHA/warn +incrby/slots/warn +publish/PUBLISH/fail \
    '+pubsub|numsub/PUBSUB NUMSUB/fail' +time/TIME/fail +time/clock/fail +eval/EVAL/fail +pexpire/acquire/fail \
    +zadd/wait/fail +del/shared/warn; do
    IFS=/ read -r right check result <<<"$case"
    echo "without $right"
    grant "$right"
    redis srv script flush
    run --separate-stderr rlock doctor
    says "$result" "$check" ''
    [[ $status == 78 || $status == 1 && $result == warn ]]
  done
  grant '+info'
  run -1 --separate-stderr rlock doctor
  others_are_fine version role persistence eviction replicas epoch
  says warn eviction 'unknown'
  grant '&rlock:grant:*'
  run -78 --separate-stderr rlock doctor
  says warn SUBSCRIBE 'rlock doctor --acl'
  says fail PUBLISH 'rlock doctor --acl'
}

@test "a user whose names have a prefix is tried with that prefix" {
  start
  grant '' p:
  export RLOCK_URL="unix://job:pw@$srv_sock"
  run -78 --separate-stderr rlock doctor
  says fail acquire PREFIX
  run -0 --separate-stderr rlock doctor p:
  others_are_fine
}

@test "the remaining days of the server's certificate are counted, or those of a CA that expires before it" {
  source "$TESTS_DIR/lib/tls.bash"
  tls_authority ca 100
  tls_certificate server ca DNS:localhost
  export RLOCK_TLS_CA=$TLS_DIR/ca.crt
  tls_start srv --appendonly yes
  run -1 --separate-stderr rlock doctor --url "rediss://localhost:$srv_tls"
  others_are_fine certificate
  says warn certificate 'renew the server'
  [[ $output =~ 'valid for '(2d00|1d23)h ]]
  redis_stop srv
  tls_authority short 5
  tls_certificate server short DNS:localhost 100
  tls_start srv --appendonly yes
  run -1 --separate-stderr rlock doctor --tls-ca "$TLS_DIR/short.crt" --url "rediss://localhost:$srv_tls"
  others_are_fine certificate
  says warn certificate 'an authority in its chain is valid for '
  [[ $output =~ 'valid for '(5d00|4d23)h ]]
}
