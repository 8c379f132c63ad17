#!/usr/bin/env bats
# local: addresses, and rlock local.

load ../lib/common

setup() {
  dir=$BATS_TEST_TMPDIR/l
  export RLOCK_URL=local:$dir
}

teardown() {
  rm -f "$dir/filler" # a server cannot stop on a full disk
  RLOCK_URL=local:$dir "$RLOCK" local stop --yes || true
  wait_until not running
  umount "$BATS_TEST_TMPDIR/small" 2>/dev/null || true
}

# processes WORD: pids whose command line contains the word and the folder.
processes() {
  local pid
  for pid in $(pgrep -f -- "$dir" || true); do
    [[ $pid != "$$" ]] && ! gone "$pid" && grep -qza -- "$1" "/proc/$pid/cmdline" && echo "$pid"
  done
  return 0
}
servers() { processes '^redis-server'; }
keepers() { processes '^serve$'; }
running() { [[ -n $(servers)$(keepers) ]]; }
one_server() { [[ $(servers | wc -l) == 1 ]]; }

@test "the first use starts a server that only we can reach" {
  run --separate-stderr -0 rlock run job -- echo mine
  [[ $output == mine && -z $stderr ]]
  one_server
  [[ $(stat -c '%a %U' "$dir") == "700 $(id -un)" ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get port) == $'port\n0' ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get appendonly) == $'appendonly\nyes' ]]
  [[ $(redis-cli -s "$dir/redis.sock" config get maxmemory-policy) == $'maxmemory-policy\nnoeviction' ]]
  run --separate-stderr -0 rlock local status
  assert_says 'state     running'
}

@test "local stop ends once the keeper of the server has ended, too" {
  local keeper
  rlock run job -- true
  keeper=$(keepers)
  [[ -n $keeper ]]
  kill -STOP "$keeper"
  run --separate-stderr rlock local stop --server-timeout 1s
  kill -CONT "$keeper"
  [[ $status == 69 ]]
  assert_says 'the server does not stop'
  run -0 --separate-stderr rlock local stop
  run -0 --separate-stderr rlock local status
  assert_says 'state     not running'
  rlock run job -- true
  keeper=$(keepers)
  run -0 --separate-stderr rlock local stop
  [[ $output == stopped ]]
  gone "$keeper"
}

@test "twenty first uses at once start one server" {
  local i pids=()
  for i in {1..20}; do
    "$RLOCK" run "job$i" -- sh -c 'echo x' >>"$BATS_TEST_TMPDIR/ran" 3>&- &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i"; done
  [[ $(wc -l <"$BATS_TEST_TMPDIR/ran") == 20 ]]
  one_server
  [[ $(grep -c 'Server initialized' "$dir/redis.log") == 1 ]]
}

# CI systems kill what a job has left behind if it has the job's variables; but other jobs use this server.
@test "the server has none of the variables of the job that used it first" {
  local pid
  RUNNER_TRACKING_ID=github_1 JENKINS_NODE_COOKIE=a1 BUILD_ID=7 CI=true rlock run job -- true
  [[ -n $(servers) && -n $(keepers) ]]
  for pid in $(servers) $(keepers); do
    [[ -r /proc/$pid/environ ]]
    not grep -qzE '^(RUNNER_TRACKING_ID|JENKINS_NODE_COOKIE|BUILD_ID|CI)=' "/proc/$pid/environ"
  done
}

@test "a killed server is started again, and held locks are still held" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  kill -9 "$(servers)"
  wait_until one_server
  run -75 rlock run -n job -- true
  run -0 rlock release job --owner "$owner"
}

@test "a job survives the death of its server" {
  "$RLOCK" run --lease 12s job -- sh -c "until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done; exit 6" 2>"$BATS_TEST_TMPDIR/err" 3>&- &
  local job=$!
  wait_until rlock status --is-held job
  local before
  before=$(servers)
  kill -9 "$before"
  another() { [[ $(servers) != "$before" ]] && one_server; }
  wait_until another
  # Held by the restarted server, for longer than the lease that was first granted.
  local started
  started=$(now_ms)
  past() { (($(now_ms) > started + 12500)); }
  wait_until past
  rlock status --is-held job
  touch "$BATS_TEST_TMPDIR/go"
  local status=0
  wait "$job" || status=$?
  [[ $status == 6 ]]
}

