# What users install, and the crontab of the README.

load ../lib/common

@test "the install rules put program, man page and documents where they belong" {
  local build
  build=$(dirname "$RLOCK")
  [[ -e $build/CMakeCache.txt ]] || skip "the program under test was not built here"
  cmake --install "$build" --prefix "$BATS_TEST_TMPDIR/usr" >/dev/null
  [[ $("$BATS_TEST_TMPDIR/usr/bin/rlock" --version) == "rlock "* ]]
  [[ -s $BATS_TEST_TMPDIR/usr/share/man/man1/rlock.1 ]]
  [[ -s $BATS_TEST_TMPDIR/usr/share/doc/rlock/README.md && -s $BATS_TEST_TMPDIR/usr/share/doc/rlock/LICENSE ]]
}

@test "the crontab line of the README works in cron's bare environment, and is silent when busy" {
  redis_start srv
  local line owner
  line=$(grep -E '^\*/5 ' "$TESTS_DIR/../README.md" | sed -E 's/^([^ ]+ +){5}//; s,/usr/local/bin/backup,touch ran,')
  [[ $line == 'rlock run -n -E 0 nightly -- touch ran' ]]
  mkdir "$BATS_TEST_TMPDIR/bin"
  ln -s "$(realpath "$RLOCK")" "$BATS_TEST_TMPDIR/bin/rlock"
  cd "$BATS_TEST_TMPDIR"
  as_cron() {
    run --separate-stderr -0 env -i HOME="$HOME" LOGNAME=x SHELL=/bin/sh PATH="$BATS_TEST_TMPDIR/bin:/usr/bin:/bin" \
      RLOCK_URL="$(redis_url srv)" /bin/sh -c "$line" </dev/null
    [[ -z $output && -z $stderr ]]
  }
  as_cron
  [[ -e ran ]]
  rm ran
  owner=$(rlock --url "$(redis_url srv)" acquire nightly --lease 1m)
  as_cron
  [[ ! -e ran ]]
  rlock --url "$(redis_url srv)" release nightly --owner "$owner"
  assert_clean srv
  redis_stop srv
}
