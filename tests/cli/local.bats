# local: addresses, and rlock local.

load ../lib/job

setup() {
  cd "$BATS_TEST_TMPDIR" || return
  dir=$PWD/l
  export RLOCK_URL=local:$dir
}

teardown() {
  rm -f "$dir/filler" # a server cannot stop on a full disk
  RLOCK_URL=local:$dir "$RLOCK" local stop --yes || true
  wait_until not running
  umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || true
}

# servers: the pids of those in the folder. Children that write files have another name.
servers() {
  local process name
  for process in /proc/[0-9]*; do
    [[ $process/cwd -ef $dir ]] || continue
    IFS= read -rd '' name 2>/dev/null <"$process/cmdline" || true
    [[ ! $name =~ ^[^\ ]*redis-server ]] || gone "${process#/proc/}" || echo "${process#/proc/}"
  done
}
running() { [[ -n $(servers) ]]; }
one_server() { [[ $(servers | wc -l) == 1 ]]; }
# kill_server: sets $before, its pid.
kill_server() {
  before=$(servers)
  kill_off -9 "$before"
}
another() { one_server && [[ $(servers) != "$before" ]]; }

# held: a job holds the lock until the file go exists; $job is its pid.
held() {
  "$RLOCK" run "$@" job -- sh -c "touch started; until [ -e go ]; do sleep 0.1; done" 2>err 3>&- &
  job=$!
  wait_until test -e started
  wait_until test -S "$dir/redis.sock"
}
# waiter: a job that waits for the lock, and ends with 5; $waiter is its pid.
waiter() {
  "$RLOCK" run job -- sh -c 'exit 5' 3>&- &
  waiter=$!
  wait_until waits
}
waits() { [[ $(rlock status job) == *waiting* ]]; }

# refused STATUS TEXT...: a job is not started.
refused() {
  tells $1 "$2" rlock run job -- touch ran
  [[ ! -e ran ]]
}
needs_root() { ((EUID == 0)) || skip 'only root can do that'; }

# carried: as a release has it: $RLOCK is in a prefix that has a server, too. No server is in PATH, which is $tools.
carried() {
  prefix=$PWD/prefix tools=$PWD/tools own=$PWD/prefix/libexec/rlock/redis-server
  install -D -m 755 "$RLOCK" "$prefix/bin/rlock"
  install -D -m 755 "$(type -P "$REDIS_SERVER")" "$own"
  mkdir "$tools"
  ln -s /usr/bin/* "$tools"
  rm -f "$tools"/{redis,valkey}-server
  RLOCK=$prefix/bin/rlock PATH=$tools
}
# installs VERSION: a server in PATH that claims to have this version.
installs() {
  printf '#!/bin/sh\n[ "$1" != -v ] || { echo "Redis server v=%s sha=0" && exit; }\nexec %s "$@"\n' "$1" "$own" >"$tools/redis-server"
  chmod +x "$tools/redis-server"
}
# would_use PATH [VERSION]: the server that status names.
would_use() {
  run -0 --separate-stderr rlock local status
  [[ ${lines[1]} == "server    ${2:-[0-9]*}, $1" || ${lines[1]} =~ ^"server    "[0-9.]+", $1"$ && -z ${2:-} ]]
}
# runs PROGRAM: the one server that runs is this one.
runs() { one_server && [[ $(readlink "/proc/$(servers)/exe") == "$1" ]]; }

@test "without a server in PATH, the one that came with rlock is used, and status says so; if it does not start, it is named" {
  carried
  would_use "$own"
  prints mine rlock run job -- echo mine
  would_use "$own"
  [[ ${lines[0]} == 'state     running' ]]
  rlock local stop
  printf '#!/bin/sh\nexit 1\n' >"$own"
  refused 69 "does $own -v work, and is there space in '$dir'?"
}

@test "the newest server is used, and an installed one if it is as new as ours; the first in PATH of those installed" {
  carried
  version=$("$own" -v | sed 's/.* v=\([^ ]*\).*/\1/')
  installs "$version"
  would_use "$tools/redis-server" "$version"
  installs 6.2.99
  would_use "$own" "$version"
  installs 100.0.0
  would_use "$tools/redis-server" 100.0.0
  rlock run job -- true
  rlock local stop
  mv "$tools/redis-server" "$tools/valkey-server"
  would_use "$tools/valkey-server" 100.0.0
  # One that hangs, has closed its output and hangs, cannot be run or is a folder has no version.
  for odd in '/bin/sh\nexec sleep 1000' '/bin/sh\nexec >&- 2>&- sleep 1000' /no/such/shell; do
    printf "#!$odd\n" >"$tools/redis-server"
    chmod +x "$tools/redis-server"
    would_use "$own" "$version"
  done
  # A folder is none.
  rm "$tools/redis-server"
  mkdir "$tools/redis-server"
  would_use "$tools/valkey-server" 100.0.0
  # One further down does not win because it calls itself newer.
  rmdir "$tools/redis-server"
  rm "$tools/valkey-server"
  installs 7.0.99
  mkdir others
  sed 's/7.0.99/99.0/' "$tools/redis-server" >others/valkey-server
  chmod 777 others others/valkey-server
  PATH=$tools:$PWD/others run -0 --separate-stderr rlock local status
  [[ ${lines[1]} != *others* ]]
}

