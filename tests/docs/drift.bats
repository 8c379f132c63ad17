#!/usr/bin/env bats
# The documents say what the program does: options, statuses, variables, and examples that run.

load ../lib/common
load ../lib/docs

setup_file() { redis_start srv; }
setup() {
  ROOT=$(cd "$TESTS_DIR/.." && pwd)
  MAN=$ROOT/man/rlock.1
  README=$ROOT/README.md
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

SUBCOMMANDS='run acquire renew release status force-unlock doctor local help version'

# Long options, one a line.
of_help() {
  local subcommand
  {
    rlock --help
    for subcommand in $SUBCOMMANDS; do rlock "$subcommand" --help; done
  } | grep -E '^ +-' | grep -oE -- '--[a-z][a-z-]+' | sort -u
}
# Both `Fl -name` and the second word of `Fl n , -name`.
of_man() {
  grep -E '(^\.| )Fl ' "$MAN" | grep -oE '( ,|Fl) -[a-z][a-z-]+' | sed 's/.* -/--/' | sort -u
}

# listed: the long options that a help text on standard input lists.
listed() { sed -nE 's/^ +(-[a-zA-Z],)?(--[a-z-]+) .*/\2/p'; }

# section SUBCOMMAND: its part of the man page.
section() { sed -n "/^\.Ss rlock $1\$/,/^\.S[hs] /p" "$MAN" | sed '1d;/^\.S[hs] /d'; }

# flags: the long options that a part of the man page speaks of, those that it calls by their letter too.
flags() {
  local letters long
  grep -oE 'Fl [a-zA-Z-][a-zA-Z-]*( , -[a-z-]+)?' >found
  while read -r _ letters _ long; do
    case $letters in
      -) ;; # the -- before the command
      -*) echo "-$letters" ;;
      *) echo "-${long:-$(long_of "$letters")}" ;;
    esac
  done <found
}

# long_of LETTER: as the man page explains it.
long_of() { sed -nE "s/^\.It Fl $1 , (-[a-z-]+).*/\1/p" "$MAN" | head -n 1; }

# table_of_man, table_of_readme: the statuses in each, one a line.
table_of_man() { sed -n '/^\.Sh EXIT STATUS/,/^\.Sh EXAMPLES/s/^\.It \(Li \)\{0,1\}\([0-9][0-9]*\).*/\2/p' "$MAN" | sort -n; }
table_of_readme() {
  sed -n '/^## Exit status/,/^## How/s/^| \([0-9, ]*\) |.*/\1/p' "$README" | tr -d ' ' | tr ',' '\n' | sort -n
}
statuses() { sed -n 's/^ *k[A-Za-z]* = \([0-9]*\),.*/\1/p' "$ROOT/src/cli/exit_status.h" | sort -n; }

@test "the man page is without a fault" {
  command -v mandoc >/dev/null || skip 'no mandoc'
  run -0 mandoc -T lint -W warning "$MAN"
  [[ -z $output ]]
}

@test "every subcommand is in rlock --help, in the man page, and has a help of its own" {
  local subcommand
  [[ $(rlock --help | sed -n '/^Subcommands/,/^$/s/^  \([a-z-]*\) .*/\1/p') == "${SUBCOMMANDS// /$'\n'}" ]]
  for subcommand in $SUBCOMMANDS; do
    grep -qx "\.Cm $subcommand" "$MAN"
    run -0 --separate-stderr rlock "$subcommand" --help
    [[ $output == *"rlock "*"$subcommand"* && -z $stderr ]]
  done
}

@test "the options of --help and those of the man page are the same" {
  (($(of_help | wc -l) > 20))
  diff <(of_help) <(of_man)
}

@test "the options of all subcommands are in the help of each, as in the man page" {
  local subcommand
  sed -n '/^\.Ss Options of all/,/^\.El/s/^\.It.* -\(-*[a-z-]*\).*/--\1/p' "$MAN" | sort >of_all
  (($(wc -l <of_all) >= 9))
  for subcommand in $SUBCOMMANDS; do
    diff of_all <(rlock "$subcommand" --help | sed -n '/^Options of all/,$p' | listed | sort)
  done
}

@test "--version and --help work behind each subcommand, as the man page says" {
  local subcommand option
  for subcommand in $SUBCOMMANDS; do
    for option in --help -h --version -V; do
      run -0 --separate-stderr rlock "$subcommand" "$option"
      [[ $output == "rlock "* && -z $stderr ]]
    done
  done
}

