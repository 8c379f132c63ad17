# rlock acquire: what it prints, what it leaves on the server, and whom it refuses.

load ../lib/server

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

@test "--export: without the lock, for whatever reason, the shell that evaluates it exits with rlock's status" {
  take a
  without_lock -75 -n --lease 30s a
  without_lock -9 -n -E 9 --lease 30s a
  # For rlock this is success, but there is no lock to continue with.
  without_lock -75 -n -E 0 --lease 30s a
  rlock force-unlock -y a
  redis srv set string text px 60000
  without_lock -76 -n --lease 30s string
  redis srv del string
  without_lock -64 --lease 30s --no-such-option a
  without_lock -78 --config none.toml --lease 30s a
  without_lock -69 --url "unix://$PWD/none" --lease 30s a
  [[ $(redis srv exists a) == 0 ]]
}

@test "a full standard output does not keep rlock from ending, and the lock is given back" {
  stuck 1 "$RLOCK" acquire --lease 10m a 3>&- &
  local acquiring=$!
  held() { [[ $(redis srv exists a) == 1 ]]; }
  wait_until held
  kill "$acquiring"
  exits "$acquiring" 143
  [[ $(redis srv exists a) == 0 ]]
}

@test "--export: the same if a signal ends rlock while it waits, also SIGKILL" {
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

@test "--export: every shell continues with the lock, also with set -e, and has its name, owner and token, whatever is in the name" {
  cat >script <<'SCRIPT'
set -eu
eval "$("$RLOCK" acquire --lease 30s --export "$1")" && printf '%s\n' "$RLOCK_NAME" "$RLOCK_OWNER" "$RLOCK_TOKEN"
redis-cli -s "$srv_sock" hkeys "$1"
"$RLOCK" release "$1"
SCRIPT
  for shell in sh bash dash zsh; do
    command -v "$shell" >/dev/null || continue
    # zsh expands =ls; ##[group] would be a command to GitHub's runner.
    for name in "it's a" =ls a:=ls a==ls '##[group]' 'a "b" $(touch x) `touch x` \ ;&' ' lead and trail ' 'ümlaut*?'; do
      run -0 --separate-stderr timeout -k 1 60 "$shell" script "$name"
      [[ ${lines[0]} == "$name" && ${lines[1]} == "${lines[3]}" && ${#lines[@]} == 4 && -z $stderr ]]
      [[ ${lines[2]} == "$(redis srv get "redisson_lock_token:{$name}")" ]]
    done
  done
  [[ ! -e x ]]
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
