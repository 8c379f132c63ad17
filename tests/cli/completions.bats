# shellcheck disable=SC2016,SC2030,SC2031,SC2154 # text for other shells; each test is a subshell; set by redis_start
# Completions of bash, zsh and fish: each in its own shell, which gets a Tab on a terminal.

load ../lib/server
load ../lib/docs

SUBCOMMANDS='run acquire renew release status force-unlock history doctor config local completion help version'

setup_file() {
  redis_start srv
  # An installed program has its completions where the shells look for them, and a built one has them beside it.
  BUILT=$(dirname "$RLOCK")/completions
  export BUILT
}
setup() {
  [[ -d $BUILT ]] || skip 'the program under test was not built here'
  use_server srv
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  cat >bin/show <<'SHOW'
#!/bin/sh
printf '%s\0' "$@" >words.new && mv words.new words
SHOW
  chmod +x bin/show
  PATH=$PWD/bin:$PATH
}
teardown() {
  redis_thaw srv
  if [[ -d $BUILT ]]; then assert_clean srv; fi
}

# shells: the installed ones, or $ONLY.
shells() {
  local shell
  [[ -z ${ONLY:-} ]] || { echo "$ONLY" && return; }
  echo bash
  [[ ! -e /usr/share/bash-completion/bash_completion ]] || echo bash-completion
  for shell in zsh fish; do
    if command -v "$shell" >/dev/null; then echo "$shell"; fi
  done
}

script_of() {
  case $1 in
    bash*) echo "$BUILT/rlock" ;;
    zsh) echo "$BUILT/_rlock" ;;
    fish) echo "$BUILT/rlock.fish" ;;
  esac
}

# completed SHELL KEYS...: the words on the line after these keys, one per line.
completed() {
  local shell=$1
  shift
  python3 "$TESTS_DIR/lib/completing.py" "$shell" "$(script_of "$shell")" "$@" 3>&-
}

