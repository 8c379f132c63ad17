# What clang-format, shellcheck, luacheck and mandoc find, and whether the seeded faults fit the source. Missing tools are
# skipped, except in CI. What takes longer is in tests/lint/tidy.

load ../lib/common

setup() { cd "$TESTS_DIR/.."; }

# needs TOOL...: sets $tool to the first one that is installed.
needs() {
  for tool; do
    ! command -v "$tool" >/dev/null || return 0
  done
  [[ -z ${CI:-} ]] || return 1
  skip "no $1"
}

# shells: the shell scripts in the source, except for tests.
shells() { grep -rIlE --exclude-dir=.git --exclude-dir='build*' --exclude='*.bats' '^#!/(usr/bin/env |bin/)(ba|da)?sh' .ci bench packaging tests; }

@test "clang-format has nothing to change" {
  needs clang-format-19 clang-format
  [[ $("$tool" --version) == *' 19.'* ]] || skip 'clang-format is not of version 19'
  find src tests bench completions -name '*.h' -o -name '*.cc' | xargs "$tool" --dry-run -Werror
}

@test "shellcheck: scripts, and what tests share" {
  needs shellcheck
  # It cannot know variables that another file sets or uses.
  shellcheck -S warning -e SC2034,SC2154 $(shells) packaging/archives.sh packaging/install.sh packaging/roots.sh tests/lib/*.bash tests/interop/*.bash
}

@test "luacheck: the script as the server gets it" {
  needs luacheck
  cmake -DOUT="$BATS_TEST_TMPDIR/lua" -P lua/embed.cmake
  # The list of companions is for C++, too; a part's parameter may have the name of a variable around it.
  luacheck --std max --read-globals ARGV KEYS cmsgpack redis --ignore '21[123]/k[A-Z].*' '4[23][12]' '581' \
    --no-max-line-length "$BATS_TEST_TMPDIR/lua/script.lua"
}

@test "mandoc -Tlint: the man pages" {
  needs mandoc
  mandoc -Tlint -W warning man/*.[1-9]
}

@test "the texts that the seeded faults replace exist" {
  python3 tests/model/mutants/run.py --texts
}
