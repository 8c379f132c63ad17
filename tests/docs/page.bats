#!/usr/bin/env bats
# The page of rlock status --html and history --html in a real browser, Debian's Chromium: tests/lib/browser.py lists
# what is checked. Skipped where that is not installed: on Ubuntu it is a snap, which a test cannot install.

load ../lib/common
load ../lib/job

wall_ms() { date +%s%3N; }

setup_file() {
  for program in chromium chromedriver; do
    [[ -x /usr/bin/$program ]] || skip 'Chromium and ChromeDriver of Debian are not installed'
  done
  /usr/bin/python3 -c 'import selenium' 2>/dev/null || skip 'python3-selenium is not installed'
}

setup() {
  redis_start srv
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL RLOCK_HISTORY=true
  cd "$BATS_TEST_TMPDIR" || return
}
teardown() { redis_stop srv; }

# hold NAME MILLISECONDS_AGO HELD [FIELD VALUE...]: a past hold, as a job writes it.
hold() {
  local name=$1 ended=$((NOW - $2)) held=$3
  shift 3
  redis srv xadd "rlock:history:{$name}" "$ended-*" outcome released owner "$RANDOM$RANDOM" user ann host ci-7 pid 4242 \
    command ./job.sh held "$held" end exited "$@" >/dev/null
}

# Locks as people have them: a nightly job, one that ends in half a second, one that runs all the time, and one that is
# held and waited for.
write_jobs() {
  local i hour=3600000 owner
  NOW=$(wall_ms)
  for i in {30..1}; do hold nightly $((i * 24 * hour - 12 * hour)) 1200000 value 0; done
  for i in {5..1}; do hold tick $((i * hour / 6)) 500 waited 2000 value 0; done
  hold burst $((hour / 2)) 500 value 3
  for i in {50..1}; do hold burst $((i * 100)) 50 value 0; done
  for i in {6..1}; do hold deploy $((i * hour)) 240000 value 0; done
  # One that has failed is retried at once, and runs for long; then it fails for long, and is held now.
  hold retry $((10 * hour)) 1000 value 3
  hold retry 60000 $((10 * hour - 62000)) value 3
  owner=$(rlock acquire --lease 1m retry)
  redis srv hset 'rlock:totals:{deploy}' lasted '240000 240000 240000 240000 240000' >/dev/null
  job_start --reason 'release 1.4' deploy -- sleep 600
  wait_until rlock status --is-held deploy
  "$RLOCK" run --reason hotfix deploy -- true 2>/dev/null 3>&- &
  waiter=$!
  wait_until eval '[[ $(redis srv zcard "rlock:queue:{deploy}") == 1 ]]'
  rlock status --html jobs.html
  rlock release retry --owner "$owner"
  kill -TERM "$waiter" "$frontend"
  wait "$waiter" "$frontend" || true
}

# A lock for each deploy.
many_locks() {
  redis srv eval 'for i = 1, 10000 do
    redis.call("xadd", "rlock:history:{deploy-" .. i % 2000 .. "}", 1700000000000 + i * 60000 .. "-1", "outcome", "released",
      "owner", i, "held", 20000, "host", "ci", "user", "ann", "pid", i, "end", "exited", "value", 0)
  end' 0 >/dev/null
}

@test "a reader can use the page: filters, blocks, dark mode, phones, keyboard, screen readers, no scripts" {
  local name=$'"><script>pwned = 1</script>\u202e'
  write_jobs
  # Who waits, its place, and what to expect.
  grep -q '1st: .* about [0-9]' jobs.html
  rlock status --html empty.html nobody-uses-it
  hold "$name" 1000 500 value 3 reason '<img src=x onerror=pwned=1>' user '"onclick="pwned=1' once "'--><svg onload=pwned=1>"
  redis srv hincrby "rlock:totals:{$name}" losses 3 >/dev/null
  rlock status --html hostile.html "$name"
  many_locks
  rlock history --limit 10000 --html many.html
  run -0 python3 "$TESTS_DIR/lib/browser.py" "$PWD"
  [[ $(grep -c '^ok ' <<<"$output") == 13 && $(grep -vc '^ok ' <<<"$output") == 0 ]]
}

@test "a page of 10,000 holds stays small" {
  redis srv eval 'for i = 1, 10000 do
    local ended = 1700000000000 + i * 60000
    redis.call("xadd", KEYS[1 + i % 20], ended .. "-1", "outcome", "released", "owner", i, "held", 20000 + i % 7 * 1000,
      "host", "ci-" .. i % 9, "user", "ann", "pid", i, "command", "./deploy.sh", "reason", "release 1." .. i, "end",
      "exited", "value", i % 50 == 0 and 1 or 0)
  end' 20 "rlock:history:{job-"{1..20}"}" >/dev/null
  rlock history --limit 10000 --html page.html
  [[ $(grep -c '<tr id="h' page.html) == 10000 ]]
  (($(stat -c %s page.html) < 6000000))
  # The pictures do not grow with the holds.
  (($(grep -o '<rect' page.html | wc -l) < 12000))
}
