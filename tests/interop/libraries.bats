# rlock --protocol set and Python's libraries on one lock: the real libraries against the real program.

load ../lib/common
load ../lib/quorum

# In a virtual environment beside the program, so that the next run finds it; else the system's redis-py alone.
setup_file() {
  local environment python list=$TESTS_DIR/interop/requirements.txt
  environment=$(dirname "$RLOCK")/interop-python
  mkdir -p "$environment" 2>/dev/null && [[ -w $environment ]] || environment=$BATS_FILE_TMPDIR/python
  export PYTHON LIBRARIES='redis-py redlock-py pottery python-redis-lock'
  PYTHON=$environment/bin/python
  if ! cmp -s "$list" "$environment/done"; then
    # The interpreter may be behind a link of tests/lib/common.bash, which ends with the run.
    if "$(readlink -f "$(command -v python3)")" -m venv --clear "$environment" &&
      "$environment/bin/pip" install -q --disable-pip-version-check -r "$list"; then
      cp "$list" "$environment/done"
    else
      # A CI run that tested nothing would look like one that passed.
      [[ -z ${CI:-} ]] || return 1
      LIBRARIES=
      for python in python3 /usr/bin/python3; do
        ! "$python" -c 'import redis' 2>/dev/null || PYTHON=$python LIBRARIES=redis-py
      done
    fi
  fi >&2
  redis_start srv
}
setup() {
  [[ -n $LIBRARIES ]] || skip 'not tested: that rlock and libraries of Python share locks. To test it: apt-get install python3-venv, or python3-redis'
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL RLOCK_PROTOCOL=set
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  local job
  touch end end-py
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  redis srv del "$key" lock-signal:k >/dev/null # the element for python-redis-lock's waiters
  assert_clean srv
}
teardown_file() { redis_stop srv; }

key=k
# key_of LIBRARY: where it keeps its lock k.
key_of() {
  case $1 in
    pottery) echo redlock:k ;;
    python-redis-lock) echo lock:k ;;
    *) echo k ;;
  esac
}
# for_each FUNCTION: with each $library and its $key, in a folder of its own.
for_each() {
  local library
  for library in $LIBRARIES; do
    key=$(key_of "$library")
    mkdir "$library"
    cd "$library" || return
    echo "with $library"
    "$1" # no ||, behind which a failure would not end it
    cd ..
  done
}
locks() { timeout 100 "$PYTHON" "$TESTS_DIR/interop/libraries.py" "$library" "$srv_sock" "$@"; }
# py_holds SECONDS: the library takes the lock in the background, once it is free, until end-py exists.
py_holds() {
  rm -f started-py end-py
  "$PYTHON" "$TESTS_DIR/interop/libraries.py" "$library" "$srv_sock" hold k "$1" started-py end-py 2>err-py 3>&- &
  py=$!
  jobs+=($py)
}
# rlock_holds [OPTION ...]: the same with rlock, until end exists.
rlock_holds() {
  rm -f started end
  # shellcheck disable=SC2016 # for the sh of the command
  "$RLOCK" run "$@" "$key" -- sh -c 'echo "$RLOCK_TOKEN" >started; until [ -e end ]; do sleep 0.1; done' 2>err 3>&- &
  job=$!
  jobs+=($job)
}
# ends PID STATUS: the process exits with STATUS.
ends() {
  wait_until gone "$1"
  exits "$@" || { cat err err-py >&2 && return 1; }
}
waiting() { [[ $(redis srv zcard "rlock:queue:{$key}") == "$1" ]]; }
# python-redis-lock waits for an element of a list, the others ask again.
asked() { redis srv info commandstats | awk -F '[=,]' '/^cmdstat_(set|blpop):/ { sum += $2 } END { print sum + 0 }'; }
blocked() { redis srv info clients | grep -q '^blocked_clients:1'; }
library_waits() {
  local before
  before=$(asked)
  asks() { (($(asked) >= before + 3)) || blocked; }
  wait_until asks
}

