# For a file that runs the tables beside it, each as one test. The file has a function
# `table_file FILE`, which runs one, fails at the end if a case has failed, and tells which.
#
#   table NAME               runs NAME.table
#   each_table_has_a_test    fails unless each table beside the file has one test in the files there
#   noticed TEXT LINE...     a table with these lines fails and says TEXT

table() { table_file "${BATS_TEST_FILENAME%/*}/$1.table"; }
each_table_has_a_test() {
  local folder=${BATS_TEST_FILENAME%/*}
  diff <(cd "$folder" && printf '%s\n' *.table) <(sed -n 's/^@test .*{ table \(.*\); }/\1.table/p' "$folder"/*.bats | sort)
}
noticed() {
  printf '%s\n' "${@:2}" >"$BATS_TEST_TMPDIR/wrong.table"
  run -1 table_file "$BATS_TEST_TMPDIR/wrong.table"
  [[ $output == *"$1"* ]] || { show && return 1; }
}
