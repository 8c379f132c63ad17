#!/usr/bin/env bats
# The user that rlock runs as: /etc/passwd, and what getent(1) knows beyond it.

# shellcheck disable=SC2154 # srv_dir: set by redis_start

load ../lib/common

setup_file() {
  redis_start srv --unixsocketperm 777
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true # for as_nobody
}
teardown_file() { redis_stop srv; }
setup() {
  not_over tls 'the jobs have no variables, and so no authority'
  [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || skip 'only root can give a job an /etc of its own'
  export RLOCK_URL
  RLOCK_URL=$(redis_url srv)
  cd "$BATS_TEST_TMPDIR" || return
  printf '+::::::\nroot:x:0:0:root:/root:/bin/sh\n' >passwd
}
teardown() { assert_clean srv; }

# A getent(1) of a host whose users are in LDAP. It stands in place of the real one for what we start.
getent_that() { printf '#!/bin/sh\n%s\n' "$1" >getent && chmod 755 getent; }

# as USER COMMAND...: as that user id, where passwd and getent of this folder are those of the host.
as() {
  unshare -m sh -c 'mount --bind passwd /etc/passwd && mount --bind getent /usr/bin/getent && user=$1 && shift &&
    exec env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL" setpriv --reuid="$user" --regid="$user" --clear-groups "$@"' sh "$@"
}
holder() { as "$1" "$RLOCK" run x -- "$RLOCK" status x | sed -n 's/^holder *\(.*\)@.*/\1/p'; }

@test "a user who stands in /etc/passwd; nobody is asked" {
  getent_that 'touch asked'
  run -0 holder 0
  [[ $output == root && ! -e asked ]]
}

@test "a user whom only getent knows" {
  needs_nobody
  getent_that 'echo "jane.doe:x:61234:61234:Jane:/home/jane:/bin/sh"'
  run -0 holder 61234
  [[ $output == jane.doe ]]
}

@test "a user whom nobody knows goes by the number" {
  needs_nobody
  getent_that 'exit 2'
  run -0 holder 61234
  [[ $output == 61234 ]]
}

@test "an answer about somebody else, or one that nobody can read, is none" {
  needs_nobody
  local answer
  for answer in 'jane:x:61235:61235:Jane:/home/jane:/bin/sh' 'jane:x:61234' '::::' '+:x:61234:61234:::'; do
    getent_that "echo '$answer'"
    run -0 holder 61234
    [[ $output == 61234 ]]
  done
}

@test "a database that hangs is not waited for" {
  needs_nobody
  getent_that 'exec sleep 100'
  local began
  began=$(now_ms)
  run -0 as 61234 "$RLOCK" run x -- echo ran
  [[ $output == ran ]]
  not past 20000
}
