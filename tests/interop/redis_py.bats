# rlock --protocol set and redis-py on one lock: the real redis-py against the real program.

load ../lib/common

# The Python that has redis-py; the system's package is for the system's Python.
find_python() {
  local python
  for python in python3 /usr/bin/python3; do
    "$python" -c 'import redis' 2>/dev/null && echo "$python" && return
  done
}

setup_file() {
  export PYTHON REDIS_PY_MISSING=
  PYTHON=$(find_python) || REDIS_PY_MISSING='not tested: that rlock and redis-py share locks. To test it: apt-get install python3-redis'
  # A CI run that tested nothing would look like one that passed.
  [[ -z $REDIS_PY_MISSING ]] || {
    echo "$REDIS_PY_MISSING" >&2
    [[ -z ${CI:-} ]]
    return
  }
  redis_start srv
}
setup() {
  [[ -z $REDIS_PY_MISSING ]] || skip "$REDIS_PY_MISSING"
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL RLOCK_PROTOCOL=set
  cd "$BATS_TEST_TMPDIR" || return
  jobs=()
}
teardown() {
  [[ -z $REDIS_PY_MISSING ]] || return 0
  local job
  touch end end-py
  for job in "${jobs[@]}"; do wait_until gone "$job" || kill -KILL "$job"; done
  redis srv del k >/dev/null
  assert_clean srv
}
teardown_file() { redis_stop srv; }

redis_py() { timeout 100 "$PYTHON" "$TESTS_DIR/interop/redis_py.py" "$srv_sock" "$@"; }
# py_holds SECONDS: redis-py takes the lock k in the background, once it is free, until end-py exists.
py_holds() {
  "$PYTHON" "$TESTS_DIR/interop/redis_py.py" "$srv_sock" hold k "$1" started-py end-py 2>err-py 3>&- &
  py=$!
  jobs+=($py)
}
# rlock_holds [OPTION ...]: the same with rlock, until end exists.
rlock_holds() {
  # shellcheck disable=SC2016 # for the sh of the command
  "$RLOCK" run "$@" k -- sh -c 'echo "$RLOCK_TOKEN" >started; until [ -e end ]; do sleep 0.02; done' 2>err 3>&- &
  job=$!
  jobs+=($job)
}
# ends PID STATUS: the process exits with STATUS.
ends() {
  local status=0
  wait_until gone "$1"
  wait "$1" || status=$?
  [[ $status == "$2" ]] || {
    cat err err-py >&2
    echo "ended with $status, not $2" >&2
    return 1
  }
}
waiting() { [[ $(redis srv zcard 'rlock:queue:{k}') == "$1" ]]; }
sets() { redis srv info commandstats | sed -n 's/^cmdstat_set:calls=\([0-9]*\),.*/\1/p' | grep . || echo 0; }

@test "rlock waits for redis-py, and gets the lock when redis-py has released it" {
  py_holds 600
  wait_until test -s started-py
  run -75 --separate-stderr rlock run -n k -- true
  assert_says "held by another program ($(cat started-py))"
  run -0 rlock status k
  [[ $output == *'kind      string lock'*"owner     $(cat started-py)"*'another program'* ]]
  rlock_holds
  wait_until waiting 1
  [[ ! -e started ]]
  touch end-py
  ends "$py" 0
  wait_until test -s started
  touch end
  ends "$job" 0
}

@test "redis-py waits for rlock, and gets the lock when rlock has released it" {
  rlock_holds
  wait_until test -s started
  run -1 redis_py try k
  local before
  before=$(sets)
  py_holds 600
  asks() { (($(sets) >= before + 3)); }
  wait_until asks
  [[ ! -e started-py ]]
  touch end
  ends "$job" 0
  wait_until test -s started-py
  run -75 rlock run -n k -- true
  touch end-py
  ends "$py" 0
  run -0 rlock run -n k -- true
}

@test "redis-py sees that the lock is held, and can neither extend nor release rlock's hold" {
  rlock_holds
  wait_until test -s started
  run -0 redis_py ask k
  [[ $output == $'True False\n3' ]]
  touch end
  ends "$job" 0
}

@test "rlock gets an expired redis-py lock, and redis-py's late release does not take it away" {
  py_holds 0.5
  wait_until test -s started-py
  rlock_holds
  wait_until test -s started
  touch end-py
  ends "$py" 3
  [[ $(redis srv get k) =~ ^[0-9a-f-]{36}:[0-9]+$ ]]
  touch end
  ends "$job" 0
}

@test "redis-py gets an expired rlock lock" {
  local owner
  owner=$(rlock acquire --lease 2s k)
  py_holds 600
  wait_until test -s started-py
  run -76 rlock release k --owner "$owner"
  [[ $(redis srv get k) == "$(cat started-py)" ]]
  touch end-py
  ends "$py" 0
}

@test "a redis-py lock without a timeout never expires: rlock says so, and waits as long as -w says" {
  py_holds 0
  wait_until test -s started-py
  run -76 --separate-stderr rlock run k -- true
  assert_says 'and never expires'
  rlock_holds -w 10m
  wait_until waiting 1
  touch end-py
  ends "$py" 0
  wait_until test -s started
  touch end
  ends "$job" 0
}

@test "one at a time: 400 sections by two redis-py and two rlock clients, and none is lost" {
  local i
  echo 0 >counter
  for i in 1 2; do
    "$PYTHON" "$TESTS_DIR/interop/redis_py.py" "$srv_sock" sections k 100 counter 2>"err-py-$i" 3>&- &
    jobs+=($!)
  done
  # shellcheck disable=SC2016 # for the sh of the command
  for i in 1 2; do
    bash -c 'for ((n = 0; n < 100; n++)); do
        "$RLOCK" run -q k -- sh -c "read -r number <counter; echo \$((number + 1)) >counter" || exit
      done' 2>"err-$i" 3>&- &
    jobs+=($!)
  done
  for i in "${jobs[@]}"; do ends "$i" 0; done
  cat err-py-* err-[12]
  [[ $(cat counter) == 400 ]]
}
