#!/usr/bin/env bats
# A user who can write to Redis cannot write to the terminal of another user who looks.

load ../lib/common

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  redis srv flushall >/dev/null
}
teardown() {
  if [[ -n ${odd_pid:-} ]]; then
    end_mine "$odd_pid"
    wait_until gone "$odd_pid"
  fi
  [[ ! -d $BATS_TEST_TMPDIR/l ]] || "$RLOCK" --url "local:$BATS_TEST_TMPDIR/l" local stop --yes >/dev/null 2>&1 || true
  assert_clean srv
}
teardown_file() { redis_stop srv; }

# Colours, a window title, a faked line, C1 controls, bytes that are not UTF-8, bidi and zero-width, a bell.
EVIL=$'\e[31mred\e]0;title\a\nINJECTED line\rINJECTED\x9b31m\xff\xfe\xc2\x9b31m\xe2\x80\xaeesrever\xe2\x81\xa6\xe2\x80\xa8\x7f\x08'

# hold NAME: a lock with malicious text in every field of its description.
hold() {
  local owner="owner-$EVIL:1"
  redis srv hset "$1" "$owner" 1 >/dev/null
  redis srv pexpire "$1" 60000 >/dev/null
  redis srv hset "rlock:holder:{$1}" owner "$owner" lease 60000 since 1700000000000 token 17 host "host-$EVIL" \
    pid "4711$EVIL" user "user-$EVIL" command "cmd-$EVIL" reason "why-$EVIL" >/dev/null
  redis srv pexpire "rlock:holder:{$1}" 60000 >/dev/null
}

drop() {
  local name
  for name; do redis srv del "$name" "rlock:holder:{$name}" >/dev/null; done
}

# harmless: the last run wrote no control byte, no bidi control, no invalid UTF-8, and no faked line.
harmless() {
  printf '%s\n%s\n' "$output" "${stderr:-}" >said
  LC_ALL=C grep -aP '[\x00-\x08\x0b-\x1f\x7f]' said | cat -v >raw
  [[ ! -s raw ]] || {
    cat raw
    return 1
  }
  not grep -a '^INJECTED' said
  python3 - <<'PYTHON'
text = open("said", "rb").read().decode()  # fails if it is not UTF-8
bad = [c for c in text if 0x7f <= ord(c) < 0xa0 or ord(c) in (0x2028, 0x2029) or
       0x202a <= ord(c) <= 0x202e or 0x2066 <= ord(c) <= 0x2069]
assert not bad, [hex(ord(c)) for c in bad]
PYTHON
}

@test "status in full" {
  hold x
  run -0 --separate-stderr rlock status x
  [[ $output == *host-*red* ]]
  harmless
  drop x
}

