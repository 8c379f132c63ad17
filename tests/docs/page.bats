# The page of rlock status --html and history --html in a real browser, Debian's Chromium: tests/lib/browser.py lists
# what is checked. Skipped where that is not installed: on Ubuntu it is a snap, which a test cannot install.

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
  use_server srv
  export RLOCK_HISTORY=true
}
teardown() { redis_stop srv; }

# hold NAME MILLISECONDS_AGO HELD [FIELD VALUE...]: a past hold, as a job writes it.
hold() {
  local name=$1 ended=$((NOW - $2)) held=$3
  shift 3
  redis srv xadd "rlock:history:{$name}" "$ended-*" outcome released owner "$RANDOM$RANDOM" user ann host ci-7 pid 4242 \
    command ./job.sh held "$held" end exited "$@" >/dev/null
}

# Locks as people have them: a nightly job, one that ends in half a second, one that runs all the time, one that is held and
# waited for, and one whose host has died.
write_jobs() {
  local i hour=3600000 owner
  NOW=$(wall_ms)
  for i in {30..1}; do hold nightly $((i * 24 * hour - 12 * hour)) $((1200000 + i * 1000)) value 0; done
  for i in {5..1}; do hold tick $((i * hour / 6)) 500 waited 2000 value 0; done
  hold burst $((hour / 2)) 500 value 3
  for i in {50..1}; do hold burst $((i * 100)) 50 value 0; done
  for i in {6..1}; do hold deploy $((i * hour)) 240000 value 0; done
  # One that has failed is retried at once, and runs for long; then it fails for long, and is held now.
  hold retry $((10 * hour)) 1000 value 3
  hold retry 60000 $((10 * hour - 62000)) value 3
  owner=$(rlock acquire --lease 1m retry)
  redis srv hset 'rlock:totals:{deploy}' lasted '240000 240000 240000 240000 240000' >/dev/null
  job_start --lease 60s web -- sleep 600
  job_parts
  kill_guards
  redis srv hset 'rlock:holder:{web}' since $((NOW - 600000)) >/dev/null
  redis srv pexpire web 20000 >/dev/null
  job_start --reason 'release 1.4' deploy -- sleep 600
  wait_until rlock status --is-held deploy
  "$RLOCK" run --reason hotfix deploy -- true 2>/dev/null 3>&- &
  waiter=$!
  wait_until queued deploy 1
  rlock status --html >jobs.html
  rlock history --local --html >local.html nightly
  redis srv del web 'rlock:holder:{web}' >/dev/null
  rlock release retry --owner "$owner"
  kill -TERM "$waiter" "$frontend"
  wait "$waiter" "$frontend" || true
}

# Pages with one difficulty each.
write_difficult() {
  local i minute=60000 hour=3600000
  NOW=1700000000000
  # Fifty at a time; and readers that hold it now, two more than there are lanes.
  for i in {50..1}; do hold overlap "$i" $minute value 0; done
  rlock history --html >overlap.html overlap
  hold readers 0 $minute value 0
  for i in {1..26}; do rlock acquire -s --lease 1m readers >/dev/null; done
  rlock status --html >readers.html readers
  rlock force-unlock --now --yes readers
  # Never free.
  for i in {70..1}; do hold busy $((i * minute)) 59990 value "$((i > 64))"; done
  rlock history --limit 1000 --html >busy.html busy
  # Half a second in an hour; and a hundred within a minute, of which one has failed, after one an hour before.
  for i in {5..1}; do hold short $((i * hour / 5)) 500 value 0; done
  rlock history --html >short.html short
  hold crowd $((2 * hour)) 500 value 0
  for i in {100..1}; do hold crowd $((hour + i * 600)) 100 value "$((i == 50))"; done
  rlock history --limit 1000 --html >crowd.html crowd
  # Held for longer than may be true, beside others.
  for i in 3 2 1; do hold absurd $((i * minute)) "$((i == 2 ? 90000000000 : 10000))" value 0; done
  rlock history --html >absurd.html absurd
  hold "$(printf 'n%.0s' {1..200})" 0 1000 value 3
  rlock history --html >long.html "$(printf 'n%.0s' {1..200})"
}

# A lock for each deploy; and 20 locks of 500 holds each.
many_locks() {
  redis srv eval 'for i = 1, 10000 do
    redis.call("xadd", KEYS[1] .. i % tonumber(ARGV[1]) .. "}", 1700000000000 + i * 60000 .. "-1", "outcome", "released",
      "owner", i, "held", 20000 + i % 7 * 1000, "host", "ci-" .. i % 9, "user", "ann", "pid", i, "command", "./deploy.sh",
      "reason", "release 1." .. i, "end", "exited", "value", i % 50 == 0 and 1 or 0)
  end' 1 "rlock:history:{$1-" "$2" >/dev/null
}

@test "a reader can use the page: trouble first, one time axis, filters, dark mode, phones, keyboard, screen readers, no scripts" {
  local name=$'"><script>pwned = 1</script>\u202e'
  write_jobs
  rlock status --html >empty.html nobody-uses-it
  hold "$name" 1000 500 value 3 reason '<img src=x onerror=pwned=1>' user '"onclick="pwned=1' once "'--><svg onload=pwned=1>" \
    command $'</script><!--<script>\u2028]]>&lt;'
  redis srv hincrby "rlock:totals:{$name}" losses 3 >/dev/null
  rlock acquire --lease 10m --reason '</pre></noscript><script>pwned = 1</script>' "$name"
  rlock status --html >hostile.html "$name"
  rlock force-unlock --now --yes "$name"
  write_difficult
  redis srv flushall >/dev/null
  many_locks deploy 2000
  rlock history --limit 10000 --html >many.html
  redis srv flushall >/dev/null
  many_locks job 20
  rlock history --limit 10000 --html >full.html
  # A page of 10,000 holds stays small.
  [[ $(page_data full.html 'len(holds)') == 10000 ]]
  (($(stat -c %s full.html) < 6000000))
  HOME=$PWD/none XDG_CONFIG_HOME=$PWD/none run -0 python3 "$TESTS_DIR/lib/browser.py" "$PWD"
  [[ ! -e none && $(grep -c '^ok ' <<<"$output") == 20 && $(grep -vc '^ok ' <<<"$output") == 0 ]]
}
