# Plain English: phrases that a native speaker would not write stay out of the documents (CONTRIBUTING.md, English).

load ../lib/common

setup() { cd "$TESTS_DIR/.." || return; }

# Documents, messages and comments.
DOCUMENTS='src/* src/*/* lua/* lua/features/* completions/*.cc bench/*.* packaging/*.sh .ci/run README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/[!t]*.md docs/tldr/*.md man/* tests/*/README.md packaging/examples/* packaging/examples/*/* packaging/examples/*/*/* packaging/rlock.toml'

# One pattern per line (grep -E, in any case), and what to write instead.
IDIOMS="$TESTS_DIR/lint/idioms"

# idioms FILE...: the lines of these files with one of them.
idioms() { grep -nHiE -d skip -f <(sed 's/ *=>.*//; /^#/d; /^$/d' "$IDIOMS") -- "$@"; }

@test "the documents contain no dead idiom" { # shellcheck disable=SC2086 # words, patterns
  run -1 idioms $DOCUMENTS
  [[ -z $output ]]
  # Its second column has the names of tests.
  cut -d '|' -f -2 docs/track-record.md >"$BATS_TEST_TMPDIR/track-record"
  run -1 idioms "$BATS_TEST_TMPDIR/track-record"
  [[ -z $output ]]
}

@test "each idiom of the list is found, and plain English is not" {
  cd "$BATS_TEST_TMPDIR"
  # The example of each line, after the last arrow, has that line's idiom.
  count=$(grep -c '^[^#].*=>' "$IDIOMS")
  ((count >= 40))
  grep '^[^#].*=>' "$IDIOMS" | while IFS= read -r line; do
    sed 's/.*=> *//' <<<"$line" >example
    grep -qiE -- "$(sed 's/ *=>.*//' <<<"$line")" example || { echo "$line" && exit 1; }
  done
  printf '%s\n' 'The measured time is for one lease.' 'It no longer has the lock.' 'You hold it forever.' >plain
  run -1 idioms plain
}

@test "every link in a document leads to a file, and to a heading in it; the README is short enough to be read to its end" {
  (($(wc -w <README.md) <= 1500))
  python3 - README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/*.md tests/*/README.md <<'PYTHON'
import os, re, sys

def anchors(path):
    text = open(path).read()
    heads = (re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"(?m)^#+ (.*)$", text))
    return {*heads, *re.findall(r'<a id="([^"]+)"', text)}

bad = []
for document in sys.argv[1:]:
    for link in re.findall(r"\]\(([^)]+)\)", open(document).read()):
        path, _, anchor = "".join(link.split("\n")).partition("#")
        target = os.path.join(os.path.dirname(document), path) if path else document
        if "://" not in link and (not os.path.exists(target) or anchor and anchor not in anchors(target)):
            bad.append(f"{document}: {link}")
sys.exit("\n".join(bad) or None)
PYTHON
}