@test "after the death of server and keeper, the next use starts both, with the locks" {
  rlock acquire job --lease 1m
  local keeper server
  keeper=$(keepers) server=$(servers)
  kill -9 "$keeper" "$server"
  wait_until gone "$server"
  wait_until gone "$keeper"
  run -75 rlock run -n job -- true
  one_server
}

@test "stop refuses while locks are held, except with --yes" {
  local owner
  owner=$(rlock acquire job --lease 1m)
  run --separate-stderr -75 rlock local stop
  assert_says "locks are held: 'job'; to stop the server anyway, and make their commands lose the locks, give --yes"
  run -0 rlock local stop --yes
  wait_until not running
  run --separate-stderr -0 rlock local stop
  assert_says 'not running'
  run --separate-stderr -0 rlock local status
  assert_says 'not running'
  run -75 rlock run -n job -- true # started again, and the lock is still there
  rlock release job --owner "$owner"
  run -0 rlock local stop
}

@test "a folder that others can enter is refused" {
  mkdir -m 755 "$dir"
  run --separate-stderr -78 rlock run job -- true
  assert_says 'chmod 700'
}

@test "a folder that is a link is refused" {
  mkdir -m 700 "$BATS_TEST_TMPDIR/real"
  ln -s "$BATS_TEST_TMPDIR/real" "$dir"
  run --separate-stderr -78 rlock run job -- true
  run --separate-stderr -78 rlock run --url "local:$dir/" job -- true
}

@test "local stop for another user's folder ends no process" {
  ((EUID == 0)) || skip "only root can give a folder away"
  mkdir -m 700 "$dir"
  python3 - "$dir" 3>&- <<'PY' &
import fcntl, os, struct, sys, time
os.chown(sys.argv[1], 65534, -1)
fd = os.open(sys.argv[1], os.O_RDONLY)
fcntl.fcntl(fd, fcntl.F_SETLK, struct.pack('hhqqi', fcntl.F_RDLCK, 0, 0, 0, 0))
open(sys.argv[1] + '/ready', 'w').close()
time.sleep(1000)
PY
  local theirs=$!
  wait_until test -e "$dir/ready"
  run --separate-stderr rlock local stop --yes
  show
  kill -0 "$theirs"
  kill "$theirs"
  chown 0 "$dir"
}

@test "a folder of another user is refused" {
  ((EUID == 0)) || skip "only root can give a folder away"
  mkdir -m 700 "$dir"
  chown 65534 "$dir"
  run --separate-stderr -78 rlock run job -- true
  assert_says 'another user'
  chown 0 "$dir"
}

@test "a server of another user is not trusted" {
  ((EUID == 0)) || skip "only root can start one"
  mkdir -m 700 "$dir"
  chown 65534 "$dir"
  chmod 711 "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR" "$BATS_RUN_TMPDIR"
  setpriv --reuid=65534 --regid=65534 --clear-groups redis-server --port 0 --unixsocket "$dir/redis.sock" \
    --dir "$dir" --save '' >/dev/null 2>&1 3>&- &
  local server=$!
  wait_until redis-cli -s "$dir/redis.sock" ping
  chown 0 "$dir"
  run --separate-stderr -77 rlock run job -- true
  assert_says 'not trusted'
  kill "$server"
  wait_until gone "$server"
  rm "$dir/redis.sock"
}

@test "a full disk causes a message, and nothing is left running" {
  mkdir "$BATS_TEST_TMPDIR/small"
  mount -t tmpfs -o size=64k tmpfs "$BATS_TEST_TMPDIR/small" 2>/dev/null || skip "may not mount a small file system"
  dir=$BATS_TEST_TMPDIR/small/l
  mkdir -m 700 "$dir"
  head -c 100000 /dev/zero >"$dir/filler" 2>/dev/null || true
  RLOCK_URL=local:$dir run --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/started"
  show
  if [[ $status == 0 && $("$REDIS_SERVER" --version) == *'v=6.'* ]]; then
    assert_says MISCONF # 6.2 starts, and finds out after its first write
    rlock --url "local:$dir" local stop --yes
  else
    assert_says 'did not start'
    [[ $status == 69 && ! -e $BATS_TEST_TMPDIR/started ]]
  fi
  wait_until not running
}