@test "a server that came with rlock is not used if others could change it" {
  carried
  chmod o+w "$own"
  refused 69 "the server did not start; $own: not trusted, because others may write to it; chmod go-w $own"
  chmod o-w "$own"
  chmod o+w "$prefix"
  refused 69 "$prefix: not trusted, because others may write to it"
  chmod o-w "$prefix"
  if ((EUID == 0)); then
    chown 65534 "$own"
    refused 69 'belongs to another user'
  fi
  mv "$own" "$prefix/real"
  ln -s "$prefix/real" "$own"
  refused 69 'the server did not start; no redis-server or valkey-server in PATH; install the package redis-server'
}

@test "an upgrade of rlock and its server: the old one goes on with all locks, and after a stop the new one has them" {
  carried
  owner=$(rlock acquire job --lease 10m)
  old=$(servers)
  for file in bin/rlock libexec/rlock/redis-server; do
    cp "$prefix/$file" "$prefix/new"
    mv "$prefix/new" "$prefix/$file"
  done
  run -75 rlock run -n job -- true
  [[ $(servers) == "$old" && $(readlink "/proc/$old/exe") == *' (deleted)' ]]
  rlock local stop --yes
  run -75 rlock run -n job -- true
  runs "$own"
  rlock release job --owner "$owner"
}

# CI systems kill what a job has left behind if it has the job's variables; but other jobs use this server.
@test "the first use starts a server that only we can reach, that gets no password of another one, and none of the job's variables" {
  export RUNNER_TRACKING_ID=github_1 JENKINS_NODE_COOKIE=a1 BUILD_ID=7 CI=true REDISCLI_AUTH=secret RLOCK_PASSWORD=secret
  prints mine rlock run job -- echo mine
  unset REDISCLI_AUTH
  one_server
  [[ $(stat -c '%a %U' "$dir") == "700 $(id -un)" ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get port) == $'port\n0' ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get appendonly) == $'appendonly\nyes' ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get maxmemory-policy) == $'maxmemory-policy\nnoeviction' ]]
  [[ -r /proc/$(servers)/environ ]]
  not grep -qzE '^(RUNNER_TRACKING_ID|JENKINS_NODE_COOKIE|BUILD_ID|CI)=' "/proc/$(servers)/environ"
}

@test "local stop ends once the server has ended, also one that does not answer" {
  rlock run job -- true
  server=$(servers)
  kill -STOP "$server"
  tells 0 'state     does not answer; see the log' rlock local status --server-timeout 300ms
  assert_says "process   $server"
  tells 69 '--yes' rlock local stop --server-timeout 300ms
  assert_says "$dir/redis.log"
  tells 69 "the server does not stop; kill -9 $server ends it, and loses no lock; its log is $dir/redis.log" rlock local stop --yes --server-timeout 300ms
  kill -CONT "$server"
  wait_until gone "$server"
  tells 0 'state     not running' rlock local status
  rlock run job -- true
  server=$(servers)
  redis-cli -s "$dir/redis.sock" save >/dev/null # with this, Redis closes a descriptor of the folder
  tells 0 "process   $server" rlock local status
  prints stopped rlock local stop
  gone "$server"
  prints 'not running' rlock local stop
}

