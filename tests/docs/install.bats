# The files that users install, and the crontab of the README.

load ../lib/common

@test "the install rules put program, man page and documents in the right places" {
  build=$(dirname "$RLOCK")
  [[ -e $build/CMakeCache.txt ]] || skip "the program under test was not built here"
  # CMake lists what it installs in the build folder. If root has left a list there, we cannot write it; no list is lost
  # because of a test.
  local list=$build/install_manifest.txt
  [[ ! -e $list ]] || mv "$list" "$list.kept"
  cmake --install "$build" --prefix "$BATS_TEST_TMPDIR/usr" >/dev/null || status=$?
  rm -f "$list"
  [[ ! -e $list.kept ]] || mv "$list.kept" "$list"
  ((${status:-0} == 0))
  cd "$BATS_TEST_TMPDIR"
  [[ $(usr/bin/rlock --version) == "rlock "* ]]
  {
    (cd "$TESTS_DIR/../man" && for page in *; do echo "share/man/man${page##*.}/$page"; done)
    printf '%s\n' bin/rlock share/bash-completion/completions/rlock \
      share/zsh/site-functions/_rlock share/fish/vendor_completions.d/rlock.fish
    printf 'share/doc/rlock/%s\n' CHANGELOG.md LICENSE README.md SECURITY.md examples/rlock.toml
    (cd "$TESTS_DIR/.." && find docs -type f ! -name '*.py' -printf 'share/doc/rlock/%p\n')
    (cd "$TESTS_DIR/../packaging" && find examples -type f -printf 'share/doc/rlock/%p\n')
    (cd "$TESTS_DIR/../packaging" && find prometheus -type f -printf 'share/doc/rlock/examples/%p\n')
  } | sort >expected
  grep -qxF "$(sed -n '1s,^#:schema file:///usr/,,p' "$TESTS_DIR/../packaging/rlock.toml")" expected
  (cd usr && find . -type f -size +0 | sed 's,^\./,,' | sort) >found
  diff expected found
}

@test "a job and a keeper continue while their program is replaced, and release their locks" {
  cd "$BATS_TEST_TMPDIR"
  redis_start srv
  local program=$BATS_TEST_TMPDIR/rlock job
  export RLOCK_URL
  RLOCK_URL=$(redis_url srv)
  cp "$RLOCK" "$program"
  sleep 1000 3>&- &
  job=$!
  "$program" acquire --for-pid "$job" --lease 5s kept >owner
  "$program" run --lease 5s upgraded -- sh -c 'until [ -e replaced ]; do sleep 0.1; done; "$0" renew kept --owner "$(cat owner)"' \
    "$program" 3>&- &
  wait_until eval '[[ $(redis srv exists upgraded) == 1 ]]'
  # As dpkg, mv and install do it.
  cp "$RLOCK" "$program.new"
  mv "$program.new" "$program"
  began=$(now_ms)
  wait_until past 6000 # both leases were renewed by the program that is not there any more
  let_end replaced "$!"
  kill "$job"
  wait_until eval '[[ $(redis srv exists kept upgraded) == 0 ]]'
  assert_clean srv
  redis_stop srv
}

# in_install TEXT: runs the text after packaging/install.sh, as an ordinary user without sudo, in the test's folder.
in_install() {
  local as=()
  [[ $(id -u) != 0 ]] || as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  cd "$BATS_TEST_TMPDIR" || return
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/test" "$BATS_TEST_TMPDIR"
  "${as[@]}" sh -euc "$(<"$TESTS_DIR/../packaging/install.sh")
    sudo() { return 1; }
    $1" </dev/null
}

@test "a user without sudo is told first what root has to install" {
  command -v dpkg-query >/dev/null || skip 'no Debian here'
  run -1 in_install 'need_packages libc6 no-such-package-1 no-such-package-2'
  [[ ${lines[0]} == '!! packages are missing'* ]]
  assert_says 'apt-get install --no-install-recommends no-such-package-1 no-such-package-2'
  run -0 in_install 'need_packages libc6'
  [[ -z $output ]]
}

@test "a folder that root has built in is reported; one that root has only installed from is fine" {
  [[ $(id -u) == 0 ]] || skip 'only root can give files to another'
  mkdir "$BATS_TEST_TMPDIR/build"
  chown 65534 "$BATS_TEST_TMPDIR/build"
  touch "$BATS_TEST_TMPDIR/build/install_manifest.txt"
  run -0 in_install 'own build'
  touch "$BATS_TEST_TMPDIR/build/rlock"
  tells 1 'build/ contains files of another user, such as build/rlock' in_install 'own build'
  assert_says 'chown -R'
}
