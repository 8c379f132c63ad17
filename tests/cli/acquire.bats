#!/usr/bin/env bats
# rlock acquire: what it prints, what it leaves on the server, and whom it refuses.

load ../lib/common
load ../lib/server

is_free() { [[ $(redis srv exists "$1") == 0 ]]; }

@test "the keys are the lock, the holder's description and the fencing token, and only the token has no TTL" {
  local owner keys
  owner=$(rlock acquire --lease 40s fresh)
  [[ $(holder fresh) == "$owner"$'\n1' ]]
  (($(redis srv pttl fresh) > 0 && $(redis srv pttl fresh) <= 40000))
  (($(redis srv pttl 'rlock:holder:{fresh}') > 0 && $(redis srv pttl 'rlock:holder:{fresh}') <= 40000))
  keys=$(redis srv keys '*fresh*' | sort)
  [[ $keys == $'fresh\nredisson_lock_token:{fresh}\nrlock:holder:{fresh}' ]]
  [[ $(redis srv ttl 'redisson_lock_token:{fresh}') == -1 ]]
  rlock release fresh --owner "$owner"
}

@test "--export: eval sets the name, the owner and the token, regardless of what the name contains" {
  local name
  for name in plain "it's" 'a "b" $(touch x) `touch x` \ ;&' ' lead and trail ' 'ümlaut*?'; do
    (
      eval "$(rlock acquire --lease 30s --export "$name")"
      [[ $RLOCK_NAME == "$name" && $RLOCK_OWNER == "$(redis srv hkeys "$name")" ]]
      [[ $RLOCK_TOKEN == "$(redis srv get "redisson_lock_token:{$name}")" ]]
      [[ $(sh -c 'echo "$RLOCK_NAME"') == "$name" ]]
      rlock release "$name"
    )
  done
  [[ ! -e x ]]
}

# without_lock STATUS OPTION...: every shell stops with STATUS when it evaluates what `acquire --export OPTION...`
# prints, and does nothing that needs the lock: after &&, with set -e, and after || exit.
without_lock() {
  local want=$1 shell ran=0
  shift
  cat >and <<'SCRIPT'
eval "$("$RLOCK" acquire --export "$@" 2>/dev/null)" && touch deployed
SCRIPT
  cat >stop <<'SCRIPT'
set -e
eval "$("$RLOCK" acquire --export "$@" 2>/dev/null)"
touch deployed
SCRIPT
  cat >or <<'SCRIPT'
eval "$("$RLOCK" acquire --export "$@" 2>/dev/null)" || exit
touch deployed
SCRIPT
  for shell in sh bash dash zsh; do
    command -v "$shell" >/dev/null || continue
    for script in and stop or; do
      run "$want" --separate-stderr timeout -k 1 60 "$shell" "$script" "$@"
      [[ -z $output && -z $stderr && ! -e deployed ]]
    done
    ran=$((ran + 1))
  done
  ((ran >= 3))
}

@test "--export: if the lock is busy, the shell that evaluates it exits with rlock's status" {
  take a
  without_lock -75 -n --lease 30s a
  without_lock -9 -n -E 9 --lease 30s a
  without_lock -75 -w 100ms --lease 30s a
  # For rlock this is success, but there is no lock to continue with.
  without_lock -75 -n -E 0 --lease 30s a
  run -0 --separate-stderr rlock acquire -n -E 0 --lease 30s --export a
  rlock force-unlock -y a
}

@test "--export: the same if Redis is unreachable, the key is not a lock, or the command line or a file is wrong" {
  redis srv set string text px 60000
  without_lock -76 -n --lease 30s string
  redis srv del string
  without_lock -64 a
  without_lock -64 --lease 30s --no-such-option a
  without_lock -64 --lease 30s --json a
  without_lock -64 --lease 30s '{'
  without_lock -64 --for-pid 4194305 a
  without_lock -78 --config none.toml --lease 30s a
  without_lock -69 --url "unix://$PWD/none" --lease 30s a
  # A word that looks like another subcommand is the value of an option, even of an unknown one.
  run -64 --separate-stderr rlock --no-such-option run acquire --lease 30s --export a
  [[ $output == '(exit 70) || (exit 64)' ]]
  # The option in front of the subcommand, and other mistakes.
  local line
  for line in '--export acquire' '-q --export acquire' '--export=true acquire' 'no --export acquire' \
    'acquire --export --version=x' '--bogus --export acquire'; do
    # shellcheck disable=SC2086 # words
    run -64 --separate-stderr rlock $line --lease 30s a
    [[ $output == '(exit 70) || (exit 64)' ]]
  done
  run -78 --separate-stderr rlock --config run acquire --lease 30s --export a
  [[ $output == '(exit 70) || (exit 78)' ]]
  [[ $(redis srv exists a) == 0 ]]
}