@test "a server that answers nobody: it is found even after SAVE, or named as not visible; a job survives it" {
  owner=$(rlock acquire job --lease 10m)
  before=$(servers)
  redis-cli -s "$dir/redis.sock" save >/dev/null
  redis-cli -s "$dir/redis.sock" bgrewriteaof >/dev/null
  rm "$dir/redis.sock"
  if ((EUID == 0)) && pid_namespaces; then
    run -69 --separate-stderr unshare -pf --mount-proc "$RLOCK" run -n --server-timeout 5s job -- true
    assert_says "the server did not start; another one has its folder, but does not answer; its process is not visible here; fuser -v $dir may show it"
    tells 0 'process   not visible here' unshare -pf --mount-proc "$RLOCK" local status
  fi
  [[ $(servers) == "$before" ]]
  run -75 --separate-stderr rlock run -n --server-timeout 30s job -- true
  another
  rlock release job --owner "$owner"
  held
  rm "$dir/redis.sock"
  tells 69 '--yes' rlock local stop --server-timeout 300ms
  run -75 --separate-stderr rlock run -n --server-timeout 20s job -- touch second
  one_server
  let_end go "$job"
}

@test "twenty first uses at once start one server, and so do twenty after a crash" {
  for start in 1 2; do
    pids=()
    for i in {1..20}; do
      "$RLOCK" run "job$i" -- sh -c 'echo x' >>"ran$start" 3>&- &
      pids+=($!)
    done
    for i in "${pids[@]}"; do wait "$i"; done
    [[ $(wc -l <"ran$start") == 20 && $(grep -c 'Server initialized' "$dir/redis.log") == "$start" ]]
    one_server
    kill -9 "$(servers)"
  done
}

@test "a use right after the death of the server starts the next one, and held locks are still held" {
  owner=$(rlock acquire job --lease 5m)
  kill_server
  tells 0 'state     not running' rlock local status
  not running
  for i in {1..3}; do
    run -75 rlock run -n job -- true
    one_server
    kill -9 "$(servers)"
  done
  rlock release job --owner "$owner"
}

@test "a job survives the death and the stop of its server, which it starts again, but not as a part of itself" {
  held --lease 5s
  kill_server
  wait_until another
  before=$(servers)
  rlock local stop --yes
  gone "$before"
  wait_until one_server
  # Held by the restarted server, for longer than the lease that was first granted.
  let_pass 6000
  rlock status --is-held job
  before=$(servers)
  let_end go "$job"
  [[ $(servers) == "$before" ]]
  run -0 rlock run -n job -- true
}

@test "a server that is started inside a job is no part of it: the job neither waits for it nor ends it" {
  outside() { rlock --url "local:$PWD/outside" "$@"; }
  for how in kill wait; do
    # By a command whose job has the same server.
    rlock run job -- true
    run -0 --separate-stderr rlock run --lease 10m --leftovers "$how" outer -- \
      sh -c "kill -9 $(servers); $RLOCK run inner -- true"
    [[ -z $stderr ]]
    one_server
    rlock local stop --yes
    # By a command whose job has another one.
    run -0 --separate-stderr outside run --leftovers "$how" outer -- \
      "$RLOCK" --url "$RLOCK_URL" run middle -- "$RLOCK" acquire "$how" --lease 10m
    [[ -z $stderr ]]
    before=$(servers)
    rlock status --is-held "$how"
    # What else is left is still ended.
    run -0 --separate-stderr outside run outer -- \
      sh -c "sleep 1000 >/dev/null 2>&1 & kill -9 $before; $RLOCK --url $RLOCK_URL status $how"
    [[ $stderr == *'ended 1 process that the command left: sleep '* ]]
    one_server
    rlock status --is-held "$how"
    rlock local stop --yes
  done
  outside local stop
}

