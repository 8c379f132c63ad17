# Plain English: phrases that a native speaker would not write stay out of the documents (CONTRIBUTING.md, English).

load ../lib/common

setup() {
  cd "$TESTS_DIR/.."
}

# Documents that are for readers; the messages and comments of src/ follow.
DOCUMENTS='README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/[!t]*.md docs/tldr/*.md man/* bench/README.md lua/README.md tests/*/README.md packaging/examples/* packaging/examples/github/* packaging/rlock.toml'

# A pattern a line (grep -E, in any case), and what to write instead.
IDIOMS="$TESTS_DIR/lint/idioms"

# idioms FILE...: the lines of these files with one of them.
idioms() { grep -nHiE -d skip -f <(sed 's/ *=>.*//; /^#/d; /^$/d' "$IDIOMS") -- "$@"; }

@test "no dead idiom is in the documents" { # shellcheck disable=SC2086 # words, patterns
  run -1 idioms $DOCUMENTS
  [[ -z $output ]]
  # Its last column has the names of tests.
  cut -d '|' -f -4 docs/track-record.md >"$BATS_TEST_TMPDIR/track-record"
  run -1 idioms "$BATS_TEST_TMPDIR/track-record"
  [[ -z $output ]]
}

@test "each idiom of the list is found, and plain English is not" {
  cd "$BATS_TEST_TMPDIR"
  local count
  # The example of each line, behind the last arrow, has the idiom of that line.
  count=$(grep -c '^[^#].*=>' "$IDIOMS")
  ((count >= 40))
  grep '^[^#].*=>' "$IDIOMS" | while IFS= read -r line; do
    sed 's/.*=> *//' <<<"$line" >example
    grep -qiE -- "$(sed 's/ *=>.*//' <<<"$line")" example || { echo "$line" && exit 1; }
  done
  printf '%s\n' 'The measured time is for one lease.' 'It no longer has the lock.' 'You hold it forever.' >plain
  run -1 idioms plain
}
