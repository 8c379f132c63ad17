# Locks of all kinds under faults, and a checker of the whole history; for longer: tests/proof/run. And the failover
# campaign, once for each kind; for more: tests/faults/epoch.py.

load ../lib/common

setup() { cd "$BATS_TEST_TMPDIR" || return; }

# finds NUMBER LINE...: the checker finds so many violations in this history.
finds() {
  printf '%s\n' "${@:2}" >history
  run python3 -B "$TESTS_DIR/proof/check.py" history
  show
  [[ ${lines[-1]} == *", $1 violations" ]]
  [[ $status == $(($1 > 0)) ]]
}

@test "the checker finds sections that overlap, readers beside a writer, more than there are slots, tokens that are not larger, and no others" {
  finds 0 'section a x w 10 20 1' 'section b x w 20 30 2' 'section c y w 15 25 1'
  finds 1 'section a x w 10 20 1' 'section b x w 19 30 2'
  finds 1 'begin a x w 10 1' 'begin b x w 15 2' 'end a 20' 'end b 30'
  finds 0 'begin a x w 10 1' 'begin b x w 15 2' 'end b 30' # it was killed
  finds 1 'begin a x w 10 1' 'overlap b x 15' 'begin b x w 15 2' 'end b 30'
  finds 1 'section a x+y w 10 20 1+1' 'section b y w 15 30 2'
  finds 1 'section a x w 10 90 1' 'section b x w 20 30 2'
  finds 0 'section a x r 10 20 1' 'section b x r 15 30 2' 'section c x w 30 40 3'
  finds 1 'section a x r 10 20 1' 'section b x r 15 30 2' 'section c x w 25 40 3'
  finds 1 'section a x w 10 20 1' 'section b x r 15 30 2'
  finds 0 'section a x s2 10 20 1' 'section b x s2 15 30 2' 'section c x s2 20 40 3'
  finds 1 'section a x s2 10 20 1' 'section b x s2 15 30 2' 'section c x s2 19 40 3'
  finds 1 'section a x w 10 20 2' 'section b x w 21 30 2'
  finds 1 'section a x w 10 20 5' 'section b x r 21 30 6' 'section c x r 31 40 4'
  finds 0 'section a x r 10 20 2' 'section b x r 21 30 1'
  finds 1 'section a x r 10 20 2' 'section b x w 21 30 1'
  finds 0 'section a x w 10 20 2' 'section b x w 21 30 -' 'section c y w 31 40 1'
}

@test "twelve seconds of faults on one server, and in a cluster whose slots move: no violation" {
  not_over tls sentinel cluster acl 'it has servers of its own'
  for over in server cluster; do
    run -0 "$TESTS_DIR/proof/run" --minutes 0.2 --over "$over" ${SEED:+--seed "$SEED"} 3>&-
    printf '# %s\n' "${lines[0]}" "${lines[-1]}" >&3
    [[ ${lines[-1]} == *' 0 violations' ]]
  done
}

@test "the failover campaign, once for each kind" {
  not_over tls sentinel cluster acl 'it has servers of its own'
  local kinds=(killed hung switched flushed restarted restored promoted acknowledged)
  [[ $(id -u) != 0 ]] || ! unshare -n true 2>/dev/null || kinds+=(cut-off fenced)
  LOCKS=${LOCKS:-5} run python3 -B "$TESTS_DIR/faults/epoch.py" "${FAILOVERS:-1}" "${kinds[@]}" 3>&-
  printf '# %s\n' "${lines[-1]}" >&3
  show
  [[ $status == 0 && ${lines[-1]} == *' without an overlap' ]]
}