@test "status as a table" {
  hold x
  hold y
  run -0 --separate-stderr rlock status x y
  [[ ${#lines[@]} == 3 ]]
  harmless
  run -0 --separate-stderr rlock status
  [[ ${#lines[@]} -le 3 ]]
  harmless
  drop x y
}

@test "status as JSON can be parsed" {
  hold x
  hold y
  run -0 --separate-stderr rlock status --json x y
  harmless
  python3 -c '
import json, sys
entries = json.loads(sys.argv[1])
assert [e["name"] for e in entries] == ["x", "y"]
text = json.dumps(entries)
assert "why-" in text and "cmd-" in text' "$output"
  drop x y
}

@test "the names of locks that others made are shown escaped" {
  local name=$'x\e[31m\nINJECTED'
  redis srv hset "$name" owner:1 1 >/dev/null
  redis srv pexpire "$name" 60000 >/dev/null
  redis srv hset "rlock:holder:{$name}" owner owner:1 lease 60000 since 1 token 1 host h pid 1 user u >/dev/null
  redis srv pexpire "rlock:holder:{$name}" 60000 >/dev/null
  local option
  for option in '' --json --names; do
    run -0 --separate-stderr rlock status $option
    harmless
  done
  drop "$name"
}

@test "a name that is not UTF-8 or that changes the direction of the line is shown escaped" {
  local name=$'x\xff\xe2\x80\xaey'
  run -0 --separate-stderr rlock run "$name" -- "$RLOCK" status "$name"
  harmless
  run -0 --separate-stderr rlock run "$name" -- "$RLOCK" status --json
  harmless
  python3 -c 'import json, sys; assert len(json.loads(sys.argv[1])) == 1' "$output"
}

@test "force-unlock" {
  redis srv hset x owner:1 1 >/dev/null
  redis srv pexpire x 60000 >/dev/null
  redis srv hset 'rlock:holder:{x}' owner owner:1 lease 60000 since 1700000000000 token 17 host "host-$EVIL" pid 4711 \
    user "user-$EVIL" command "cmd-$EVIL" reason "why-$EVIL" >/dev/null
  redis srv pexpire 'rlock:holder:{x}' 60000 >/dev/null
  run -0 --separate-stderr rlock force-unlock --yes x
  assert_says host-
  harmless
  [[ $(redis srv exists x) == 0 ]]
}

@test "force-unlock of a lock whose owner id holds control bytes" {
  hold x
  run -0 --separate-stderr rlock force-unlock --yes x
  harmless
  [[ $(redis srv exists x) == 0 ]]
  redis srv eval "return redis.call('del', unpack(redis.call('keys', 'rlock:hold:*:taken')))" 0
}

@test "the message that a lock is busy" {
  hold x
  run -75 --separate-stderr rlock run -n x -- true
  [[ $stderr == *x* ]]
  harmless
  run -75 --separate-stderr rlock run -n -v x -- true
  harmless
  run -75 --separate-stderr rlock run -n --log-format json x -- true
  harmless
  python3 -c 'import json, sys; [json.loads(line) for line in sys.argv[1].splitlines()]' "$stderr"
  drop x
}

@test "the message while waiting" {
  hold x
  run -75 --separate-stderr rlock run -v --wait 1s x -- true
  assert_says 'waiting for x: held by user-'
  harmless
  run -75 --separate-stderr rlock acquire -v --wait 1s --lease 10s x
  assert_says 'waiting for x: held by user-'
  harmless
  drop x
}

# on_terminal TEXT ANSWER ARG...: rlock ARG... on a terminal. Its output was UTF-8, without a faked line.
on_terminal() {
  run python3 "$TESTS_DIR/lib/terminal.py" "$1" "$2" "$RLOCK" "${@:3}"
  [[ $output != *$'\xef\xbf\xbd'* ]]
  harmless
}

@test "the waiting line on a terminal" {
  hold x
  on_terminal 'waiting for x: held by' SIGTERM run x -- true
  [[ $status == 143 && $output == *'waiting for x: held by user-'* ]]
  drop x
}

@test "the question of force-unlock on a terminal" {
  hold x
  on_terminal '[y/N]' n force-unlock x
  [[ $status == 75 && $output == *host-*why-*'[y/N]'* && $(redis srv exists x) == 1 ]]
  drop x
}

@test "what local stop says about held locks" {
  export RLOCK_URL=local:$BATS_TEST_TMPDIR/l
  rlock acquire --lease 1m $'evil\xe2\x80\xae\xff\xc2\x9b31m'
  run -75 --separate-stderr rlock local stop
  assert_says evil
  harmless
  run -0 --separate-stderr rlock local stop --yes
  harmless
}

@test "your own reason, command and arguments are shown unchanged" {
  run -0 --separate-stderr rlock run --reason "$EVIL" x -- "$RLOCK" status x
  harmless
  run -0 --separate-stderr rlock run --reason "$EVIL" x -- "$RLOCK" status --json x
  harmless
  run -127 --separate-stderr rlock run x -- "./$EVIL"
  harmless
  run -64 --separate-stderr rlock run --lease "$EVIL" x -- true
  harmless
  run -64 --separate-stderr rlock "$EVIL"
  harmless
  run -64 --separate-stderr rlock run "--$EVIL" x -- true
  harmless
  run -64 --separate-stderr rlock run --url "$EVIL" x -- true
  harmless
  run -64 --separate-stderr rlock run x "$EVIL" "$EVIL"
  harmless
}

@test "text in place of a number does no harm" {
  redis srv hset x owner:1 999999999999999 >/dev/null
  redis srv pexpire x 60000 >/dev/null
  redis srv hset 'rlock:holder:{x}' owner owner:1 lease "$EVIL" since -99999999999999999999 token "$EVIL" pid -1 >/dev/null
  redis srv pexpire 'rlock:holder:{x}' 60000 >/dev/null
  run -0 --separate-stderr rlock status x
  harmless
  run -0 --separate-stderr rlock status --json x
  harmless
  python3 -c 'import json, sys; json.loads(sys.argv[1])' "$output"
  run -75 --separate-stderr rlock run -n x -- true
  harmless
  drop x
}

@test "a reason of many kilobytes does no harm" {
  head -c 200000 /dev/zero | tr '\0' a >long
  redis srv hset x owner:1 1 >/dev/null
  redis srv pexpire x 60000 >/dev/null
  redis srv -x hset 'rlock:holder:{x}' owner owner:1 lease 60000 since 1 token 1 reason <long >/dev/null
  redis srv pexpire 'rlock:holder:{x}' 60000 >/dev/null
  run -0 --separate-stderr rlock status x
  ((${#output} < 10000))
  run -75 --separate-stderr rlock run -n x -- true
  ((${#stderr} < 10000))
  drop x
}

# odd MODE TEXT: sets $RLOCK_URL to such a server, and $odd_pid.
odd() {
  python3 "$TESTS_DIR/lib/odd_server.py" "$@" >port 2>/dev/null </dev/null 3>&- &
  odd_pid=$!
  wait_until test -s port
  RLOCK_URL=redis://127.0.0.1:$(cat port)
}

@test "the reason why waiters could not be told of a release" {
  odd fault "$(printf '%s%2000s' "$EVIL" '' | tr ' ' a)"
  run -0 --separate-stderr rlock run x -- true
  assert_says 'waiters could not be told'
  harmless
  ((${#stderr} < 1000))
  run -0 --separate-stderr rlock release --owner a:1 x
  assert_says 'waiters could not be told'
  harmless
  ((${#stderr} < 1000))
}

@test "a lock granted to an owner that did not ask for it" {
  odd grant "someone-$EVIL:7"
  run -69 --separate-stderr rlock run x -- true
  harmless
  kill "$odd_pid"
  wait_until gone "$odd_pid"
  rm port
  odd grant "someone-"$'\xc2\x9b31m\xe2\x80\xaeesrever\xff:7'
  run -69 --separate-stderr rlock run x -- true
  assert_says someone-
  harmless
}

# held NAME...: by another program that writes as rlock does.
held() {
  local name
  for name; do
    redis srv hset "$name" owner:1 1 >/dev/null
    redis srv pexpire "$name" 60000 >/dev/null
    redis srv hset "rlock:holder:{$name}" owner owner:1 lease 60000 since 1 token 1 host h pid 1 user u >/dev/null
    redis srv pexpire "rlock:holder:{$name}" 60000 >/dev/null
  done
}

@test "status --names: escaped on a terminal, elsewhere only names that are what they look like" {
  local name=$'x\xc2\x9b31m\xe2\x80\xaeesrever\xff'
  held "$name"
  on_terminal nothing nothing status --names
  [[ $status == 0 && $output == 'x\xc2\x9b31m\u{202e}esrever\xff' ]]
  run -0 --separate-stderr rlock status --names
  [[ -z $output ]]
  assert_says '1 name is left out'
  held 'a b' 'c\d' '--on-acquire=touch PWNED'
  run -0 --separate-stderr rlock status --names
  [[ $(sort <<<"$output") == $'a b\nc\\d' ]]
  assert_says '2 names are left out'
  assert_says 'use --null to print all'
  run -0 --separate-stderr rlock --quiet status --names
  [[ -z $stderr ]]
  drop "$name" 'a b' 'c\d' '--on-acquire=touch PWNED'
}

@test "status --names --null: all names, byte for byte, but not on a terminal" {
  local option name=$'x\xc2\x9b31m\xe2\x80\xaeesrever\xff'
  held "$name" -y
  for option in -0 --null; do
    run -0 --separate-stderr rlock status --names "$option" "$name"
    [[ -z $stderr ]]
    rlock status --names "$option" | sort -z | cmp - <(printf '%s\0' -y "$name")
  done
  on_terminal nothing nothing status --names -0 "$name"
  [[ $status == 0 && $output == 'x\xc2\x9b31m\u{202e}esrever\xff'* ]]
  run -64 --separate-stderr rlock status --null
  assert_says '--null needs --names'
  drop "$name" -y
}
