#!/usr/bin/env bats
# Help, version, and hints for users of other programs.

load ../lib/common

SUBCOMMANDS='run acquire renew release status force-unlock history doctor config local help version'

# longest: the length of the longest line on standard input, except for examples, which stay unchanged for copying.
longest() { grep -vE '^  (rlock |owner=|eval |\./)' | awk '{ if (length($0) > most) most = length($0) } END { print most }'; }

@test "each help is as wide as asked for, or as the terminal, or 80 columns" {
  local subcommand width
  for subcommand in $SUBCOMMANDS; do
    unset COLUMNS
    (($(rlock "$subcommand" --help | wc -L) <= 80 && $(rlock "$subcommand" -h | wc -L) <= 80))
    for width in 50 60 100; do
      export COLUMNS=$width
      (($(rlock "$subcommand" --help | longest) <= width))
    done
  done
  unset COLUMNS
  (($(rlock --help | wc -L) <= 80))
  # On a terminal of 52 columns, which it fills.
  run -0 python3 - "$RLOCK" <<'PYTHON'
import fcntl, os, pty, re, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 52, 0, 0))
    os.execv(sys.argv[1], ["rlock", "run", "--help"])
text = b""
while True:
    try:
        data = os.read(terminal, 4096)
    except OSError:
        break
    if not data:
        break
    text += data
os.waitpid(pid, 0)
lines = [line for line in text.decode().splitlines() if not re.match("  rlock ", line)]
assert 45 < max(map(len, lines)) <= 52, max(map(len, lines))
PYTHON
}

@test "only a number is accepted as a width" {
  local columns
  for columns in 0 -1 x 99999999999999999999 '' 5; do
    (($(COLUMNS=$columns rlock run --help | longest) <= 120))
    [[ $(COLUMNS=$columns rlock run --help) == *'--on-lost'* ]]
  done
}

@test "run --help is grouped" {
  run -0 --separate-stderr rlock run --help
  [[ $(grep -E '^[A-Z][^.]*:$' <<<"$output") == $'Options:\nWaiting:\nKind of lock:\nLease and supervision:\nHooks:\nExamples:' ]]
  [[ $(sed -n 's/^  \(-[^ ]*\) .*/\1/p' <<<"$output" | head -n 6 | paste -sd' ') == '-n,--nonblock -w,--wait -E,--conflict-exit-code -s,--shared -x,--exclusive --slots' ]]
  ((${#lines[@]} <= 110))
  [[ $output == *'which rlock --help explains: --url,'* ]]
  [[ $(sed -n '/^Waiting/,/^$/p' <<<"$output") == *--max-queue*--priority* ]]
  [[ $(sed -n '/^Kind/,/^$/p' <<<"$output") == *--take*--from* ]]
  [[ $(sed -n '/^Lease/,/^$/p' <<<"$output") == *--lease*--leftovers* ]]
  [[ $(sed -n '/^Hooks/,/^$/p' <<<"$output") == *--on-acquire*--on-lost* ]]
}

@test "-h fits on a screen, and names --help" {
  local subcommand
  for subcommand in $SUBCOMMANDS; do
    (($(rlock "$subcommand" -h | wc -l) < 24))
    run -0 --separate-stderr rlock "$subcommand" -h
    [[ $output == *"rlock $subcommand --help"* ]]
  done
  run -0 --separate-stderr rlock run -h
  [[ $output == *--wait* && $output == *--lease* && $output == *--url* && $output != *--max-queue* ]]
}

@test "rlock help explains each subcommand as its --help does" {
  local subcommand
  for subcommand in $SUBCOMMANDS; do
    [[ $(rlock help "$subcommand") == "$(rlock "$subcommand" --help)" ]]
  done
  [[ $(rlock help) == "$(rlock --help)" ]]
  run -64 --separate-stderr rlock help statsu
  assert_says 'did you mean status?'
  run -64 --separate-stderr rlock help timeline
  assert_says "unknown subcommand 'timeline'; see rlock --help"
}

@test "help and version need no configuration and no server" {
  echo '[wrong' >"$BATS_TEST_TMPDIR/wrong.toml"
  RLOCK_CONFIG=$BATS_TEST_TMPDIR/wrong.toml RLOCK_URL=nowhere run -0 --separate-stderr rlock help run
  [[ -z $stderr ]]
  RLOCK_CONFIG=$BATS_TEST_TMPDIR/wrong.toml RLOCK_URL=nowhere run -0 --separate-stderr rlock version
  [[ -z $stderr ]]
}

@test "rlock version, --version and -V: version, commit and libraries" {
  run -0 --separate-stderr rlock version
  [[ ${lines[0]} =~ ^rlock\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
  [[ ${lines[-1]} =~ ^with\ hiredis\ [0-9.]+,\ c-ares\ [0-9.]+,\ OpenSSL\ [0-9.]+,\ CLI11\ [0-9.]+,\ nlohmann-json\ [0-9.]+,\ spdlog\ [0-9.]+,\ fmt\ [0-9.]+$ ]]
  [[ $(rlock --version) == "$output" && $(rlock -V) == "$output" && $(rlock run --version) == "$output" ]]
  # The commit is known if a clone was built here, but not for an archive.
  local root=$TESTS_DIR/..
  if [[ -e $root/.git && -e $(dirname "$RLOCK")/CMakeCache.txt ]] && git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
    [[ ${lines[1]} =~ ^commit\ [0-9a-f]{12}(-dirty)?$ ]]
    git -C "$root" cat-file -e "$(sed -n 's/^commit \([0-9a-f]*\).*/\1/p' <<<"$output")"
  fi
}

@test "words that other programs use are understood, but not executed" {
  local pair
  for pair in list:status ls:status exec:run unlock:release; do
    run -64 --separate-stderr rlock "${pair%:*}" x
    assert_says "did you mean ${pair#*:}?"
    [[ -z $output ]]
  done
}
