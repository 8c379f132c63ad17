# Runs the tables of cases in which jobs take time, each as one test; tables.bats runs the others.

load ../lib/server
load ../lib/table
load ../lib/tables

# Each section looks whether it has left something behind.
teardown() { :; }

@test "rlock run" { table run; }
@test "the status of rlock run" { table exit_status; }
@test "jobs that nest" { table nesting; }
@test "hooks" { table hooks; }
@test "rlock history" { table history; }
@test "holds" { table holds; }
@test "--protocol set" { table protocol; }
@test "pools" { table pools; }
@test "rlock status --succeeded-within" { table succeeded_within; }