@test "a server that is started inside a job survives the SIGKILL with which its job is ended" {
  RLOCK_URL=local:$PWD/outside job_start -k 0 outer -- \
    sh -c "$RLOCK --url $RLOCK_URL acquire inner --lease 10m && touch started; exec sleep 1000"
  wait_until test -e started
  before=$(servers)
  kill -TERM "$frontend"
  job_status 143
  [[ $(servers) == "$before" ]]
  rlock status --is-held inner
  rlock --url "local:$PWD/outside" local stop
}

@test "an isolated job ends with the server that was started inside it, and the next use starts it again" {
  needs_pid_namespaces
  for how in kill wait; do
    run -0 --separate-stderr rlock --url "local:$PWD/outside" run --isolate --leftovers "$how" outer -- \
      "$RLOCK" --url "$RLOCK_URL" acquire "$how" --lease 10m
    [[ -z $stderr ]]
    not running
    rlock status --is-held "$how"
    rlock local stop --yes
  done
  rlock --url "local:$PWD/outside" local stop
}

@test "kill -9 of the server, and then of the monitor that has started the next one: that one goes on" {
  job_start --lease 5s --on-lost "touch $PWD/lost; sleep 1000 & sleep 1" job -- sleep 1000
  job_parts
  wait_until rlock status --is-held job
  kill_server
  wait_until one_server
  before=$(servers)
  kill -9 "$monitor"
  job_status 74
  [[ -e lost && $(servers) == "$before" ]]
}

@test "a waiter or keeper starts the server of a killed one: the waiter keeps its place, and gets the lock; the keeper keeps its lock" {
  owner=$(rlock acquire job --lease 10m)
  waiter
  kill_server
  wait_until one_server # no other use
  run -75 rlock run -n job -- true
  wait_until waits
  rlock release job --owner "$owner"
  exits "$waiter" 5
  sleep 1000 3>&- &
  local watched=$!
  rlock acquire job --lease 5s --for-pid "$watched" >/dev/null
  kill_server
  wait_until one_server
  let_pass 6000
  rlock status --is-held job
  kill "$watched"
  wait_until not rlock status --is-held job
}

@test "stop refuses while locks are held, except with --yes, and does not end one that was granted after it has looked" {
  owner=$(rlock acquire job --lease 1m)
  tells 75 "locks are held: 'job'; to stop the server anyway, give --yes; running jobs start it again" rlock local stop
  rlock local stop --yes
  wait_until not running
  run -75 rlock run -n job -- true # started again, and the lock is still there
  rlock release job --owner "$owner"
  mv "$dir/redis.sock" "$dir/real"
  PROXY_HOLD="SCAN:$dir/go" python3 "$TESTS_DIR/lib/proxy.py" "$dir/redis.sock" "$dir/real" "$dir/seen" 3>&- &
  proxy=$!
  wait_until test -S "$dir/redis.sock"
  "$RLOCK" local stop --server-timeout 1m 2>"$dir/err" 3>&- &
  stopping=$!
  wait_until grep -q SCAN "$dir/seen"
  owner=$(rlock acquire other --lease 5m)
  let_end "$dir/go" "$stopping"
  kill "$proxy"
  rlock status --is-held other
  rlock release other --owner "$owner"
}

@test "a server of another user is not trusted" {
  needs_root
  mkdir -m 700 "$dir"
  chown 65534 "$dir"
  chmod 711 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
  setpriv --reuid=65534 --regid=65534 --clear-groups redis-server --port 0 --unixsocket "$dir/redis.sock" \
    --dir "$dir" --save '' >/dev/null 2>&1 3>&- &
  local server=$!
  wait_until redis-cli -s "$dir/redis.sock" ping
  chown 0 "$dir"
  refused 77 'not trusted'
  kill_off "$server"
  rm "$dir/redis.sock"
}

# small_disk KIB: $dir is on it.
small_disk() {
  mkdir small
  mount -t tmpfs -o "size=$1k" tmpfs small 2>/dev/null || skip 'may not mount a small file system'
  dir=$PWD/small/l
  export RLOCK_URL=local:$dir
}