@test "a full standard output does not keep rlock from ending, and the lock is given back" {
  stuck 1 "$RLOCK" acquire --lease 10m a 3>&- &
  local acquiring=$! status=0
  held() { [[ $(redis srv exists a) == 1 ]]; }
  wait_until held
  kill "$acquiring"
  wait "$acquiring" || status=$?
  [[ $status == 143 ]]
  [[ $(redis srv exists a) == 0 ]]
}

@test "--export: the same if a signal ends rlock while it waits, also SIGKILL" {
  local signal want
  take a
  for signal in TERM INT HUP KILL; do
    want=$((128 + $(kill -l "$signal")))
    [[ $signal != KILL ]] || want=70
    SIGNAL=$signal run "-$want" python3 - <<'EOF'
import os, signal, subprocess, sys
# Run as by $(...) in a shell at a terminal.
waiter = subprocess.Popen([os.environ["RLOCK"], "acquire", "-v", "--lease", "30s", "--export", "a"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          preexec_fn=lambda: [signal.signal(one, signal.SIG_DFL)
                                              for one in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)])
while "waiting for a" not in waiter.stderr.readline():
    pass
waiter.send_signal(getattr(signal, "SIG" + os.environ["SIGNAL"]))
text = waiter.communicate()[0]
sys.exit(subprocess.run(["sh", "-c", 'eval "$1" && touch deployed', "-", text]).returncode)
EOF
  done
  [[ ! -e deployed ]]
  rlock force-unlock -y a
}

@test "--export: every shell continues with the lock, also with set -e" {
  local shell name
  cat >script <<'SCRIPT'
set -eu
eval "$("$RLOCK" acquire --lease 30s --export "$1")" && echo "$RLOCK_NAME"
"$RLOCK" release "$1"
SCRIPT
  for shell in sh bash dash zsh; do
    command -v "$shell" >/dev/null || continue
    # zsh expands =ls; the last one would be a command to GitHub's runner.
    for name in "it's a" =ls a:=ls a==ls '##[group]'; do
      run -0 --separate-stderr timeout -k 1 60 "$shell" script "$name"
      [[ $output == "$name" && -z $stderr ]]
    done
  done
}

@test "--json is one object with name, owner, token and lease" {
  local name=$'a "b" \\ ü'
  rlock acquire --lease 1.5m --json "$name" >json
  python3 - "$name" "$(redis srv hkeys "$name")" <<'EOF'
import json, sys
with open("json") as file:
    lock = json.load(file)
assert list(lock) == ["name", "owner", "token", "lease_ms"], lock
assert lock["name"] == sys.argv[1] and lock["owner"] == sys.argv[2] and lock["lease_ms"] == 90000
assert isinstance(lock["token"], str) and lock["token"].isdigit()
EOF
  rlock force-unlock -y "$name"
}

@test "without -n and -w it waits, and prints the owner id when it has the lock" {
  local owner pid
  owner=$(take a)
  "$RLOCK" acquire --lease 30s a >second 3>&- &
  pid=$!
  wait_until waiters a 1
  rlock release a --owner "$owner"
  wait "$pid"
  [[ $(holder a) == "$(<second)"$'\n1' && $(<second) != "$owner" ]]
  rlock release a --owner "$(<second)"
}

@test "the lease ends by itself, and another owner gets the lock" {
  local first second
  first=$(take a)
  run -75 rlock acquire -n --lease 30s a
  redis srv pexpire a 1
  wait_until is_free a
  second=$(take a)
  [[ $second != "$first" && $(holder a) == "$second"$'\n1' ]]
  run -76 rlock release a --owner "$first"
  rlock release a --owner "$second"
}

@test "nobody renews it" {
  local owner
  owner=$(rlock acquire --lease 1s a 2>warning)
  wait_until is_free a
  run -76 rlock release a --owner "$owner"
}