by_turns() {
  py_holds 600
  wait_until test -s started-py
  tells 75 "held by another program ($(cat started-py))" rlock run -n "$key" -- true
  run -0 rlock status "$key"
  [[ $output == *'kind      string lock'*"owner     $(cat started-py)"*'another program'* ]]
  rlock_holds
  wait_until waiting 1
  [[ ! -e started ]]
  touch end-py
  ends "$py" 0
  wait_until test -s started

  run -1 locks try k
  # One that is not woken looks again after this time.
  py_holds 2
  library_waits
  [[ ! -e started-py ]]
  touch end
  ends "$job" 0
  wait_until test -s started-py
  redis srv pexpire "$key" 600000
  run -75 rlock run -n "$key" -- true
  touch end-py
  ends "$py" 0
  run -0 rlock run -n "$key" -- true
}
@test "each waits while the other holds the lock, and gets it after the other's release" { for_each by_turns; }

late() {
  local owner
  py_holds 1
  wait_until test -s started-py
  rlock_holds
  wait_until test -s started
  touch end-py
  # redlock-py does not say whether the lock was still its own.
  ends "$py" $([[ $library == redlock-py ]] && echo 0 || echo 3)
  [[ $(redis srv get "$key") =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
  touch end
  ends "$job" 0

  owner=$(rlock acquire --lease 2s "$key")
  py_holds 2
  wait_until test -s started-py
  redis srv pexpire "$key" 600000
  run -76 rlock release "$key" --owner "$owner"
  [[ $(redis srv get "$key") == "$(cat started-py)" ]]
  touch end-py
  ends "$py" 0
}
@test "each gets the lock when the other's lease has ended, and a late release does not take it away" { for_each late; }

@test "redis-py sees that the lock is held, and can neither extend nor release it; rlock says that a lock without a timeout never expires, and waits as long as -w says" {
  [[ " $LIBRARIES " == *' redis-py '* ]] || skip 'redis-py is not there'
  local library=redis-py
  rlock_holds
  wait_until test -s started
  prints $'True False\n3' locks ask k
  touch end
  ends "$job" 0

  # One without a timeout.
  py_holds 0
  wait_until test -s started-py
  tells 76 'and never expires' rlock run k -- true
  rlock_holds -w 10m
  wait_until waiting 1
  touch end-py
  ends "$py" 0
  wait_until test -s started
  touch end
  ends "$job" 0
}

# on_one_counter SOCKETS LIBRARY ...: of these, those that are there, and two loops of rlock, each add 1 to a number 50 times.
on_one_counter() {
  local sockets=$1 library name parts=0
  shift
  jobs=()
  echo 0 >counter
  for library; do
    [[ " $LIBRARIES " == *" $library "* ]] || continue
    name=redlock:counter
    [[ $library != pottery ]] || name=counter
    "$PYTHON" "$TESTS_DIR/interop/libraries.py" "$library" "$sockets" sections "$name" 50 counter 2>"err-$library" 3>&- &
    jobs+=($!)
    parts=$((parts + 1))
  done
  ((parts > 0)) || skip 'none of the libraries is there'
  for library in rlock-1 rlock-2; do
    # shellcheck disable=SC2016 # for the shells of the command
    bash -c 'for ((n = 0; n < 50; n++)); do
        "$RLOCK" run -q redlock:counter -- sh -c "read -r number <counter; echo \$((number + 1)) >counter" || exit
      done' 2>"err-$library" 3>&- &
    jobs+=($!)
  done
  for job in "${jobs[@]}"; do ends "$job" 0; done
  cat err-*
  [[ $(cat counter) == $((50 * (parts + 2))) ]]
}

@test "one at a time, on one server and on a majority of three: sections by libraries and two rlock clients, and none is lost" {
  on_one_counter "$srv_sock" redis-py redlock-py pottery
  quorum_start 3
  on_one_counter "$s1_sock,$s2_sock,$s3_sock" redlock-py pottery
  quorum_stop
}
