# The shape of the source: includes go one way, and each library stays in its one place.

load ../lib/common

setup() {
  cd "$TESTS_DIR/.."
}

# includes_of FOLDER: the floors that files of a folder include.
includes_of() {
  grep -rhoE '^#include "(base|redis|verbs|lock|run|options|show|cli|lua)/' "src/$1" | sed 's/.*"//; s,/,,' | sort -u
}

@test "no floor includes a higher one" {
  local floors=(base redis verbs lock run options show cli) i higher
  for i in "${!floors[@]}"; do
    for higher in "${floors[@]:i+1}"; do
      if includes_of "${floors[i]}" | grep -qx "$higher"; then
        echo "src/${floors[i]} includes src/$higher:"
        grep -rn "#include \"$higher/" "src/${floors[i]}"
        return 1
      fi
    done
  done
}

@test "options and show do not know each other" {
  [[ $(includes_of show) != *options* && $(includes_of options) != *show* ]]
  [[ $(includes_of cli) == *options*show* ]]
}

# edges_of FOLDER: a line "A B" for each module of the folder, a .h with its .cc, that includes another one of it.
edges_of() {
  grep -oE "^#include \"$1/[a-z_]+\.h\"" "src/$1"/*.h "src/$1"/*.cc |
    sed -E 's,^src/(.*)\.(h|cc):#include "(.*)\.h",\1 \3,' | awk '$1 != $2' | sort -u
}

@test "no floor has circular includes" {
  local floor
  for floor in base redis verbs lock run options show cli; do
    edges_of "$floor" >"$BATS_TEST_TMPDIR/edges"
    (($(wc -l <"$BATS_TEST_TMPDIR/edges") > 3))
    run --separate-stderr tsort "$BATS_TEST_TMPDIR/edges"
    [[ $status == 0 && -z $stderr ]] || {
      echo "src/$floor: $stderr"
      return 1
    }
  done
}

# options: the names of all options, one per line.
options() {
  tr '\n' ' ' <src/options/option_table.cc | grep -oE '"(-.,)?--[a-z-]+", "' | grep -oE -- '--[a-z-]+' | sort -u
}

@test "below the command line, only advice names an option, and as its user writes it" {
  (($(options | wc -l) > 40))
  local option
  for option in $(options); do
    only_in '((cli|show|options)/|redis/(server_error|tls)\.|lock/acquire_all\.cc|verbs/(rights|verbs)\.cc|run/(frontend|monitor)\.cc)' "\"[^\"]*$option([^a-z-]|\$)"
  done
}

@test "the top level contains what docs/architecture.md names" {
  git rev-parse --git-dir >/dev/null 2>&1 || skip "not a clone"
  local known=(.ci .clang-format .clang-tidy .gitignore CHANGELOG.md CMakeLists.txt
    CMakePresets.json CONTRIBUTING.md LICENSE README.md SECURITY.md bench completions docs lua man packaging src tests)
  diff <(git ls-files | cut -d/ -f1 | sort -u) <(printf '%s\n' "${known[@]}") | grep '^<' && return 1
  return 0
}

@test "scripts are only used on the floor of verbs" {
  [[ $(grep -rlE '^#include "lua/scripts' src) == src/verbs/script.cc ]]
}

# only_in PLACE PATTERN: no file outside of PLACE matches, and one inside does.
only_in() {
  local found
  found=$(grep -rlE -- "$2" src | grep -vE "^src/$1" || true)
  [[ -z $found ]] || {
    echo "$2 outside of $1: $found"
    return 1
  }
  grep -rqE -- "$2" src
}

@test "each library is only used in its place" {
  only_in redis/reply.cc '#include <hiredis'
  only_in options/parse.cc '#include <CLI/'
  only_in show/json.cc '#include <nlohmann/'
  only_in base/log.cc '#include <spdlog/'
  only_in redis/resolve.cc '#include <ares'
}

@test "one file starts processes" {
  only_in 'base/process\.cc' '\b(fork\(\)|(vfork|posix_spawnp?|execv[pe]*|execl[pe]*|system|popen)\([^0-9])'
  only_in 'base/process\.cc' 'SYS_clone'
}

@test "sockets are only opened on the redis floor, and for the log daemon" {
  only_in '(redis/|base/log\.cc)' '[^a-z_](socket|connect)\('
}

@test "signals are only held back in one file" {
  only_in '(run/signals|base/process)\.cc' '\b(sigprocmask|sigaction|signalfd)\('
}

@test "every script starts with its purpose, and a verb with its contract" {
  local script
  for script in lua/*/*.lua; do
    [[ $(head -n1 "$script") == "-- $(basename "$script" .lua): "* ]]
  done
  for script in lua/verb/*.lua; do
    grep -q '^-- KEYS' "$script"
    grep -q '^-- Reply' "$script"
    grep -q '^-- Sent twice\|Changes nothing' "$script"
  done
}

@test "the built scripts are up to date, each with everything that it uses and nothing else" {
  local built=$BATS_TEST_TMPDIR/lua script names name shared
  cmake -DOUT="$built" -P lua/embed.cmake
  [[ ! -e $(dirname "$RLOCK")/generated/lua ]] || diff -r "$built" "$(dirname "$RLOCK")/generated/lua"
  functions() { sed -n 's/^local function \([A-Za-z_]*\).*/\1/p' "$@" | sort -u; }
  shared=$(functions lua/part/{base,no_fair,one_holder}.lua)  # in every script, or in every one of a layout
  for script in "$built"/*.lua; do
    names=$(comm -23 <(functions "$script") <(echo "$shared"))
    for name in $names; do
      (($(grep -cw "$name" "$script") > 1)) || { echo "$script: $name is not used" && return 1; }
    done
    ! grep -n '^ *--[^!]' "$script"
  done
}

@test "no script writes a number as a C long, which has 32 bits on some servers" {
  ! grep -rn "'%d'" lua
}

@test "each reply that a script declares is written by it, and covered by one of its tests" {
  local script verb reply
  for script in lua/verb/*.lua; do
    verb=$(basename "$script" .lua)
    for reply in $(sed -n "/^-- Reply/,/^\$/s/.*{'\([a-z-]*\)'.*/\1/p" "$script"); do
      echo "$verb: $reply"
      grep -hv '^ *--' "$script" lua/part/*.lua | grep -q "'$reply'"
      grep -qE "\b$verb\b|enqueue" $(grep -lE "[ \\\$']$reply\b" tests/lua/*.bats)
    done
  done
}

@test "every source file names its licence" {
  ! grep -rL 'SPDX-License-Identifier: MIT' src tests/unit tests/model --include='*.cc' --include='*.h' | grep .
}
