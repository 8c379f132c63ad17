# Options take precedence over variables, and variables over the user's file; a wrong file is reported.
# shellcheck disable=SC2154 # srv_sock and other_sock: set by redis_start

load ../lib/server

setup_file() { open_server; }
setup() {
  use_server srv
  export XDG_CONFIG_HOME=$PWD/config
  mkdir -p "$XDG_CONFIG_HOME/rlock"
  USER_FILE=$XDG_CONFIG_HOME/rlock/rlock.toml
}

# wrong FILE TEXT: the file is refused with TEXT and its own name, and nothing runs.
wrong() {
  run -78 --separate-stderr rlock run --config "$1" x -- touch ran
  [[ $stderr == "rlock: "*"$1"*"$2"* && -z $output && ! -e ran ]]
}

own_etc() { unshare -m true 2>/dev/null || skip 'only root can give a job an /etc of its own'; }

# with_host_file TEXT COMMAND...: COMMAND, with TEXT in /etc/rlock/rlock.toml. No other process sees that folder.
with_host_file() {
  local text=$1 etc=$BATS_TEST_TMPDIR/etc
  shift
  mkdir -p "$etc/rlock"
  cp /etc/passwd /etc/group /etc/nsswitch.conf /etc/hosts /etc/ld.so.cache "$etc" 2>/dev/null || true
  cp -r /etc/alternatives "$etc" 2>/dev/null || true
  printf '%s\n' "$text" >"$etc/rlock/rlock.toml"
  timeout -k 1 60 unshare -m sh -c 'mount --bind "$0" /etc && exec "$@"' "$etc" "$@"
}

@test "the host's file is used, unless --config replaces it, with the user's file before it; an error names it" {
  own_etc
  local status_line=("$RLOCK" run x -- "$RLOCK" status x)
  run -0 --separate-stderr with_host_file $'lease = "46s"\nreason = "of the host"' "${status_line[@]}"
  [[ $output =~ lease\ +46s && $output == *'of the host'* ]]
  echo 'lease = "41s"' >"$USER_FILE"
  run -0 --separate-stderr with_host_file $'lease = "46s"\nreason = "of the host"' "${status_line[@]}"
  [[ $output =~ lease\ +41s && $output == *'of the host'* ]]
  RLOCK_REASON='of the variable' run -0 --separate-stderr with_host_file 'reason = "of the host"' "${status_line[@]}"
  [[ $output == *'of the variable'* ]]
  echo '# nothing' >c.toml
  run -0 --separate-stderr with_host_file 'lease = "46s"' "$RLOCK" run --config c.toml x -- "$RLOCK" status x
  [[ $output =~ lease\ +30s ]]
  run -78 --separate-stderr with_host_file 'leese = "46s"' "$RLOCK" run x -- touch ran
  [[ $stderr == *'/etc/rlock/rlock.toml'* && ! -e ran ]]
}

