# The user that rlock runs as: from /etc/passwd, or from getent(1).

load ../lib/server

setup_file() { open_server; }
setup() {
  not_over tls 'the jobs have no variables, and so no authority'
  [[ $(id -u) == 0 ]] && unshare -m true 2>/dev/null || skip 'only root can give a job an /etc of its own'
  use_server srv
  printf '+::::::\nroot:x:0:0:root:/root:/bin/sh\n' >passwd
}

# A getent(1) of a host whose users are in LDAP, which replaces the real one for the programs that we start.
getent_that() { printf '#!/bin/sh\n%s\n' "$1" >getent && chmod 755 getent; }

# as USER COMMAND...: as that user id, with passwd and getent from this folder.
as() {
  unshare -m sh -c 'mount --bind passwd /etc/passwd && mount --bind getent /usr/bin/getent && user=$1 && shift &&
    exec env -i PATH="$PATH" RLOCK_URL="$RLOCK_URL" setpriv --reuid="$user" --regid="$user" --clear-groups "$@"' sh "$@"
}
holder() { as "$1" "$RLOCK" run x -- "$RLOCK" status x | sed -n 's/^holder *\(.*\)@.*/\1/p'; }

@test "a user in /etc/passwd: getent is not asked; one that only getent knows; a number if it does not, or its answer is wrong" {
  getent_that 'touch asked'
  run -0 holder 0
  [[ $output == root && ! -e asked ]]
  needs_nobody
  getent_that 'echo "jane.doe:x:61234:61234:Jane:/home/jane:/bin/sh"'
  prints jane.doe holder 61234
  for text in 'exit 2' 'echo jane:x:61235:61235:Jane:/home/jane:/bin/sh' 'echo jane:x:61234' 'echo ::::' 'echo +:x:61234:61234:::'; do
    getent_that "$text"
    prints 61234 holder 61234
  done
}

@test "a database that hangs is not waited for" {
  needs_nobody
  getent_that 'exec sleep 100'
  began=$(now_ms)
  prints ran as 61234 "$RLOCK" run x -- echo ran
  not past 20000
}