# all_complete KEYS WORDS [KEYS WORDS]...: in each shell, these keys result in these words.
all_complete() {
  local shell keys=() words=() failed=0
  while (($#)); do
    keys+=("$1") words+=("$2")
    shift 2
  done
  for shell in $(shells); do
    diff <(printf '%s\n' "${words[@]}") <(completed "$shell" "${keys[@]}") || {
      echo "^ $shell"
      failed=1
    }
  done
  ((failed == 0))
}

# hold NAME: until the end of the test.
hold() { "$RLOCK" acquire --lease 5m -- "$1" >/dev/null; }
let_go() { redis srv flushall >/dev/null; }

@test "every option of each subcommand is in each script, and no other option" {
  for subcommand in $SUBCOMMANDS; do
    { help_of "$subcommand" | sed -n 's/^  \(-[^ ]*\) .*/\1/p' | sed 's/,/\n/' && rare "$subcommand"; } | sort >"of.$subcommand"
    (($(wc -l <"of.$subcommand") >= 19))
    # shellcheck disable=SC2016 # text for another shell
    bash -c '. "$1"; cur= quote= kept= subcommand=$2; _rlock_options; printf "%s\n" "${COMPREPLY[@]}"' bash "$BUILT/rlock" "$subcommand" | sort | diff "of.$subcommand" -
    # For zsh, those of all subcommands come first.
    sed -n -e '/^  common=(/,/^  )/p' -e "/^    $subcommand)/,/;;/p" "$BUILT/_rlock" | grep -E "^ +'(\(|--)" |
      sed -E "s/^ *'(\([^)]*\)'\{|)([^[}]*).*/\2/; s/,/\n/" | sed 's/[+=]$//' | sort | diff "of.$subcommand" -
    grep -E "^complete -c rlock( -n '__rlock_at $subcommand'| -s| -l)" "$BUILT/rlock.fish" | grep -oE -- ' -(s .|l [a-z-]+)' |
      sed 's/ -s /-/; s/ -l /--/' | sort | diff "of.$subcommand" -
  done
}

@test "rlock completion prints each script, whatever the configuration" {
  for shell in bash zsh fish; do RLOCK_CONFIG=/none rlock completion "$shell" | cmp "$(script_of "$shell")" -; done
}

@test "the words offered for an option are those that rlock accepts" {
  local word option count=0
  for option in leftovers log-format; do
    for word in $(sed -n "s/.*--$option') kind='\(.*\)' .*/\1/p" "$BUILT/rlock" | tr '|' ' '); do
      rlock run "--$option" "$word" job -- true
      count=$((count + 1))
    done
    run -64 rlock run "--$option" other job -- true
  done
  ((count == 5))
}

@test "subcommands, options of the subcommand and of all, and values: words, durations, files, processes" {
  touch 'my file.toml'
  sleep 1000 3>&- &
  local sleeper=$!
  all_complete $'rlock sta\t' 'rlock|status' $'rlock -q forc\t' 'rlock|-q|force-unlock' \
    $'rlock --server-timeout 5s --log-format=json ren\t' 'rlock|--server-timeout|5s|--log-format=json|renew' \
    $'rlock help acq\t' 'rlock|help|acquire' $'rlock local sta\t' 'rlock|local|status' \
    $'rlock run --repl\t' 'rlock|run|--replace-waiting' $'rlock status --is\t' 'rlock|status|--is-held' \
    $'rlock run job --sentinel-p\t' "rlock|run|job|--sentinel-password-file" \
    $'rlock --password-com\t' 'rlock|--password-command' $'rlock release --repl\t' 'rlock|release|--repl' \
    $'rlock run --leftovers ig\t' 'rlock|run|--leftovers|ignore' \
    $'rlock run --leftovers=ig\t' 'rlock|run|--leftovers=ignore' \
    $'rlock --log-format j\t' 'rlock|--log-format|json' \
    $'rlock run --wait 30\t' 'rlock|run|--wait|30s' $'rlock run -nw 5\t' 'rlock|run|-nw|5m' \
    $'rlock --config my\t' 'rlock|--config|my file.toml' $'rlock status --tls-ca=my\t' 'rlock|status|--tls-ca=my file.toml' \
    $'rlock --url loc\t' 'rlock|--url|local:' \
    "rlock acquire --for-pid $sleeper"$'\t' "rlock|acquire|--for-pid|$sleeper"
  kill "$sleeper"
}

@test "zsh and fish show the descriptions of options and subcommands" {
  for shell in $(shells | grep -v bash); do
    SHOWN='wait no longer than DUR' completed "$shell" $'rlock run --w\t\t' >/dev/null
    grep -qF -- --wait-replicas screen
    grep -qF 'wait no longer than DUR' screen
    SHOWN='release an acquired lock' completed "$shell" $'rlock re\t\t' >/dev/null
    grep -qF 'release an acquired lock' screen
  done
}

@test "names of held locks" {
  local subcommand lines=()
  hold deployment
  hold 'team:build=1'
  for subcommand in status force-unlock release renew run acquire; do
    lines+=("rlock $subcommand dep"$'\t' "rlock|$subcommand|deployment")
  done
  all_complete "${lines[@]}" $'rlock status team:bu\t' 'rlock|status|team:build=1' \
    $'rlock status other dep\t' 'rlock|status|other|deployment' $'rlock status none\t' 'rlock|status|none'
  let_go
}

@test "names, with BusyBox's setsid and timeout" {
  command -v busybox >/dev/null || skip 'NO BUSYBOX HERE'
  ln -s "$(command -v busybox)" bin/setsid
  ln -s "$(command -v busybox)" bin/timeout
  hold deployment
  all_complete $'rlock status dep\t' 'rlock|status|deployment'
  let_go
}

@test "names with spaces, quotes, dollar signs and letters beyond ASCII; those that look like options, or with invisible characters, are not offered" {
  hold "a lamp's  light"
  hold 'b "c" $HOME `d` \e!f'
  hold 'über alles; rm *'
  hold '~g&(h)'
  all_complete $'rlock status a\t' "rlock|status|a lamp's  light" $'rlock status a\\ la\t' "rlock|status|a lamp's  light" \
    $'rlock status b\t' 'rlock|status|b "c" $HOME `d` \e!f' \
    $'rlock status \303\274\t' 'rlock|status|über alles; rm *' $'rlock status "\303\274b\t' 'rlock|status|über alles; rm *' \
    $'rlock status \'a l\t' "rlock|status|a lamp's  light"
  let_go
  hold '--on-acquire=touch PWNED'
  hold -q
  all_complete $'rlock run \t' 'rlock|run' $'rlock run --on-acquire=to\t' 'rlock|run|--on-acquire=to' \
    $'rlock run job --on-acquire=to\t' 'rlock|run|job|--on-acquire=to' $'rlock status -- --on\t' 'rlock|status|--|--on'
  let_go
  # C1, not UTF-8, bidirectional, a soft hyphen, a tag, zero-width, a variation selector, fillers, blanks.
  for c in '\u009b' '\x9b' '\u202e' '\u00ad' '\U000e0041' '\u200b' '\ufe0f' '\u3164' '\u115f' '\u180e' '\u2060' '\ufff9' \
    '\u00a0' '\u2003' '\u2800'; do
    hold "deploy$(printf "$c")evil"
  done
  hold 'deploy größer 日本語'
  for shell in $(shells); do
    ONLY=$shell all_complete $'rlock run dep\t' 'rlock|run|deploy größer 日本語' $'rlock run \t' 'rlock|run|deploy größer 日本語'
    run -1 grep -a evil screen
  done
  let_go
}

@test "the server on the command line is asked" {
  local url=$RLOCK_URL
  hold deployment
  export RLOCK_URL=redis://127.0.0.1:1
  printf 'url = "%s"\n' "$url" >my.toml
  unset RLOCK_URL
  all_complete "rlock --url $url status dep"$'\t' "rlock|--url|$url|status|deployment" \
    "rlock status --url=$url dep"$'\t' "rlock|status|--url=$url|deployment" \
    $'rlock --config my.toml status dep\t' 'rlock|--config|my.toml|status|deployment'
  let_go
}

@test "a server that is unreachable, hangs or needs a password, and a bad configuration: no names and no messages" {
  local shell url=$RLOCK_URL line cases=()
  redis_start locked --requirepass secret
  printf 'nonsense' >bad.toml
  redis_freeze srv
  for line in 'rlock --url redis://127.0.0.1:1 status de' "rlock --url $url status de" \
    "rlock --url unix://$locked_sock status de" 'rlock --config bad.toml status de' \
    "rlock --url local:$PWD/own status de"; do
    cases+=("$line"$'\t' "${line// /|}")
  done
  for shell in $(shells); do
    ONLY=$shell all_complete "${cases[@]}"
    run -1 grep -iE 'rlock: |error|NOAUTH|refused|no TOML' screen
  done
  redis_thaw srv
  [[ ! -e own ]]
  redis_stop locked
}

@test "after --, the user's command is completed as if the line started there" {
  touch 'some file'
  cp bin/show bin/unheard-of
  all_complete $'rlock run job -- unheard\t' 'rlock|run|job|--|unheard-of' $'rlock run job -- cat som\t' 'rlock|run|job|--|cat|some file' \
    $'rlock run -n job -- rlock relea\t' 'rlock|run|-n|job|--|rlock|release'
}