@test "a disk that fills up later refuses grants with 69, and keeps the lock that it gave" {
  mkdir "$BATS_TEST_TMPDIR/small"
  mount -t tmpfs -o size=256k tmpfs "$BATS_TEST_TMPDIR/small" 2>/dev/null || skip "may not mount a small file system"
  dir=$BATS_TEST_TMPDIR/small/l
  export RLOCK_URL=local:$dir
  rlock acquire job --lease 1m
  head -c 1000000 /dev/zero >"$dir/filler" 2>/dev/null || true
  local i
  for i in {1..60}; do
    run --separate-stderr rlock acquire "other$i" --lease 1m --server-timeout 300ms
    ((status == 0)) || break
  done
  show
  [[ $status == 69 ]]
  assert_says MISCONF
  run -0 rlock status --is-held job
  rm "$dir/filler"
}

@test "without redis-server in PATH, the message says what to install" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  run --separate-stderr -69 env "PATH=$BATS_TEST_TMPDIR/bin" "$(realpath "$RLOCK")" run job -- true
  assert_says 'install the package redis-server'
}

@test "the server starts regardless of its first user's configuration, and of how that was named" {
  local stop=("$RLOCK" local stop --url "local:$dir")
  cd "$BATS_TEST_TMPDIR"
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

@test "a password meant for another server is not sent to it" {
  REDISCLI_AUTH=secret RLOCK_PASSWORD=secret run --separate-stderr -0 rlock run job -- true
  [[ -z $stderr ]]
}

@test "rlock local needs a local: address and one of its words" {
  run --separate-stderr -64 rlock --url redis://h local status
  assert_says 'local:'
  run -64 rlock local
  run -64 rlock local restart
}

@test "a use right after the death of the server waits for the next one" {
  rlock acquire job --lease 5m
  local i
  for i in {1..5}; do # after more of them in a row it waits for longer than we do
    kill -9 "$(servers)"
    run -0 rlock status --is-held job
    wait_until one_server
  done
}

# serve_in_foreground: `local serve` as a service manager runs it; $serving is its pid.
serve_in_foreground() {
  "$RLOCK" --url "local:$dir" local serve >"$BATS_TEST_TMPDIR/serve.out" 2>&1 3>&- &
  serving=$!
  wait_until redis-cli -s "$dir/redis.sock" ping
}

@test "serve in the foreground: it is used, and TERM ends it with its server" {
  serve_in_foreground
  run -0 --separate-stderr rlock run job -- echo ran
  [[ $output == ran ]]
  one_server
  [[ $(keepers) == "$serving" ]]
  kill -TERM "$serving"
  wait_until gone "$serving"
  wait_until not running
}

@test "serve in the foreground starts a server that was killed again, with its locks" {
  serve_in_foreground
  rlock acquire job --lease 1m
  local before
  before=$(servers)
  kill -9 "$before"
  wait_until gone "$before"
  wait_until one_server
  run -75 rlock run -n job -- true
  [[ $(keepers) == "$serving" ]]
}

@test "a second serve for the same folder is refused, and the first continues" {
  serve_in_foreground
  run -69 --separate-stderr timeout -k 1 30 "$RLOCK" local serve
  assert_says 'is already served'
  one_server
  gone "$serving" && return 1
  run -0 rlock run job -- true
}

@test "stop ends a serve in the foreground with 0, and nothing starts the server again" {
  local status=0
  serve_in_foreground
  run -0 rlock local stop
  wait "$serving" || status=$?
  ((status == 0))
  not running
}

# crashes_again: the server of $dir was killed, and so is each one that is started, until the file crash is removed.
crashes_again() {
  touch "$BATS_TEST_TMPDIR/crash"
  kill -9 "$(servers)"
  wait_until test -s "$dir/trouble"
}
# with_crashes COMMAND...: a server that the command starts can be made to crash repeatedly.
with_crashes() {
  mkdir -p "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/bash\n[[ ! -e %s/crash ]] || kill -SEGV $$\nexec -a redis-server %s "$@"\n' \
    "$BATS_TEST_TMPDIR" "$(command -v redis-server)" >"$BATS_TEST_TMPDIR/bin/redis-server"
  chmod +x "$BATS_TEST_TMPDIR/bin/redis-server"
  PATH=$BATS_TEST_TMPDIR/bin:$PATH "$@"
}

@test "stop between two crashes waits for the server, because only it knows the locks" {
  local owner
  owner=$(with_crashes rlock acquire job --lease 10m)
  crashes_again
  run -0 --separate-stderr rlock local status
  [[ ${lines[0]} == 'state     does not answer; see the log' ]]
  run -69 --separate-stderr rlock local stop --server-timeout 300ms
  assert_says '--yes'
  assert_says "$dir/redis.log"
  rm "$BATS_TEST_TMPDIR/crash"
  run -75 --separate-stderr rlock local stop --server-timeout 1m
  assert_says "'job'"
  run -0 rlock release job --owner "$owner"
  crashes_again
  "$RLOCK" local stop --server-timeout 1m >"$BATS_TEST_TMPDIR/stop.out" 3>&- &
  local stop=$!
  rm "$BATS_TEST_TMPDIR/crash"
  wait "$stop"
  [[ $(cat "$BATS_TEST_TMPDIR/stop.out") == stopped ]]
  wait_until not running
}

@test "stop --yes between two crashes ends what would start the server again" {
  with_crashes rlock acquire job --lease 10m
  crashes_again
  run -0 --separate-stderr rlock local stop --yes
  [[ $output == stopped ]]
  not running
  run -0 --separate-stderr rlock local stop
  [[ $output == 'not running' ]]
}

@test "impossible folders: relative, too long, a file" {
  RLOCK_URL=local:relative run -78 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/ran"
  assert_says absolute
  RLOCK_URL=local:/$(printf 'a%.0s' {1..120}) run -78 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/ran"
  assert_says 107
  : >"$dir"
  run -78 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/ran"
  assert_says 'not a folder'
  rm "$dir"
  [[ ! -e $BATS_TEST_TMPDIR/ran ]]
}

@test "status and stop for a server that was never started do not start it" {
  run -0 --separate-stderr rlock local status
  assert_says 'not running'
  run -0 --separate-stderr rlock local stop
  not running
  [[ ! -e $dir ]]
}

# The user's own folder is below the home in the user database, and /tmp may belong to anybody: each of these tests has
# its own of both, in a mount namespace, where it is root. The program is there as ./rlock.
in_own_host() {
  local home
  home=$(getent passwd 0 | cut -d: -f6)
  mkdir -p "$BATS_TEST_TMPDIR/home"
  [[ -x $BATS_TEST_TMPDIR/home/rlock ]] || cp "$RLOCK" "$BATS_TEST_TMPDIR/home/rlock"
  env -u RLOCK_URL timeout -k 1 60 "${namespace[@]}" bash -c '
    mount --bind "$1" "$2" && mount -t tmpfs tmpfs /tmp && cd "$2" && export RLOCK_URL=local: && shift 2 && eval "$@"' \
    - "$BATS_TEST_TMPDIR/home" "$home" "$@"
}
own_host() {
  namespace=(unshare -m)
  "${namespace[@]}" true 2>/dev/null || namespace=(unshare -r -m)
  "${namespace[@]}" true 2>/dev/null || skip 'MOUNT NAMESPACES ARE NOT ALLOWED HERE: the folder of local: is not tested'
}

@test "own folder: jobs with a private /tmp look in the same place" {
  own_host
  in_own_host './rlock run job -- sh -c "touch started; until [ -e go ]; do sleep 0.05; done"; e=$?; ./rlock local stop --yes; exit $e' \
    >"$BATS_TEST_TMPDIR/first.out" 2>&1 3>&- &
  local first=$!
  wait_until test -e "$BATS_TEST_TMPDIR/home/started"
  run --separate-stderr in_own_host './rlock run -n job -- touch second'
  show
  touch "$BATS_TEST_TMPDIR/home/go"
  [[ $status == 75 && ! -e $BATS_TEST_TMPDIR/home/second ]]
  wait "$first"
}

@test "own folder: it does not matter who was first in /tmp" {
  own_host
  run -0 --separate-stderr in_own_host 'mkdir -m 777 /tmp/rlock-0; touch /tmp/rlock-0/x; ln -s nowhere /tmp/rlock;
    ./rlock run job -- echo ran; e=$?; ./rlock local stop; exit $e'
  [[ ${lines[0]} == ran ]]
}

@test "own folder: HOME and XDG_RUNTIME_DIR change nothing, and nobody else can enter it" {
  own_host
  run -0 --separate-stderr in_own_host 'mkdir -p /tmp/h /tmp/x; ./rlock local status | grep folder;
    HOME=/tmp/h XDG_RUNTIME_DIR=/tmp/x XDG_STATE_HOME=/tmp/x ./rlock local status | grep folder;
    env -i PATH="$PATH" ./rlock --url local: local status | grep folder;
    umask 000; ./rlock run job -- true; ./rlock local stop >&2; find .local -perm /077 ! -type s; ls /tmp/h /tmp/x'
  show
  [[ ${lines[0]} == */.local/state/rlock/* && ${lines[1]} == "${lines[0]}" && ${lines[2]} == "${lines[0]}" ]]
  [[ $output != *$'\n.local'* ]]
}

@test "own folder: hosts that share a home have one folder each" {
  own_host
  [[ -e /etc/machine-id ]] || skip 'this host has no /etc/machine-id'
  run -0 --separate-stderr in_own_host './rlock local status | grep folder
    echo 0123456789abcdef0123456789abcdef >/tmp/id; mount --bind /tmp/id /etc/machine-id; ./rlock local status | grep folder
    : >/tmp/id; ./rlock local status | grep folder'
  show
  [[ ${lines[1]} == */rlock/0123456789abcdef && ${lines[0]} != "${lines[1]}" ]]
  [[ ${lines[2]} == */rlock/"$(uname -n)" ]]
}

@test "own folder: a user without a home, or with a too long one, is told to name a folder" {
  own_host
  local home
  for home in /tmp/none /dev/null "/tmp/$(printf 'a%.0s' {1..70})" relative; do
    run -78 --separate-stderr in_own_host "[[ $home != /tmp/a* ]] || mkdir $home; sed 's,^root:.*,root:x:0:0:root:$home:/bin/sh,' /etc/passwd >/tmp/passwd
      mount --bind /tmp/passwd /etc/passwd; ./rlock run job -- touch started"
    assert_says 'local:/dir'
    [[ ! -e $BATS_TEST_TMPDIR/home/started ]]
  done
  run -78 --separate-stderr in_own_host 'grep -v ^root: /etc/passwd >/tmp/passwd; mount --bind /tmp/passwd /etc/passwd
    echo "passwd: files" >/tmp/nss; mount --bind /tmp/nss /etc/nsswitch.conf; ./rlock run job -- touch started'
  assert_says 'not in the user database'
}

@test "a folder that others could replace is refused" {
  mkdir -m 777 "$BATS_TEST_TMPDIR/open"
  RLOCK_URL=local:$BATS_TEST_TMPDIR/open/l run -78 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/started"
  assert_says 'chmod go-w'
  chmod 1777 "$BATS_TEST_TMPDIR/open"
  dir=$BATS_TEST_TMPDIR/open/l
  RLOCK_URL=local:$dir run -0 --separate-stderr rlock run job -- true
  RLOCK_URL=local:$dir run -0 rlock local stop
  [[ ! -e $BATS_TEST_TMPDIR/started ]]
}

@test "a folder is refused if others could replace one above it" {
  mkdir -m 777 "$BATS_TEST_TMPDIR/open"
  mkdir "$BATS_TEST_TMPDIR/open/ours"
  RLOCK_URL=local:$BATS_TEST_TMPDIR/open/ours/l run -78 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/started"
  assert_says "chmod go-w $BATS_TEST_TMPDIR/open"
  [[ ! -e $BATS_TEST_TMPDIR/started && ! -e $BATS_TEST_TMPDIR/open/ours/l ]]
}

# held: a job holds the lock until the file go exists; $job is its pid.
held() {
  "$RLOCK" run "$@" job -- sh -c "touch $BATS_TEST_TMPDIR/started; until [ -e $BATS_TEST_TMPDIR/go ]; do sleep 0.05; done" \
    2>"$BATS_TEST_TMPDIR/err" 3>&- &
  job=$!
  wait_until test -e "$BATS_TEST_TMPDIR/started"
  wait_until test -S "$dir/redis.sock"
}

@test "a cleaner that removes socket and lock files does not cause a second server" {
  held
  rm -f "$dir"/*.lock "$dir/redis.sock"
  run --separate-stderr rlock run -n --server-timeout 20s job -- touch "$BATS_TEST_TMPDIR/second"
  show
  [[ $status == 75 && ! -e $BATS_TEST_TMPDIR/second ]]
  one_server
  touch "$BATS_TEST_TMPDIR/go"
  wait "$job"
  run -0 rlock run -n job -- true
}

@test "a cleaner that removes everything does not cause a second server, and the job keeps its lock" {
  held
  local keeper
  keeper=$(keepers)
  rm -rf "$dir"/*
  run -69 --separate-stderr rlock run -n --server-timeout 200ms job -- touch "$BATS_TEST_TMPDIR/second"
  one_server
  # A waiting user is told what to do.
  WAIT_SECONDS=30 wait_until test -s "$dir/trouble"
  run -69 --separate-stderr rlock run -n --server-timeout 200ms job -- touch "$BATS_TEST_TMPDIR/second"
  assert_says "SIGTERM to process $keeper"
  [[ ! -e $BATS_TEST_TMPDIR/second ]]
  touch "$BATS_TEST_TMPDIR/go"
  wait "$job"
  kill "$keeper"
  wait_until not running
  run -0 rlock run -n job -- true
}

@test "a folder that is moved or removed ends its server, and the job using it says so" {
  held --lease 2s
  local server
  server=$(servers)
  mv "$dir" "$BATS_TEST_TMPDIR/away"
  wait_until gone "$server"
  local status=0
  wait "$job" || status=$?
  [[ $status == 74 ]]
  grep -q 'removed or replaced' "$BATS_TEST_TMPDIR/away/redis.log"
  wait_until not running
  run -0 rlock run -n job -- true
}

@test "a folder that is unreadable for a while keeps its server and its locks" {
  local above=$BATS_TEST_TMPDIR/above server
  mkdir "$above"
  dir=$above/l
  export RLOCK_URL=local:$dir
  run -0 rlock acquire --lease 10m job
  server=$(servers)
  mv "$above" "$above.away"
  ln -s above "$above" # to itself: ELOOP, in place of a disk's EIO
  wait_until grep -q 'its server continues' "$above.away/l/redis.log"
  rm "$above"
  mv "$above.away" "$above"
  run -75 rlock run -n job -- true
  [[ $(servers) == "$server" ]]
  [[ $(grep -c 'its server continues' "$dir/redis.log") == 1 ]]
}

@test "a server that keeps crashing is started less and less often, and waiters are told" {
  mkdir "$BATS_TEST_TMPDIR/bin"
  printf '#!/bin/sh\necho x >>%s/starts\nkill -SEGV $$\n' "$BATS_TEST_TMPDIR" >"$BATS_TEST_TMPDIR/bin/redis-server"
  chmod +x "$BATS_TEST_TMPDIR/bin/redis-server"
  PATH=$BATS_TEST_TMPDIR/bin:$PATH run -69 --separate-stderr rlock run job -- touch "$BATS_TEST_TMPDIR/started"
  show
  assert_says 'keeps crashing'
  assert_says 'killed by signal 11'
  assert_says "$dir/redis.log"
  (($(wc -l <"$BATS_TEST_TMPDIR/starts") < 10))
  [[ ! -e $BATS_TEST_TMPDIR/started ]]
  grep -q 'starting it again in 800ms' "$dir/redis.log"
  # It ends at once, also while it waits.
  local keeper
  keeper=$(keepers)
  kill "$keeper"
  wait_until gone "$keeper"
  run -0 --separate-stderr rlock run job -- true
}