@test "a full disk causes a message, and nothing is left running" {
  small_disk 64
  mkdir -m 700 "$dir"
  head -c 100000 /dev/zero >"$dir/filler" 2>/dev/null || true
  run --separate-stderr rlock run job -- touch ran
  if [[ $status == 0 && $("$REDIS_SERVER" --version) == *'v=6.'* ]]; then
    assert_says MISCONF # 6.2 starts, and finds out after its first write
    rlock local stop --yes
  else
    assert_says 'did not start'
    [[ $stderr == *'No space left on device'* || $stderr == *'is there space in '* ]]
    [[ $status == 69 && ! -e ran ]]
  fi
  wait_until not running
}

@test "a disk that fills up later refuses grants with 69, and keeps the lock that it gave, also if the server is killed then" {
  small_disk 256
  rlock acquire job --lease 1m
  head -c 1000000 /dev/zero >"$dir/filler" 2>/dev/null || true
  for i in {1..60}; do
    run --separate-stderr rlock acquire "other$i" --lease 1m --server-timeout 300ms
    ((status == 0)) || break
  done
  [[ $status == 69 ]]
  assert_says MISCONF
  rlock status --is-held job
  kill -9 "$(servers)"
  wait_until not running
  rlock status --is-held job
  rm "$dir/filler"
  run -75 rlock run -n job -- true
}

@test "the server starts regardless of its first user's configuration, and of how that was named" {
  local stop=("$RLOCK" local stop --url "local:$dir")
  echo 'server-timeout = "20s"' >c.toml
  RLOCK_CONFIG=c.toml run -0 --separate-stderr rlock run job -- true
  "${stop[@]}"
  RLOCK_CONFIG=/dev/fd/9 run -0 --separate-stderr rlock run job -- true 9< <(cat c.toml)
  "${stop[@]}"
  # The usual file is unusable, and its first user does not use it.
  mkdir -p config/rlock
  echo 'no-such-setting = 1' >config/rlock/rlock.toml
  XDG_CONFIG_HOME=$PWD/config run -0 --separate-stderr rlock run --config c.toml job -- true
}

