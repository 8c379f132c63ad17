#!/usr/bin/env bats
# Names of options from earlier versions of 1.x: they are understood, but not shown.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
  cd "$BATS_TEST_TMPDIR" || return
  umask 077
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

# shown OPTION...: value and origin of server-timeout.
shown() { rlock config "$@" 2>/dev/null | tr -s ' ' | sed -n 's/^server-timeout //p'; }

@test "--timeout, RLOCK_TIMEOUT and timeout are server-timeout" {
  echo 'timeout = "2s"' >c.toml
  [[ $(shown --timeout 3s) == '3s --timeout' && $(shown --timeout=3s) == '3s --timeout' ]]
  [[ $(RLOCK_TIMEOUT=4s shown) == '4s RLOCK_TIMEOUT' && $(shown --config c.toml) == '2s c.toml:1: timeout' ]]
  # The order of the sources is the same, and within one source the current name counts.
  [[ $(RLOCK_TIMEOUT=4s shown --server-timeout 5s) == '5s --server-timeout' ]]
  [[ $(RLOCK_SERVER_TIMEOUT=4s shown --timeout 5s) == '5s --timeout' ]]
  [[ $(RLOCK_SERVER_TIMEOUT=4s RLOCK_TIMEOUT=5s shown) == '4s RLOCK_SERVER_TIMEOUT' ]]
  [[ $(RLOCK_TIMEOUT=5s RLOCK_SERVER_TIMEOUT=4s shown) == '4s RLOCK_SERVER_TIMEOUT' ]]
  run -64 --separate-stderr rlock run --timeout 1s --server-timeout 2s x -- touch ran
  assert_says '--server-timeout is given twice'
  run -64 --separate-stderr rlock run --timeout 1ms x -- touch ran
  assert_says '--timeout: 1ms is too short; use at least 10ms'
  run -0 --separate-stderr rlock run --timeout 60s x -- echo ran
  [[ $output == ran && -z $stderr ]]
}

@test "--timeout above a minute: a warning that names --wait" {
  local said='this is the time for one exchange with the server; use --wait to limit the wait'
  run -0 --separate-stderr rlock run --timeout 10m x -- true
  [[ $stderr == "rlock: warning: --timeout: $said"* ]]
  RLOCK_TIMEOUT=61s run -0 --separate-stderr rlock run x -- true
  [[ $stderr == "rlock: warning: RLOCK_TIMEOUT: $said"* ]]
  echo 'timeout = "10m"' >c.toml
  run -0 --separate-stderr rlock run --config c.toml x -- true
  [[ $stderr == "rlock: warning: c.toml:1: timeout: $said"* ]]
  run -0 --separate-stderr rlock -q run --timeout 10m x -- true
  [[ -z $stderr ]]
  run -0 --separate-stderr rlock run --server-timeout 10m x -- true
  [[ -z $stderr ]]
}

@test "help does not show the old name" {
  run -0 rlock run --help
  [[ $output == *'--server-timeout DUR'* && $output != *' --timeout'* ]]
}
