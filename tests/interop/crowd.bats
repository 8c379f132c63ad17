# Many rlock and Redisson clients on one lock: no section is lost, and nobody starves. SECTIONS and FAIR_SECONDS
# make it longer (docs/java.md).

load interop

setup_file() {
  interop_setup_file
  # The second JVM.
  [[ -n $REDISSON_MISSING ]] || JVM=2 redisson_start "redis://127.0.0.1:$port"
}
setup() {
  interop_setup
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() {
  touch end
  interop_teardown
}

# loop ID SCRIPT: bash runs SCRIPT in the background, with the lock's name as $1 and ID as $2.
loop() {
  bash -c "$2" bash "$name" "$1" </dev/null >"$1.log" 2>&1 3>&- &
  job_pids[$1]=$!
}

@test "four threads in two JVMs and eight rlock workers on one counter: no section is lost" {
  local all=${SECTIONS:-400} id jvm thread
  export each=$((all * 3 / 40))
  echo 0 >counter
  for jvm in 1 2; do
    for thread in a b; do JVM=$jvm redisson_send "$thread$jvm" sections "$name" $((all / 10)) "$PWD/counter"; done
  done
  for id in {1..8}; do
    # shellcheck disable=SC2016 # for the shells of the loop
    loop "$id" 'for ((i = 0; i < each; i++)); do
      "$RLOCK" run -q "$1" -- sh -c "read -r number <counter; sleep 0.001; echo \$((number + 1)) >counter" || exit
    done'
  done
  for jvm in 1 2; do
    for thread in a b; do
      JVM=$jvm WAIT_SECONDS=${BATS_TEST_TIMEOUT:-3600} wait_until redisson_replies "$thread$jvm"
      [[ $(reply ok) == true ]]
    done
  done
  for id in {1..8}; do WAIT_SECONDS=${BATS_TEST_TIMEOUT:-3600} job_ends "$id" 0; done
  echo "# $(<counter) of $((all / 10 * 4 + each * 8)) sections" >&3
  [[ $(<counter) == $((all / 10 * 4 + each * 8)) ]]
  wait_until lock_free
}

# rlock_competes ID: like `compete` of the driver.
rlock_competes() {
  # shellcheck disable=SC2016 # for the shells of the loop
  loop "$1" 'until [[ -e end ]]; do
    asked=${EPOCHREALTIME/./}
    "$RLOCK" run -q "$1" -- sh -c "date +%s%6N >\"\$0\"; sleep 0.02" "at.$2" || exit
    echo $((($(<"at.$2") - asked) / 1000)) >>"waits.$2"
  done'
}

# of_each FILE ...: the share of the one with the fewest grants, and the longest wait.
of_each() {
  local file number most least='' longest=0 all
  all=$(cat waits.* | wc -l)
  for file; do
    number=$(wc -l <"$file") most=$(sort -n "$file" | tail -n 1)
    ((number >= ${least:=$number})) || least=$number
    ((most <= longest)) || longest=$most
  done
  printf 'least share %d.%d %%, longest wait %d ms' $((least * 100 / all)) $((least * 1000 / all % 10)) "$longest"
}

# nobody_starves PREFIX RLOCKS THREADS: RLOCKS loops of rlock and THREADS threads of Redisson, with this kind of its
# locks.
nobody_starves() {
  local i
  for ((i = 1; i <= $2; i++)); do rlock_competes "rlock$i"; done
  for ((i = 1; i <= $3; i++)); do redisson_send "java$i" "$1compete" "$name" 20 "$PWD/waits.java$i" "$PWD/end"; done
  sleep "${FAIR_SECONDS:-5}"
  # RLock itself is not fair to its threads, so any of them counts.
  all_had_it() { (($(cat waits.java* | wc -l) > 1 && $(wc -l waits.rlock* | grep -c 'waits.rlock') == $1)); }
  wait_until all_had_it "$2"
  touch end
  for ((i = 1; i <= $2; i++)); do job_ends "rlock$i" 0; done
  for ((i = 1; i <= $3; i++)); do wait_until redisson_replies "java$i"; done
  echo "# of $(cat waits.* | wc -l) grants in ${FAIR_SECONDS:-5} s: rlock × $2: $(of_each waits.rlock*); Redisson × $3: $(of_each waits.java*)" >&3
}

@test "RLock: ten rlock jobs do not starve a Redisson thread" { nobody_starves '' 10 1; }
@test "RLock: ten Redisson threads do not starve a loop of rlock" { nobody_starves '' 1 10; }
@test "RFairLock: ten rlock jobs do not starve a Redisson thread" { nobody_starves fair- 10 1; }
@test "RFairLock: ten Redisson threads do not starve a loop of rlock" { nobody_starves fair- 1 10; }