@test "each of two users has a server of their own, and neither may use or stop that of the other" {
  needs_root
  chmod 711 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
  install -d -m 711 b
  install -d -m 700 -o 65534 -g 65534 b/theirs
  carried
  theirs() { (umask 0777 && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$RLOCK" --url "$@"); }
  local ours=$RLOCK_URL
  dir=$PWD/b/theirs
  rlock acquire job --lease 10m
  run -0 theirs "local:$dir" run -n job -- true # with an umask that takes away all rights
  kill -9 $(servers)
  run -0 theirs "local:$dir" run -n job -- true
  tells 71 'Permission denied' theirs "$ours" run -n job -- true
  tells 78 'another user' rlock --url "local:$dir" run -n job -- true
  before=$(servers)
  run --separate-stderr rlock --url "local:$dir" local stop --yes
  [[ $(servers) == "$before" ]]
  run -75 rlock run -n job -- true
  theirs "local:$dir" local stop
  dir=$BATS_TEST_TMPDIR/l
}

@test "folders that are impossible, not ours alone, or that others could replace are refused" {
  RLOCK_URL=local:relative refused 78 absolute
  RLOCK_URL=local:/$(printf 'a%.0s' {1..120}) refused 78 107
  : >"$dir"
  refused 78 'not a folder'
  rm "$dir"
  mkdir -m 755 "$dir"
  refused 78 'chmod 700'
  chmod 700 "$dir"
  if ((EUID == 0)); then
    chown 65534 "$dir"
    refused 78 'another user'
    chown 0 "$dir"
  fi
  mv "$dir" real
  ln -s "$PWD/real" "$dir"
  refused 78 ''
  RLOCK_URL=local:$dir/ refused 78 ''
  rm "$dir"
  mkdir -m 777 open
  RLOCK_URL=local:$PWD/open/l refused 78 'chmod go-w'
  mkdir open/ours
  RLOCK_URL=local:$PWD/open/ours/l refused 78 "chmod go-w $PWD/open"
  [[ ! -e open/ours/l ]]
  chmod 1777 open
  RLOCK_URL=local:$PWD/open/l rlock run job -- true
  RLOCK_URL=local:$PWD/open/l rlock local stop
}

@test "status and stop for a server that was never started do not start it; only local: addresses have one" {
  tells 0 'not running' rlock local status
  run -0 --separate-stderr rlock local stop
  not running
  [[ ! -e $dir ]]
  tells 64 'local:' rlock --url redis://h local status
  run -64 rlock local
  run -64 rlock local restart
}

# The user's own folder is below the home in the user database, and /tmp may belong to anybody: each of these tests has
# its own of both, in a mount namespace, where it is root. The program is there as ./rlock.
in_own_host() {
  env -u RLOCK_URL timeout -k 1 60 "${namespace[@]}" bash -c '
    mount --bind "$1" "$2" && mount -t tmpfs tmpfs /tmp && cd "$2" && export RLOCK_URL=local: && shift 2 && eval "$@"' \
    - "$BATS_TEST_TMPDIR/home" "$(getent passwd 0 | cut -d: -f6)" "$@"
}
own_host() {
  own_namespace -m 'MOUNT NAMESPACES ARE NOT ALLOWED HERE: the folder of local: is not tested'
  mkdir home
  cp "$RLOCK" home/rlock
}

@test "own folder: jobs with a private /tmp look in the same place, and it does not matter who was first there" {
  own_host
  in_own_host 'mkdir -m 777 /tmp/rlock-0; touch /tmp/rlock-0/x; ln -s nowhere /tmp/rlock
    ./rlock run job -- sh -c "touch started; until [ -e go ]; do sleep 0.1; done"; e=$?; ./rlock local stop --yes; exit $e' \
    >first.out 2>&1 3>&- &
  local first=$!
  wait_until test -e home/started
  run --separate-stderr in_own_host './rlock run -n job -- touch second'
  touch home/go
  [[ $status == 75 && ! -e home/second ]]
  wait "$first"
}

@test "own folder: HOME and XDG_RUNTIME_DIR change nothing, nobody else can enter it, whatever the umask is, and each host has its own" {
  own_host
  run -0 --separate-stderr in_own_host 'mkdir -p /tmp/h /tmp/x; ./rlock local status | grep folder;
    HOME=/tmp/h XDG_RUNTIME_DIR=/tmp/x XDG_STATE_HOME=/tmp/x ./rlock local status | grep folder;
    env -i PATH="$PATH" ./rlock --url local: local status | grep folder;
    umask 000; ./rlock run job -- true; ./rlock local stop >&2; find .local -perm /077 ! -type s; ls /tmp/h /tmp/x'
  [[ ${lines[0]} == */.local/state/rlock/* && ${lines[1]} == "${lines[0]}" && ${lines[2]} == "${lines[0]}" ]]
  [[ $output != *$'\n.local'* ]]
  run -0 in_own_host 'rm -r .local; umask 0777; ./rlock run job -- true; ./rlock local stop >&2
    find .local -type d ! -perm 700 | grep . && exit 1; stat -c %a .local'
  [[ ${lines[-1]} == 700 ]]
  (umask 0777 && rlock run x -- true)
  rlock local stop
  [[ $(stat -c %a "$dir" "$dir/redis.log") == $'700\n600' ]]
  [[ -e /etc/machine-id ]] || skip 'this host has no /etc/machine-id'
  run -0 --separate-stderr in_own_host './rlock local status | grep folder
    echo 0123456789abcdef0123456789abcdef >/tmp/id; mount --bind /tmp/id /etc/machine-id; ./rlock local status | grep folder
    : >/tmp/id; ./rlock local status | grep folder'
  [[ ${lines[1]} == */rlock/0123456789abcdef && ${lines[0]} != "${lines[1]}" ]]
  [[ ${lines[2]} == */rlock/"$(uname -n)" ]]
}

@test "own folder: a user without a home, or with a too long one, is told to name a folder" {
  own_host
  for home in /tmp/none /dev/null "/tmp/$(printf 'a%.0s' {1..70})" relative; do
    run -78 --separate-stderr in_own_host "[[ $home != /tmp/a* ]] || mkdir $home; sed 's,^root:.*,root:x:0:0:root:$home:/bin/sh,' /etc/passwd >/tmp/passwd
      mount --bind /tmp/passwd /etc/passwd; ./rlock run job -- touch started"
    assert_says 'local:/dir'
  done
  run -78 --separate-stderr in_own_host 'grep -v ^root: /etc/passwd >/tmp/passwd; mount --bind /tmp/passwd /etc/passwd
    echo "passwd: files" >/tmp/nss; mount --bind /tmp/nss /etc/nsswitch.conf; ./rlock run job -- touch started'
  assert_says 'not in the user database'
  [[ ! -e home/started ]]
}

@test "a cleaner that removes everything does not cause a second server, and the job keeps its lock" {
  held --lease 5s
  rm -rf "$dir"/*
  # A user is told what to do.
  tells 69 "wait until its jobs have ended; kill -9 $(servers) ends it" rlock run -n --server-timeout 20s job -- touch second
  [[ $stderr != *'loses no lock'* ]]
  one_server
  let_pass 6000
  not gone "$job"
  [[ ! -e second ]]
  let_end go "$job"
  rlock local stop --yes
  not running
  run -0 rlock run -n job -- true
}

@test "a folder that is moved ends its server, and the job using it says so; one that is unreadable for a while keeps it and its locks" {
  held --lease 6s
  server=$(servers)
  mv "$dir" away
  owner=$(rlock acquire job --lease 10m) # mostly before the job renews its lock
  exits "$job" 74
  wait_until gone "$server"
  grep -q 'removed or replaced' err
  one_server
  test -S "$dir/redis.sock"
  rlock release job --owner "$owner"
  rlock local stop
  rm started
  mkdir above
  dir=$PWD/above/l
  export RLOCK_URL=local:$dir
  held --lease 5s
  server=$(servers)
  mv above above.away
  ln -s above above # to itself: ELOOP, in place of a disk's EIO
  let_pass 6000
  rm above
  mv above.away above
  run -75 rlock run -n job -- true
  [[ $(servers) == "$server" ]]
  let_end go "$job"
}

@test "data that the server cannot read: the message has the reason and the remedy, and older servers read commands" {
  rewritten() { base=$(compgen -G "$dir/appendonlydir/*.2.base.*") && [[ $(redis-cli -s "$dir/redis.sock" info persistence) == *aof_rewrite_in_progress:0* ]]; }
  rlock acquire job --lease 10m >/dev/null
  [[ $("$REDIS_SERVER" --version) != *'v=6.'* ]] || skip '6.2 has one file for all'
  redis-cli -s "$dir/redis.sock" bgrewriteaof
  wait_until rewritten
  [[ $(head -c 2 "$base") == '*'[0-9] ]]
  rlock local stop --yes
  rlock status --is-held job
  rlock local stop --yes
  # As a newer server would write it by default.
  printf 'REDIS0099' | cat - "$base" >"$dir/new"
  mv "$dir/new" "$base"
  refused 69 "its log $dir/redis.log says: "
  assert_says "Can't handle RDB format version 99; if it cannot read its data, and no job runs, remove $dir/appendonly*"
  rm -r "$dir"/appendonly*
  run -0 --separate-stderr rlock run -n job -- true
  [[ -z $stderr ]]
}

@test "a server that crashes at its start is started once by each use, which says so" {
  mkdir bin
  printf '#!/bin/sh\necho x >>%s/starts\nkill -SEGV $$\n' "$PWD" >bin/redis-server
  chmod +x bin/redis-server
  PATH=$PWD/bin:$PATH refused 69 'the server did not start'
  [[ $(wc -l <starts) == 1 ]]
  run -0 --separate-stderr rlock run job -- true
}

@test "the message about data that cannot be written to the end says why" {
  run -69 bash -o pipefail -c 'prlimit --fsize=10 "$RLOCK" run job -- true 2>&1 | cat' # a pipe, because it is no file
  assert_says "the server did not start; $dir/appendonly.aof: No space left on device"
  [[ ! -e $dir/appendonly.aof ]]
}