# for_user USER: a folder with a file, and $as, a job of that user with the file.
for_user() {
  as=(setpriv --reuid="$1" --regid="$1" --clear-groups)
  "${as[@]}" test -x "$RLOCK" || skip "$1 may not run rlock here"
  folder=$(mktemp -d)
  chmod 755 "$folder"
  echo 'lease = "41s"' >"$folder/c.toml"
  as+=(timeout -k 1 60 "$RLOCK" run --url unix:///none --config "$folder/c.toml" x -- true)
}

# As root, a job would run what another user says.
foreign() { ((EUID == 0)) || skip 'only root can give a file away'; }

@test "a file of another user is refused, regardless of its folder" {
  foreign
  mkdir -p home/.config/rlock
  printf 'on-acquire = "touch ran"\n' >home/.config/rlock/rlock.toml
  chown -R 65534 home
  unset XDG_CONFIG_HOME
  HOME=$PWD/home tells 78 home/.config/rlock/rlock.toml rlock run x -- touch ran
  assert_says 'another user (id 65534)' '--config'
  XDG_CONFIG_HOME=$PWD/home/.config run -78 --separate-stderr rlock run x -- touch ran
  wrong home/.config/rlock/rlock.toml 'another user'
  [[ ! -e ran ]]
}

@test "a folder or link of another user on the way to a file is refused, also in a sticky folder" {
  foreign
  mkdir -m 1777 sticky
  mkdir -p sticky/theirs/ours theirs
  echo 'lease = "41s"' | tee sticky/theirs/ours/c.toml theirs/c.toml >c.toml
  chown 65534 sticky/theirs theirs
  wrong sticky/theirs/ours/c.toml 'sticky/theirs: not trusted, because it belongs to another user'
  wrong theirs/c.toml 'theirs: not trusted, because it belongs to another user'
  ln -s ../c.toml sticky/link.toml
  ln -s .. sticky/up
  rlock run --config sticky/link.toml x -- true
  chown -h 65534 sticky/link.toml sticky/up
  wrong sticky/link.toml 'sticky/link.toml: not trusted, because it belongs to another user'
  wrong sticky/up/c.toml 'sticky/up: not trusted, because it belongs to another user'
}

# Debian has a user daemon with a group of that name, and a group games.
@test "the user's own group may write, as with umask 002; no other group may, nor root's; root's file is accepted" {
  foreign
  own_etc
  for_user daemon
  chown -R daemon:daemon "$folder"
  chmod 775 "$folder"
  chmod 664 "$folder/c.toml"
  # No server is needed, because a refused configuration is reported first.
  run -69 --separate-stderr "${as[@]}"
  chgrp games "$folder/c.toml"
  tells 78 'because its group may write' "${as[@]}"
  # It is another user's primary group, which no list of members shows.
  chgrp daemon "$folder/c.toml"
  cp /etc/passwd passwd
  echo "other:x:54321:$(id -g daemon)::/:/bin/sh" >>passwd
  tells 78 'because its group may write' unshare -m sh -c 'mount --bind passwd /etc/passwd && exec "$@"' sh "${as[@]}"
  # Who is in it is unknown if getent(1) cannot be started.
  tells 78 'because its group may write' setpriv --reuid=daemon --regid=daemon --clear-groups prlimit --nproc=1 "${as[@]:8}"
  chown root:root "$folder" "$folder/c.toml"
  run -78 --separate-stderr "${as[@]}"
  wrong "$folder/c.toml" 'because its group may write'
  chgrp daemon "$folder" "$folder/c.toml"
  chmod 666 "$folder/c.toml"
  tells 78 'because others may write' "${as[@]}"
  # Nobody can change a file system that is mounted read-only.
  run -69 --separate-stderr unshare -m sh -c 'mount --bind "$0" "$0"; mount -o remount,bind,ro "$0"; exec "$@"' "$folder" "${as[@]}"
  # Root's file is accepted from everyone, unless it is unreadable.
  chown -R root:root "$folder"
  chmod -R go-w "$folder"
  run -69 --separate-stderr "${as[@]}"
  chmod 000 "$folder/c.toml"
  tells 78 "$folder/c.toml: Permission denied" "${as[@]}"
  rm -rf "$folder"
}

@test "a file whose path is unknown is refused; a file that no longer exists is not" {
  run -78 --separate-stderr python3 - "$RLOCK" <<'EOF'
import os, sys
for _ in range(20):  # more than PATH_MAX
    os.mkdir("d" * 250)
    os.chdir("d" * 250)
with open("c.toml", "w") as file:
    file.write('lease = "41s"\n')
os.execv(sys.argv[1], ["rlock", "run", "--config", "c.toml", "x", "--", "echo", "ran"])
EOF
  assert_says 'c.toml: cannot tell which folder it is in: '
  [[ -z $output ]]
  echo 'lease = "41s"' >gone
  exec 9<gone
  rm gone
  run -0 --separate-stderr rlock run --config /dev/fd/9 x -- "$RLOCK" status x
  exec 9<&-
  [[ $output =~ lease\ +41s ]]
}

# An owner without an id in a user namespace may be root or another user.
@test "in a user namespace root's file in /etc is accepted, and no file or link of another user" {
  own_etc
  foreign
  for_user daemon
  as=("${as[@]::4}")
  "${as[@]}" unshare -r true 2>/dev/null || skip 'ordinary users may not create user namespaces here'
  local up=${folder//[^\/]/}
  up=${up//\//\/..}
  echo 'on-acquire = "touch ran"' | tee "$folder/theirs.toml" >"$folder/ours.toml"
  ln -s ours.toml "$folder/link.toml"
  chown daemon "$folder/ours.toml"
  chown -h 65534 "$folder/theirs.toml" "$folder/link.toml"
  as=(env -u XDG_CONFIG_HOME HOME="$folder" "${as[@]}" timeout -k 1 60 unshare)
  # No server is needed, because a refused configuration is reported first.
  run -69 --separate-stderr "${as[@]}" -r "$RLOCK" run --url unix:///none --config "$folder/ours.toml" x -- true
  # -U maps no id, so that daemon has that of all others.
  for namespace in -r -U; do
    as+=("$namespace" "$RLOCK" run --url unix:///none)
    run -69 --separate-stderr with_host_file 'lease = "46s"' "${as[@]}" x -- true
    run -69 --separate-stderr with_host_file 'lease = "46s"' "${as[@]}" --config "$folder/$up/etc/rlock/rlock.toml" x -- true
    run -78 --separate-stderr with_host_file 'lease = soon' "${as[@]}" x -- true
    tells 78 'theirs.toml: not trusted, because it belongs to another user' "${as[@]}" --config "$folder/theirs.toml" x -- true
    tells 78 'link.toml: not trusted, because it belongs to another user' "${as[@]}" --config "$folder/link.toml" x -- true
    as=("${as[@]::${#as[@]}-5}")
  done
  # The id of all others may also be that of a user of the namespace.
  chown 1234 "$folder/theirs.toml"
  run -78 --separate-stderr "${as[@]}" -U --map-user=65534 "$RLOCK" run --url unix:///none --config "$folder/theirs.toml" x -- true
  assert_says 'theirs.toml: not trusted, because it belongs to another user'
  rm -rf "$folder"
}

@test "a HOME that may not be entered is named" {
  ((EUID == 0)) || skip 'only root can close a folder to itself'
  needs_nobody
  mkdir -m 700 home
  unset XDG_CONFIG_HOME
  run -78 --separate-stderr setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$PWD/home" "$RLOCK" run x -- touch ran
  assert_says "this user may not enter the folder in HOME, '$PWD/home'"
}

@test "a password in a file that others may read is refused" {
  local address="${RLOCK_URL/:\/\//://:s3cr3t-pw@}" mode
  unset RLOCK_URL
  echo "url = \"$address\"" >c.toml
  for mode in 644 640 604; do
    chmod $mode c.toml
    wrong c.toml 'chmod 600 c.toml'
    [[ $stderr != *s3cr3t* ]]
  done
  # Others can see it, regardless of what takes precedence.
  RLOCK_URL=$(redis_url srv) run -78 --separate-stderr rlock run --config c.toml x -- touch ran
  chmod 600 c.toml
  run -77 --separate-stderr rlock run --config c.toml x -- touch ran # our server wants no password
  own_etc
  tells 78 'chmod 600 /etc/rlock/rlock.toml' with_host_file "url = \"$address\"" "$RLOCK" run x -- touch ran
  [[ ! -e ran ]]
}

# on_own_host COMMAND...: with its own network, in which a server listens at 127.0.0.1:6379, as on many hosts.
on_own_host() {
  "${namespace[@]}" bash -c '
    set -e
    ip link set lo up
    dir=$(mktemp -d own.XXXX)
    redis-server --port 6379 --bind 127.0.0.1 --dir "$PWD/$dir" --save "" >/dev/null 2>&1 3>&- &
    trap "kill $!" EXIT
    until redis-cli ping >/dev/null 2>&1; do sleep 0.05; done
    "$@"' - "$@"
}
own_network() { own_namespace -n 'NETWORK NAMESPACES ARE NOT ALLOWED HERE: two hosts are not tested' ip link set lo up; }

@test "if nothing names a server, two hosts both run, and each shows one line with the three places to name it; one of these ends the warning" {
  own_network
  unset RLOCK_URL SUDO_USER
  local warning='rlock: warning: no server was given, so rlock uses redis://127.0.0.1:6379, which may be a different server on each host; give it with --url, RLOCK_URL, or by url = "redis://HOST" in /etc/rlock/rlock.toml'
  local places=(env -i PATH="$PATH" HOME=/nonexistent LC_ALL=C.UTF-8) host
  both_run() {
    for host in one two; do echo go >"$host"; done
    for host in one two; do
      run --separate-stderr on_own_host "${places[@]}" "$RLOCK" run -n "$@" job -- rm "$host"
      [[ $status == 0 && ! -e $host ]] || return 1
    done
  }
  both_run
  [[ $stderr == "$warning" && ${#stderr_lines[@]} == 1 ]]
  run -0 --separate-stderr on_own_host "${places[@]}" "$RLOCK" acquire job --lease 5s
  [[ $stderr == "$warning" ]]
  both_run -q # prints errors only
  [[ -z $stderr ]]
  both_run --log-format json
  [[ $stderr == '{"'*'"level":"warning"'*'no server was given'* && ${#stderr_lines[@]} == 1 ]]
  places=(env -i PATH="$PATH" HOME="$PWD/home" RLOCK="$RLOCK")
  quiet() { run -0 --separate-stderr on_own_host "$@" && [[ -z $stderr ]]; }
  quiet "${places[@]}" "$RLOCK" run --url redis://127.0.0.1 job -- true
  quiet "${places[@]}" "$RLOCK" acquire --url redis://127.0.0.1 job --lease 5s
  quiet "${places[@]}" RLOCK_URL=redis://127.0.0.1:6379 "$RLOCK" run job -- true
  mkdir -p home/.config/rlock
  echo 'url = "redis://127.0.0.1"' >home/.config/rlock/rlock.toml
  quiet "${places[@]}" "$RLOCK" run job -- true
  rm home/.config/rlock/rlock.toml
  # A nested run does not warn.
  run -0 --separate-stderr on_own_host "${places[@]}" "$RLOCK" run job -- sh -c '"$RLOCK" run inner -- true && "$RLOCK" run job -- true'
  [[ ${#stderr_lines[@]} == 1 ]]
  # Looking at a lock cannot make two jobs run.
  quiet "${places[@]}" "$RLOCK" status job
  quiet "${places[@]}" "$RLOCK" doctor --acl
}
