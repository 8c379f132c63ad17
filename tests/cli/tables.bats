# Runs the tables of cases beside this file, each as one test; job_tables.bats runs those in which jobs take time. What
# their lines mean is in lib/table.bash.

load ../lib/server
load ../lib/table
load ../lib/tables

# Each section looks whether it has left something behind.
teardown() { :; }

@test "every table has a test here" { each_table_has_a_test; }

@test "a wrong expectation is noticed, with its line, and so is a line that means nothing" {
  local right=('== a' '0 echo b' '  > b' '64 rlock frob -- touch ran  ! unknown subcommand')
  printf '%s\n' "${right[@]}" >right.table
  table_file "$PWD/right.table"
  noticed 'wrong.table:2: status 1 instead of 0' '== a' '0 false' '0 true'
  noticed 'wrong.table:3: the output is not: c' '== a' '0 true' '0 echo b  > c'
  noticed ':2: the output is not: b' '== a' '0 echo b; echo c' '  > b'
  noticed ':2: not in the output: c' '== a' '0 echo b  >~ c'
  noticed ':2: no output was expected' '== a' '0 echo b'
  noticed ':2: the error is not: c' '== a' '0 echo b c >&2  != c'
  noticed ':2: not in the error: c' '== a' '0 echo b >&2  ! c'
  noticed ':2: no error was expected' '== a' '0 echo b >&2'
  noticed ':2: does not hold: [[ $output != b ]]' '== a' '0 echo b  ? [[ $output != b ]]'
  noticed ':2: does not hold: false' '== a' '0 echo b  > b  ? false  ? true'
  noticed 'the error does not begin with "rlock: "' '== a' '64 sh -c "echo b >&2; exit 64"  ! b'
  noticed 'touch ran was run' '== a' '1 touch ran; false'
  noticed 'keys were added' '== a' '64 redis srv set k v px 60000 >/dev/null; (exit 64)'
  noticed $'key without TTL: k\nleft behind by: a' '== a' '0 redis srv set k v  > OK'
  noticed 'in: b, with x=2' '== a' '0 true' '== b' '@ x: 1 2' '0 [[ $x == 1 ]]'
  noticed ':2: the set-up failed' '== a' '+ false' '0 true'
  noticed '1 failures in 2 sections' '== a' '0 false' '== b' '0 true'
  noticed ':3: there is no case above' '== a' '+ true' '  > b' '0 true'
  noticed ':3: not understood:   >b' '== a' '0 echo b' '  >b'
  noticed ':3: not understood: rlock status' '== a' '0 true' 'rlock status'
  noticed ':1: before the first section' '0 true' '== a' '0 true'
  noticed 'no case in: b' '== a' '0 true' '== b' '+ true'
  noticed 'there is no case' '# only a comment'
  noticed 'there is no case' ''
}

@test "mistakes on the command line" { table bad_input; }
@test "wrong addresses and odd servers" { table bad_server; }
@test "the forms of options" { table forms; }
@test "rlock acquire" { table acquire; }
@test "rlock release" { table release; }
@test "rlock renew" { table renew; }
@test "rlock force-unlock" { table force_unlock; }
@test "settings: options, variables and files" { table config; }
@test "texts of others are escaped" { table escapes; }
@test "keys of other programs" { table foreign_keys; }
@test "a server that may evict locks" { table eviction; }
@test "where passwords come from" { table credentials; }
@test "rlock status" { table status; }
