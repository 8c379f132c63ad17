# The pictures in the documents show what the program shows today.

load ../lib/common

setup() {
  PICTURES=$(cd "$TESTS_DIR/../docs/pictures" && pwd)
  export TMPDIR=$BATS_TEST_TMPDIR
}

@test "the same scenes, played again, show the same text" {
  run -0 python3 "$PICTURES/record.py" --check || {
    echo 'If that is what rlock shall show: run docs/pictures/record.py as root, and look at the pictures.'
    return 1
  }
  [[ $(grep -c 'as it is' <<<"$output") == $(ls "$PICTURES"/*.svg | wc -l) ]]
}

@test "a picture that shows something else is noticed" {
  cp -r "$PICTURES" "$BATS_TEST_TMPDIR/p"
  sed -i 's/you are 1st/you are next/' "$BATS_TEST_TMPDIR/p/waiting.svg"
  tells 1 '-rlock: waiting for deploy' python3 "$BATS_TEST_TMPDIR/p/record.py" --check waiting
  assert_says 'you are 1st'
}

@test "numbers show the order of events in two windows; the pictures are self-contained, and each has a place in a document" {
  [[ $(grep -oP 'class="mark black".*?>\K\d' "$PICTURES/waiting.svg" | paste -sd' ') == '1 3 2 4' ]]
  for picture in "$PICTURES"/*.svg; do
    python3 -c 'import sys, xml.dom.minidom; xml.dom.minidom.parse(sys.argv[1])' "$picture"
    # No script and nothing from elsewhere, because pages that show pictures allow neither.
    run -1 grep -nE '<script|href|url\(|@import' "$picture"
    (($(stat -c %s "$picture") < 60000))
    grep -qF "pictures/${picture##*/}" "$TESTS_DIR"/../README.md "$TESTS_DIR"/../docs/*.md
  done
}