@test "the options of each subcommand are those of its section in the man page" {
  local subcommand count=0
  for subcommand in $SUBCOMMANDS; do
    rlock "$subcommand" --help | sed '/^Options of all/,$d' | listed | sort >"help.$subcommand"
    section "$subcommand" | flags | sort -u >"man.$subcommand"
    diff "help.$subcommand" "man.$subcommand"
    count=$((count + $(wc -l <"help.$subcommand")))
  done
  ((count >= 20))
}

@test "the man page's synopsis has no other options than the subcommands" {
  local subcommand line option
  for subcommand in acquire renew release status force-unlock doctor local; do
    line=$(mandoc -T utf8 "$MAN" | col -bx | tr -s ' \n' '  ' | sed 's/DESCRIPTION.*//' | grep -oE "rlock $subcommand [^ ].*" | sed 's/ rlock .*//')
    rlock "$subcommand" --help >help
    for option in $(grep -oE -- '(^|[ [|])--?[a-zA-Z][a-z-]*' <<<"$line" | grep -oE -- '-.*'); do
      grep -qE "^ +(-.,)?$option[ ,]" help || {
        echo "$subcommand: $option"
        return 1
      }
    done
  done
}

@test "each short option of --help is in the man page" {
  local pair
  for pair in $(for s in $SUBCOMMANDS; do rlock "$s" --help; done | grep -oE '^ +-[a-zA-Z],' | tr -d ' ,-' | sort -u); do
    grep -qE "^\.It Fl $pair , -" "$MAN" || {
      echo "-$pair"
      return 1
    }
  done
}

@test "every exit status is in the tables of the man page and of the README" {
  (($(statuses | wc -l) > 10))
  diff <(statuses) <(table_of_man)
  diff <(statuses) <(table_of_readme)
}

@test "every variable that stands for an option is in the man page" {
  local option count=0
  while IFS= read -r option; do
    option=${option//-/_}
    grep -qE "(Ev|,) ?RLOCK_${option^^}\b" "$MAN" || {
      echo "RLOCK_${option^^}"
      return 1
    }
    count=$((count + 1))
  done < <(tr '\n' ' ' <"$ROOT/src/cli/option_table.cc" | grep -oE '\{"(-.,)?--[a-z-]+",[^{}]*\bkSetting' |
    sed -E 's/^\{"(-.,)?--([a-z-]+)".*/\2/' | sort -u)
  ((count >= 20))
}

@test "every variable of the man page is one that the program knows" {
  local variable
  for variable in $(grep -oE '\bRLOCK_[A-Z_]+' "$MAN" | sort -u); do
    grep -qaF "$variable" "$RLOCK" || {
      variable=${variable#RLOCK_}
      variable=${variable,,}
      of_help | grep -qx -- "--${variable//_/-}"
    }
  done
}

@test "the README and docs name no option that there is not" {
  local option
  of_help >known
  for option in $(grep -hE 'rlock ' "$README" "$ROOT"/docs/{security,java,architecture}.md | grep -oE -- ' --[a-z][a-z-]+' | sort -u); do
    grep -qx -- "$option" known || grep -qE "(git|cmake|sh) .*$option" "$README"
  done
}

@test "the version is the same everywhere it is said" {
  local version
  version=$(sed -nE 's/^project\(rlock VERSION ([0-9.]+).*/\1/p' "$ROOT/CMakeLists.txt")
  [[ $version =~ ^[0-9]+\.[0-9]+ ]]
  run -0 --separate-stderr rlock --version
  [[ ${lines[0]} == "rlock $version" ]]
  run -0 --separate-stderr rlock -V
  [[ ${lines[0]} == "rlock $version" ]]
}

@test "the README's examples run" {
  local script count=0
  blocks
  mkdir work
  for script in deploy.sh step-one step-two tick.sh backup.sh report.sh import.sh migrate.sh; do
    printf '#!/bin/sh\necho "%s" >>"%s/calls"\n' "$script" "$PWD" >"work/$script"
    chmod +x "work/$script"
  done
  PATH=$(cd "$(dirname "$RLOCK")" && pwd):$PATH
  for script in block.*; do
    (cd work && timeout -k 1 60 bash -euo pipefail "../$script" </dev/null 3>&-) >out 2>&1 || {
      cat "$script" out
      return 1
    }
    count=$((count + 1))
  done
  ((count >= 5))
  grep -qx deploy.sh calls
  grep -qx step-two calls
  grep -qx tick.sh calls
  # Kept for --min-hold.
  [[ $(redis srv del tick 'rlock:holder:{tick}') == 2 ]]
}
