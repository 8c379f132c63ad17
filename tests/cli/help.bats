# Help, version, and hints for users of other programs.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return; }

SUBCOMMANDS='run acquire renew release status force-unlock history doctor config local completion help version'

# longest: the length of the longest line on standard input, except for examples, which stay unchanged for copying.
longest() { grep -vE '^  (rlock |owner=|eval |\./)' | awk '{ if (length($0) > most) most = length($0) } END { print most }'; }

@test "each help is as wide as asked for, or as the terminal, or 80 columns; -h fits on a screen, and names --help" {
  for subcommand in $SUBCOMMANDS; do
    unset COLUMNS
    rlock "$subcommand" --help >long
    rlock "$subcommand" -h >short
    (($(wc -L <long) <= 80 && $(wc -L <short) <= 80 && $(wc -l <short) < 24))
    grep -qF "rlock $subcommand --help" short
    # rlock help explains each subcommand as its --help does.
    rlock help "$subcommand" | cmp - long
    for width in 50 100; do
      (($(COLUMNS=$width rlock "$subcommand" --help | longest) <= width))
    done
  done
  (($(rlock --help | wc -L) <= 80))
  rlock help | cmp - <(rlock --help)
  run -0 --separate-stderr rlock run -h
  [[ $output == *--wait* && $output == *--lease* && $output == *--url* && $output != *--max-queue* ]]
  # Only a number is accepted as a width.
  for width in 0 -1 x 99999999999999999999 '' 5; do
    COLUMNS=$width rlock run --help >long
    (($(longest <long) <= 120))
    grep -q -e '--on-lost' long
  done
  # On a terminal of 52 columns, which it fills.
  run -0 python3 "$TESTS_DIR/lib/terminal.py" never never sh -c 'stty cols 52; "$RLOCK" run --help'
  width=$(longest <<<"${output//$'\r'/}")
  ((45 < width && width <= 52))
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

@test "rlock version, --version and -V: version, commit and libraries" {
  run -0 --separate-stderr rlock version
  [[ ${lines[0]} =~ ^rlock\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
  [[ ${lines[-1]} =~ ^with\ hiredis\ [0-9.]+,\ c-ares\ [0-9.]+,\ (OpenSSL|AWS-LC)\ [0-9.]+,\ CLI11\ [0-9.]+,\ nlohmann-json\ [0-9.]+,\ spdlog\ [0-9.]+,\ fmt\ [0-9.]+$ ]]
  [[ $(rlock --version) == "$output" && $(rlock -V) == "$output" && $(rlock run --version) == "$output" ]]
  # The commit is known if a clone was built here, but not for an archive.
  local root=$TESTS_DIR/..
  if [[ -e $root/.git && -e $(dirname "$RLOCK")/CMakeCache.txt ]] && git -C "$root" rev-parse HEAD >/dev/null 2>&1; then
    [[ ${lines[1]} =~ ^commit\ [0-9a-f]{12}(-dirty)?$ ]]
    git -C "$root" cat-file -e "$(sed -n 's/^commit \([0-9a-f]*\).*/\1/p' <<<"$output")"
  fi
}
