# The shape of the source: includes go one way, and each library stays in its one place.

load ../lib/common

setup() { cd "$TESTS_DIR/.."; }

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
  # Options and show do not know each other, either.
  [[ $(includes_of show) != *options* && $(includes_of options) != *show* ]]
  [[ $(includes_of cli) == *options*show* ]]
}

# edges_of FOLDER: a line "A B" for each module of the folder, a .h with its .cc, that includes another one of it.
edges_of() {
  grep -oE "^#include \"$1/[a-z_]+\.h\"" "src/$1"/*.h "src/$1"/*.cc |
    sed -E 's,^src/(.*)\.(h|cc):#include "(.*)\.h",\1 \3,' | awk '$1 != $2' | sort -u
}

@test "no floor has circular includes" {
  for floor in base redis verbs lock run options show cli; do
    edges_of "$floor" >"$BATS_TEST_TMPDIR/edges"
    (($(wc -l <"$BATS_TEST_TMPDIR/edges") > 3))
    run -0 --separate-stderr tsort "$BATS_TEST_TMPDIR/edges"
    [[ -z $stderr ]] || { echo "src/$floor: $stderr" && return 1; }
  done
}

# options: the names of all options, one per line.
options() {
  tr '\n' ' ' <src/options/option_table.cc | grep -oE '"(-.,)?--[a-z-]+", "' | grep -oE -- '--[a-z-]+' | sort -u
}

@test "below the command line, only advice names an option, and as its user writes it" {
  (($(options | wc -l) > 40))
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

# only_in PLACE PATTERN: no file outside of PLACE matches, and one inside does.
only_in() {
  local found
  found=$(grep -rlE -- "$2" src | grep -vE "^src/$1" || true)
  [[ -z $found ]] || { echo "$2 outside of $1: $found" && return 1; }
  grep -rqE -- "$2" src
}

@test "each library is only used in its place, and so are scripts, processes, sockets and signals" {
  only_in redis/reply.cc '#include <hiredis'
  only_in options/parse.cc '#include <CLI/'
  only_in show/json.cc '#include <nlohmann/'
  only_in base/log.cc '#include <spdlog/'
  only_in redis/resolve.cc '#include <ares'
  only_in verbs/script.cc '^#include "lua/script'
  only_in 'base/process\.cc' '\b(fork\(\)|(vfork|posix_spawnp?|execv[pe]*|execl[pe]*|system|popen)\([^0-9])'
  only_in 'base/process\.cc' 'SYS_clone'
  only_in '(redis/|base/log\.cc)' '[^a-z_](socket|connect)\('
  only_in '(run/signals|base/process)\.cc' '\b(sigprocmask|sigaction|signalfd)\('
}

@test "every part of the script starts with its purpose, and a verb with its contract" {
  for part in lua/{,features/}*.lua; do
    name=$(basename "$part" .lua)
    grep -q "^-- ${name#*_}: " <(head -n1 "$part")
  done
  for verb in acquire release renew raise inspect force-unlock; do
    contract=$(sed -n "/^-- $verb: /,/^\$/p" lua/*.lua)
    [[ $contract == *'-- KEYS '*'-- Request'*'-- Reply '* && $contract == *@('-- Sent twice'|'Changes nothing')* ]]
  done
}

@test "nothing calls a feature of the script but through a hook" {
  for part in lua/features/*.lua; do
    others=$(find lua -name '*.lua' ! -path "$part" -exec sed 's/--.*//' {} +)
    for name in $(sed -nE 's/^ *local function (\w+).*/\1/p' "$part"); do
      run -1 grep -w "$name" <<<"$others"
    done
    grep -qE '^ *\w+ = \{.*, \w+\}|^ *end, \w+\}$' "$part"
  done
}

@test "the built script is up to date, without comments, and short; the script writes no number as a C long" {
  local built=$BATS_TEST_TMPDIR/lua
  cmake -DOUT="$built" -P lua/embed.cmake
  [[ ! -e $(dirname "$RLOCK")/generated/lua ]] || diff -r "$built" "$(dirname "$RLOCK")/generated/lua"
  run -1 grep -n '^ *--[^!]' "$built/script.lua"
  run -1 grep -rn "'%d'" lua # it has 32 bits on some servers
  (($(wc -c <"$built/script.lua") <= 80000))
}

@test "each outcome that a verb declares is written by the script, and covered by one of the verb's tests" {
  for verb in acquire release renew raise inspect force-unlock; do
    for outcome in $(sed -n "/^-- $verb: /,/^\$/p" lua/*.lua | sed -n '/^-- Reply/,$s/^--\( Reply\|      \) \([a-z-]*\)  .*/\2/p'); do
      echo "$verb: $outcome"
      [[ $outcome != error ]] || continue
      grep -h -v '^ *--' lua/{,features/}*.lua | grep -q "'$outcome'"
      grep -qE "\b$verb\b|enqueue" $(grep -lE " $outcome\b" tests/lua/*.table)
    done
  done
}

@test "the names of fields, keys and channels stand once, in the script's lists" {
  python3 - <<'PYTHON'
import glob, re
text = "".join(open(name).read() for name in sorted(glob.glob("lua/**/*.lua", recursive=True)))
listed = set(re.search(r"names of all fields[^:]*:\n((?:--  .*\n)+)", text)[1].replace("--", " ").split())
code = re.sub(r"--[^\n]*", "", text)
maps = "request|waiter|waiter_fields|who|want|wait|note|success|once|wake|asked|asks|entry|held|guard|answer"
used = set(re.findall(rf"\b(?:{maps})\.(\w+)", code)) | set(re.findall(r"(?:reply\(|\bpack\(|or )\{(.*)\}", code, re.S))
used = {name for name in used if re.fullmatch(r"\w+", name)} - {"err"}
assert used <= listed, f"a field is not listed in lua/01_request.lua: {used - listed}"
# C++ uses these constants, and has no such text of its own where requests and replies are made.
said = re.sub(r"//[^\n]*", "", open("src/verbs/script.cc").read())
outcomes = r'outcome == "[\w-]+"|\{"[\w-]+", ReleaseOutcome'
beside = {name for name in listed if f'"{name}"' in re.sub(outcomes, "", said)}
assert not beside, f"a field is named like an outcome, or src/verbs/script.cc does not write it as f::name: {beside}"
unknown = {name for name in listed if f"f::{name}" not in said and not re.search(rf"\b{name} =|[.']{name}\b", code)}
assert not unknown, f"listed in lua/01_request.lua, but used nowhere: {unknown}"
words = re.findall(r"^local k\w+ = '([a-z_:]+:)' +-- [a-z-]+:", text, re.M)
assert len(words) == 17 and all(code.count(f"'{word}'") == 1 for word in words), words
for name in glob.glob("src/*/*.cc") + glob.glob("src/*/*.h"):
    found = [word for word in words if f'"{word[:-1]}' in open(name).read()]
    assert not found, (name, found)
PYTHON
}

@test "every source file names its licence" {
  ! grep -rL 'SPDX-License-Identifier: MIT' src tests/unit tests/model --include='*.cc' --include='*.h' | grep .
}

# What is not there would only be noticed in CI, after half an hour.
@test "CI and the packages' tests name files that exist" {
  names=$(sed 's/ *\\$//' .ci/run packaging/debian/tests/installed | grep -oE '\S*tests/\S+\.bats')
  ((${#names} > 500))
  for file in $(eval "printf '%s\n' ${names//$'\n'/ }"); do
    [[ -e ${file#*:} ]] || { echo "there is no ${file#*:}" && return 1; }
  done
}
