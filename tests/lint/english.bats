# Sentences begin with their subject: none opens with a question word or with "So" (CONTRIBUTING.md, English).

load ../lib/common

setup() {
  cd "$TESTS_DIR/.."
}

OPENING='(^|[^[:alnum:]"`])(Who|Whom|Whoever|What|So)[ ,'"'"']'

# Documents, and folders of source with comments.
DOCUMENTS='README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md docs/tldr/*.md man/* bench/README.md lua/README.md tests/*/README.md'
CLEAN='.ci bench completions docs lua packaging src tests'

# openings FILE...: the lines of documents in which a sentence opens so. Headings may be questions.
openings() { grep -nHE -- "$OPENING" "$@" | grep -vE '^[^:]+:[0-9]+:(#|\.S[hs] )'; }

# comments FILE: its comments, a line each, as "FILE:LINE: text".
comments() {
  local mark='#'
  case $1 in
    *.cc | *.h | *.c | *.java | *.js | *.go | *.rs) mark='//' ;;
    *.lua) mark='--' ;;
  esac
  awk -v file="$1" -v mark="$mark" '
    match($0, "(^|[ \t])" mark " ") { print file ":" NR ": " substr($0, RSTART + RLENGTH) }' "$1"
}

# openings_in_comments FOLDER...: the same for the comments of all source below.
openings_in_comments() {
  local file
  find "$@" -type f ! -name '*.md' ! -name '*.xml' ! -path '*/target/*' | sort |
    while IFS= read -r file; do comments "$file"; done | grep -E -- "$OPENING"
}

@test "no sentence of the documents opens with a question word or So" { # shellcheck disable=SC2086 # words, patterns
  run -1 openings $DOCUMENTS
  [[ -z $output ]]
}

@test "no sentence in the comments of the source opens so" { # shellcheck disable=SC2086 # words of a list
  run -1 openings_in_comments $CLEAN
  [[ -z $output ]]
}

@test "such sentences are found, and nothing else" {
  cd "$BATS_TEST_TMPDIR"
  printf '%s\n' 'It waits. Who comes first wins.' '| a | What is left |' '- So it ends.' 'Whom it asks,' >found.md
  printf '%s\n' '## What happens when' '.Ss What is read' 'Whose lock it is, somebody says.' 'words "Who", "So"' \
    'Social; whatever it is, who has it; so be it' 'Whatever comes.' >other.md
  [[ $(openings found.md | wc -l) == 4 ]]
  run -1 openings other.md
  printf '%s\n' '// So it goes.' 'int so;  // Who knows' 'say("So it is");' '// Whatever' >one.cc
  printf '%s\n' '-- What stands here' 'local x -- fine' >two.lua
  printf '%s\n' '# It ends. So does this.' 'echo So it is' >three.sh
  [[ $(openings_in_comments . | wc -l) == 4 ]]
}
