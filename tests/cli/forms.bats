#!/usr/bin/env bats
# The forms of options, and where they may be.

load ../lib/common
load ../lib/docs

setup_file() { redis_start srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

# lease_ms OPTION...: the lease of a job with these options and the name x, from status.
lease_ms() { rlock run "$@" -- "$RLOCK" status --json x | sed -n 's/.*"lease_ms": *\([0-9]*\).*/\1/p'; }

# busy STATUS WORD...: x is held by another owner; rlock WORD... exits with STATUS and starts nothing.
busy() {
  redis srv hset x 11111111-2222-3333-4444-555555555555:1 1
  redis srv pexpire x 60000
  run "-$1" --separate-stderr rlock "${@:2}"
  redis srv del x
  [[ -z $output && ! -e started ]]
}

@test "a value may follow =, a space, or the letter" {
  local option
  for option in '--lease=47s' '--lease 47s' '-l47s' '-l 47s'; do
    # shellcheck disable=SC2086 # one or two words
    [[ $(lease_ms $option x) == 47000 ]] || {
      echo "$option"
      return 1
    }
  done
}

@test "options may come before and after the name; those of all subcommands, also before the subcommand" {
  [[ $(lease_ms x --lease 47s) == 47000 ]]
  [[ $(lease_ms x -l47s --reason r) == 47000 ]]
  unset RLOCK_URL
  run -0 --separate-stderr rlock --url "$(redis_url srv)" run x -- echo ran
  [[ $output == ran && -z $stderr ]]
  run -0 --separate-stderr rlock --url="$(redis_url srv)" -q --server-timeout=3s run x -- echo ran
  [[ $output == ran ]]
  run -0 --separate-stderr rlock run x --url "$(redis_url srv)" -- echo ran
  [[ $output == ran ]]
}

@test "a flag may have a value after =, and takes precedence over its variable" {
  RLOCK_HISTORY=true rlock run --history=false x -- true
  [[ $(redis srv exists 'rlock:history:{x}') == 0 ]]
  rlock run --history=true x -- true
  [[ $(redis srv exists 'rlock:history:{x}') == 1 ]]
  redis srv del 'rlock:history:{x}' 'rlock:totals:{x}'
  run -0 --separate-stderr rlock status --json=false
  [[ $output != '['* ]]
  run -0 --separate-stderr rlock status --json=1
  [[ $output == '['* ]]
  run -0 --separate-stderr rlock run --no-renew=false --kill-after=2s x -- true
  local flag
  run -64 --separate-stderr rlock run '--history={}' x -- touch started
  assert_says "--history: '{}' is neither true nor false"
  run -64 --separate-stderr rlock '--quiet={}' status
  rlock run '--reason={}' x -- true
  for flag in --history --no-renew --quiet --shared; do
    run -64 --separate-stderr rlock run "$flag=banana" x -- touch started
    assert_says "$flag: 'banana' is neither true nor false"
    [[ ! -e started ]]
  done
  for flag in --json --watch --names; do
    run -64 --separate-stderr rlock status "$flag=banana"
    assert_says "$flag: 'banana' is neither true nor false"
  done
}

@test "a flag with nothing after = is an error, and the next word is not its value" {
  local subcommand flag count=0
  for subcommand in run acquire renew release status force-unlock history doctor config local; do
    # Also those of -h and -V.
    for flag in $(help_of "$subcommand" | sed -nE 's/^  (-.,)?(--[a-z-]+)  .*/\2/p'); do
      run -64 --separate-stderr rlock "$subcommand" "$flag=" x
      assert_says "$subcommand: $flag: '' is neither true nor false"
      count=$((count + 1))
    done
  done
  ((count >= 80))
  for flag in --quiet --verbose --tls-insecure --version --help; do
    run -64 --separate-stderr rlock "$flag=" status
    assert_says "$flag: '' is neither true nor false"
  done
}

@test "a letter does not accept =" {
  run -64 --separate-stderr rlock status -q= x
  assert_says 'status: use the long option with =, such as --quiet=true'
  run -64 --separate-stderr rlock run -nq=true x -- touch started
  assert_says "use the long option with =, such as --quiet=true"
  [[ ! -e started ]]
}

@test "a value may look like a flag with =" {
  local text
  for text in --quiet= '--quiet={}' -q= -q=true --lease= --lease; do
    run -0 --separate-stderr rlock run --reason "$text" x -- "$RLOCK" status --json x
    [[ $output == *"\"reason\":\"$text\""* || $output == *"\"reason\": \"$text\""* ]]
  done
  run -0 --separate-stderr rlock --log-format text run --reason --quiet= x -- true
}

@test "--yes=false does not answer the question" {
  local owner
  owner=$(rlock acquire x --lease 1m)
  run -64 --separate-stderr rlock force-unlock --yes=false x </dev/null
  assert_says --yes
  rlock release x --owner "$owner"
}

@test "letters can be combined" {
  busy 7 run -nE7 x -- touch started
  busy 7 run -qnE 7 x -- touch started
  busy 7 acquire -nE7 -l30s x
}

@test "-w works in each of its forms" {
  local option
  for option in '-w0' '-w 0' '--wait=0' '--wait 0' '-w100ms' '--wait=0.1' '--wait .1s'; do
    # shellcheck disable=SC2086 # one or two words
    busy 75 run $option x -- touch started
  done
}

@test "durations: every unit, fractions, and a number of seconds" {
  local pair
  for pair in 2500ms=2500 7s=7000 7=7000 1.5m=90000 .5h=1800000 1h=3600000 1d=86400000 365d=31536000000; do
    [[ $(lease_ms --quiet --lease "${pair%=*}" x) == "${pair#*=}" ]] || {
      echo "$pair"
      return 1
    }
  done
}

@test "--kill-after leaves room for a renewal, or is refused" {
  run -0 --separate-stderr rlock run --kill-after=2s x -- true
  [[ -z $stderr ]]
  run -64 --separate-stderr rlock run --kill-after=40s x -- touch started
  assert_says "--kill-after: "
  [[ ! -e started ]]
}

@test "contradictory output options of status, and --is-held without a name" {
  run -64 --separate-stderr rlock status --json --names
  assert_says "cannot be used together"
  run -64 --separate-stderr rlock status --is-held --names x
  assert_says "cannot be used together"
  run -64 --separate-stderr rlock status --is-held
  assert_says NAME
}

@test "--help before --, but not after it" {
  run -0 --separate-stderr rlock run x --help -- touch started
  [[ $output == 'rlock run - '* && -z $stderr && ! -e started ]]
  run -0 --separate-stderr rlock run x -- printf %s --help
  [[ $output == --help ]]
}

@test "--version and --help ask no server" {
  unset RLOCK_URL
  RLOCK_URL=unix:///none run -0 --separate-stderr rlock --version
  RLOCK_URL=unix:///none run -0 --separate-stderr rlock --help
  RLOCK_URL=nonsense run -0 --separate-stderr rlock run --help
  [[ -z $stderr ]]
}

@test "an unknown option after the name is reported as an option" {
  run -64 --separate-stderr rlock run a --bogus -- true
  assert_says 'unknown option --bogus'
  run -64 --separate-stderr rlock run a --bogus -c true
  assert_says 'unknown option --bogus'
}

@test "an option without its value says what it needs" {
  run -64 --separate-stderr rlock release a --owner
  [[ $stderr == 'rlock: release: --owner needs ID' ]]
}

@test "an empty hook is refused" {
  local option
  for option in --on-acquire --on-release --on-lost; do
    run -64 --separate-stderr rlock run "$option=" a -- true
    assert_says "$option: the text is empty"
  done
}
