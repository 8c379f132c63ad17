# For a file that runs the tables beside it, each as one test. The file has a function
# `table_file FILE`, which runs one, fails at the end if a case has failed, and tells which.
#
#   table NAME               runs NAME.table
#   each_table_has_a_test    fails if a table beside the file has no test in it
#   noticed TEXT LINE...     a table with these lines fails and says TEXT

table() { table_file "${BATS_TEST_FILENAME%/*}/$1.table"; }
each_table_has_a_test() {
  local file count=0
  for file in "${BATS_TEST_FILENAME%/*}"/*.table; do
    grep -qF "table $(basename "$file" .table);" "$BATS_TEST_FILENAME"
    count=$((count + 1))
  done
  ((count == $(grep -c '^@test .*{ table ' "$BATS_TEST_FILENAME")))
}
noticed() {
  printf '%s\n' "${@:2}" >"$BATS_TEST_TMPDIR/wrong.table"
  run -1 table_file "$BATS_TEST_TMPDIR/wrong.table"
  [[ $output == *"$1"* ]] || { show && return 1; }
}
