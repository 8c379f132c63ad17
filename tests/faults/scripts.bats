# Scripts are sent by name. The server may forget them, and a user may lack the right to name them.

load ../lib/server

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  export RLOCK_URL=unix://$srv_sock
  redis srv script flush >/dev/null
  redis srv config resetstat >/dev/null
}

# calls COMMAND: how often it was sent to the server.
calls() { redis srv info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0; }

@test "the script is sent as a whole once, and then by its name" {
  rlock run job -- true
  [[ $(calls eval) == 1 && $(calls evalsha) == 2 ]]
  rlock run job -- true
  [[ $(calls eval) == 1 && $(calls evalsha) == 4 ]]
}

@test "the server forgets its scripts during a job: it is renewed and released" {
  rlock run job -- true
  run -5 rlock run --lease 6s job -- bash -c '
    redis-cli -s "$0" script flush
    renewed() { redis-cli -s "$0" info commandstats | grep -q "cmdstat_eval:calls=2,"; }
    until renewed "$0"; do sleep 0.1; done
    redis-cli -s "$0" script flush
    exit 5' "$srv_sock"
  [[ $(calls eval) == 3 && $(redis srv exists job) == 0 ]]
}

@test "several locks are renewed in one exchange; if the server has forgotten the script, it is sent once" {
  run -0 rlock run --lease 6s a b c d e -- bash -c '
    redis-cli -s "$0" script flush && redis-cli -s "$0" config resetstat
    until redis-cli -s "$0" info commandstats | grep -q "cmdstat_evalsha:calls=9,"; do sleep 0.1; done
    redis-cli -s "$0" info commandstats | grep -q "cmdstat_eval:calls=1,"' "$srv_sock"
}

@test "scripts are sent as a whole if a user has no right to EVALSHA, or a server does not have it, however it says so" {
  redis srv acl setuser plain reset on '>pw' '~*' '&*' +@all -evalsha
  RLOCK_URL=unix://plain@$srv_sock RLOCK_PASSWORD=pw run -0 --separate-stderr rlock run job -- true
  [[ -z $stderr ]]
  [[ $(calls eval) == 2 ]]
  redis_start other --rename-command EVALSHA ''
  RLOCK_URL=unix://$other_sock run -0 --separate-stderr rlock run job -- true
  [[ -z $stderr ]]
  redis_stop other
  for words in 'ERR unknown command `EVALSHA`, with args beginning with: `0`' "ERR unknown command 'evalsha'" \
    "NOPERM this user has no permissions to run the 'evalsha' command or its subcommand"; do
    NO_EVALSHA=$words proxy_start "$srv_sock"
    run -0 --separate-stderr rlock run job -- true
    end_mine_wholly "$proxy"
    [[ -z $stderr ]]
  done
}
