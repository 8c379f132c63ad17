# The contents of packages, and the scripts that make them. packaging/release and packaging/try-package test whole
# packages.

load ../lib/common

setup() {
  ROOT=$(cd "$TESTS_DIR/.." && pwd)
  BUILD=$(dirname "$RLOCK")
  cd "$BATS_TEST_TMPDIR" || return
}

# needs_static_build: $RLOCK is a static program that was built here.
needs_static_build() {
  [[ -e $BUILD/CMakeCache.txt ]] || skip 'the program under test was not built here'
  grep -qx 'RLOCK_STATIC:BOOL=ON' "$BUILD/CMakeCache.txt" || skip 'the program is not static'
}

@test "every script of packaging/ explains itself with --help, or needs an argument" {
  cd "$ROOT"
  for script in debian-source image musl npm provenance release verify wheel \
    try-arm64 try-image try-on try-package try-release try-source; do
    run -0 sh "packaging/$script" --help
    [[ $output == *"packaging/$script"* && $output != *'set -eu'* ]]
  done
  tells 1 'give the folder of a build' sh packaging/linked
}

@test "the example configuration file is accepted and changes nothing, and so is each of its lines without its comment mark" {
  # A copy, because rlock refuses a file that a group may write to, as in a clone with umask 002.
  install -m 644 "$ROOT/packaging/rlock.toml" example.toml
  # -v reports where each setting comes from at the right time; nobody listens there.
  export RLOCK_URL=unix://$PWD/none
  for file in "$PWD/example.toml" /dev/null; do
    run -69 --separate-stderr rlock --config "$file" run -v x -- true
    echo "${stderr//"$file"/FILE}" | sed -E 's/^(rlock: )[^ ]+Z /\1/' >"said.${file##*/}"
  done
  grep -q 'config: FILE' said.null
  diff said.example.toml said.null
  unset RLOCK_URL
  # Only comments and empty lines.
  run -1 grep -nvE '^(#.*)?$' "$ROOT/packaging/rlock.toml"
  sed -nE 's/^# ([a-z-]+ = .*)/\1/p' "$ROOT/packaging/rlock.toml" >all.toml
  (($(wc -l <all.toml) >= 5))
  chmod 600 all.toml
  # The configuration is read completely, and then the first missing thing is the password file.
  tells 78 /etc/rlock/password rlock --config all.toml run x -- true
  sed -i '/^password-file\|^tls-ca/d' all.toml
  echo 'no-such-setting = 1' >>all.toml
  tells 78 no-such-setting rlock --config all.toml run x -- true
}

@test "the version is that of the newest section in the changelog, or above it if that is not released; nothing in packaging/ has it" {
  version=$(sed -nE 's/^project\(rlock VERSION ([0-9.]+).*/\1/p' "$ROOT/CMakeLists.txt")
  [[ $version =~ ^[0-9]+\.[0-9]+ ]]
  run -0 --separate-stderr rlock --version
  [[ ${lines[0]} == "rlock $version" ]]
  newest=$(sed -nE 's/^## \[([0-9][0-9.]*)\].*/\1/p' "$ROOT/CHANGELOG.md" | head -n 1)
  if [[ $newest != "$version" ]]; then
    grep -qx '## \[Unreleased\]' "$ROOT/CHANGELOG.md"
    [[ $(printf '%s\n' "$newest" "$version" | sort -V | tail -n 1) == "$version" ]]
  fi
  # Nowhere else, because packaging/release writes it.
  run -1 grep -rnF "$version" "$ROOT/packaging"
}

@test "an archive of a release: tar leaves folders and links where it is unpacked as they are" {
  eval "$(sed -n '/^archive() {/,/^}/p' "$ROOT/packaging/release")"
  mkdir -p tree/rlock-1/{bin,share/man/man1}
  echo program | tee tree/rlock-1/bin/rlock >tree/rlock-1/share/man/man1/rlock.1
  chmod 755 tree/rlock-1/bin/rlock
  SOURCE_DATE_EPOCH=1000000000 archive rlock.tar.gz tree rlock-1
  for tar in tar 'busybox tar'; do
    command -v "${tar%% *}" >/dev/null || continue
    rm -rf local man
    mkdir -p local/{bin,share} man
    ln -s ../../man local/share/man
    chmod 2775 local/bin
    (umask 022 && $tar -xzf rlock.tar.gz --strip-components=1 -C local)
    [[ -L local/share/man && $(<man/man1/rlock.1) == program && -x local/bin/rlock ]]
    [[ $(stat -c %a local/bin man/man1) == $'2775\n755' ]]
  done
}

@test "the Debian source package has the version and the addresses, and is the same when it is created again" {
  command -v dpkg-source >/dev/null || skip 'no dpkg-dev'
  [[ -e $ROOT/.git ]] || skip 'not a clone'
  for folder in one two; do
    mkdir "$folder"
    # As it will be committed.
    (cd "$ROOT" && git -c safe.directory='*' ls-files -z -co --exclude-standard CMakeLists.txt packaging | xargs -0 tar -c --transform 's,^,rlock-7.8.9/,' \
      --sort=name --mtime=@0) | gzip -n >"$folder/rlock-7.8.9.tar.gz"
    SOURCE_DATE_EPOCH=1000000000 sh "$ROOT/packaging/debian-source" "$folder" 7.8.9
  done
  diff -r one two
  dpkg-source -x one/rlock_7.8.9-0source1.dsc unpacked >/dev/null
  run -1 grep -rnE '@[A-Z0-9]+@' unpacked/debian
  [[ $(dpkg-parsechangelog -l unpacked/debian/changelog -S Version) == 7.8.9-0source1 ]]
  [[ $(dpkg-parsechangelog -l unpacked/debian/changelog -S Timestamp) == 1000000000 ]]
  # The same words about the package.
  diff <(sed -n '/^ rlock takes/,$s/^ //p' unpacked/debian/control) \
    <(sed -n '/^"rlock takes/,/share it\.$/p' "$ROOT/packaging/cpack.cmake" | tr -d '"')
}

@test "the addresses of the maintainers and of the source are in one place" {
  cd "$ROOT"
  [[ $(grep -cE '^set\(RLOCK_(MAINTAINER|HOMEPAGE) "[^"]+" CACHE' packaging/cpack.cmake) == 2 ]]
  run -1 grep -rnF --exclude=cpack.cmake -e "$(sed -n 's/^set(RLOCK_HOMEPAGE "\([^"]*\)".*/\1/p' packaging/cpack.cmake)" \
    -e "$(sed -n 's/^set(RLOCK_MAINTAINER "[^"]*<\([^"]*\)>".*/\1/p' packaging/cpack.cmake)" \
    --exclude-dir=tldr CMakeLists.txt README.md SECURITY.md docs lua man packaging src
  # The page for tldr is sent to others unchanged.
  grep -qF "<$(sed -n 's/^set(RLOCK_HOMEPAGE "\([^"]*\)".*/\1/p' packaging/cpack.cmake)>" docs/tldr/rlock.md
  [[ -e $BUILD/CPackConfig.cmake ]] || skip 'the program under test was not built here'
  grep -q '^set(CPACK_PACKAGE_HOMEPAGE_URL "http' "$BUILD/CPackConfig.cmake"
}

@test "the static program needs no library, and its parts are known, with licences; an unknown licence is reported" {
  needs_static_build
  LC_ALL=C readelf -W -l -d "$RLOCK" >elf
  run -1 grep -E 'INTERP|NEEDED' elf
  [[ -s $BUILD/build.ninja ]] && command -v dpkg-query >/dev/null || skip 'no build by Ninja on Debian'
  sh "$ROOT/packaging/linked" "$BUILD" >linked
  for source in c-ares cli11 fmtlib '(glibc|musl)' hiredis nlohmann-json3 '(openssl|aws-lc)' spdlog; do
    grep -qE "^$source [^ ]* [^ ]* [^ ]* [^ ]" linked || { echo "$source is missing" && cat linked && return 1; }
  done
  grep -qE '^gcc-[0-9]* .* libstdc\+\+-|^libcxx ' linked
  # No tests.
  run -1 grep googletest linked
  sh "$ROOT/packaging/linked" --notices "$BUILD" >notices
  grep -q 'Apache License' notices
  grep -q 'Salvatore Sanfilippo' notices
  SOURCE_DATE_EPOCH=1 sh "$ROOT/packaging/linked" --spdx "$BUILD" "$RLOCK" >spdx
  python3 - "$(sha256sum <"$RLOCK" | cut -d ' ' -f 1)" "$(wc -l <linked)" "$(rlock --version | sed -n '1s/^rlock //p')" <<'END'
import json, re, sys
spdx = json.load(open('spdx'))
assert spdx['spdxVersion'] == 'SPDX-2.3' and spdx['creationInfo']['created'] == '1970-01-01T00:00:01Z'
program, *parts = spdx['packages']
assert program['checksums'][0]['checksumValue'] == sys.argv[1] and program['versionInfo'] == sys.argv[3]
assert len(parts) == int(sys.argv[2]), len(parts)
ids = [package['SPDXID'] for package in spdx['packages']]
assert len(ids) == len(set(ids)) and all(re.fullmatch(r'SPDXRef-[A-Za-z0-9.-]+', one) for one in ids), ids
related = {one['relatedSpdxElement'] for one in spdx['relationships']}
assert related == set(ids)
for part in parts:
    assert part['externalRefs'][0]['referenceLocator'].startswith(('pkg:deb/', 'pkg:cargo/', 'pkg:generic/'))
    assert part['licenseDeclared'] and part['versionInfo']
END
  sed 's/fmtlib | //' "$ROOT/packaging/linked" >linked
  tells 1 'unknown licence of fmtlib' sh linked "$BUILD"
}

@test "a program with the libraries of packaging/musl does not contain its builder's folders" {
  parts=$(sed -n 's/^RLOCK_PARTS:PATH=//p' "$BUILD/CMakeCache.txt" 2>/dev/null) || true
  [[ $parts ]] || skip 'the program under test was not built with the libraries of packaging/musl'
  run -1 grep -aoE "[ -~]*${parts}[ -~]*" "$RLOCK"
}

# The toolchain file that packaging/musl writes for this processor, with the system's compiler in the folder.
toolchain() {
  local tool
  folder=$PWD/parts zig=zig cross='' processor=$(uname -m)
  mkdir -p parts/bin parts/include parts/lib
  for tool in c++ ar ranlib strip; do ln -sf "$(command -v "$tool")" "parts/bin/$tool"; done
  ln -sf /usr/lib/"$processor"-linux-gnu/lib*.a parts/lib/
  eval "$(sed -n '/^cat >"$folder\/toolchain.cmake" <<END$/,/^END$/p' "$ROOT/packaging/musl")"
}

@test "the command that packaging/musl prints builds with its compiler and libraries, and needs no GTest" {
  line=$(sed -n 's/^#   \(cmake .*\)/\1/p' "$ROOT/packaging/musl")
  [[ $line == *FOLDER/toolchain.cmake* ]]
  # The end of the script prints it with the path of the folder.
  grep -qF "${line//FOLDER/'$folder'}\"" "$ROOT/packaging/musl"
  toolchain
  cd "$ROOT"
  # Its first half, where no GTest is needed; the second takes minutes.
  line=${line%% && *}
  line=${line//FOLDER/$folder}
  eval "$line -DCMAKE_DISABLE_FIND_PACKAGE_GTest=ON" >"$folder/log" 2>&1 || { cat "$folder/log" && return 1; }
  grep -q '^build rlock: ' "$folder/build/build.ninja"
  run -1 grep -c unit_tests "$folder/build/build.ninja"
}

@test "a build with -DRLOCK_SHARED=ON links no library statically" {
  cmake -S "$ROOT" -B shared -G Ninja -DRLOCK_SHARED=ON -DBUILD_TESTING=OFF >log 2>&1 || { cat log && return 1; }
  sed -n '/^build rlock: /,/^$/p' shared/build.ninja >link
  grep -q 'libhiredis\.so' link
  # Other than the floors of rlock itself.
  run -1 grep -noE '[^ ]*/lib[a-z]+(_static)?\.a|-static[a-z+-]*' link
}

# A project whose build takes three steps, and what shows its progress.
small_project() {
  mkdir small
  cd small || return
  printf '%s\n' 'cmake_minimum_required(VERSION 3.25)' 'project(small LANGUAGES NONE)' 'foreach(step 1 2 3)' \
    '  add_custom_command(OUTPUT made${step} COMMAND ${CMAKE_COMMAND} -E $<IF:$<STREQUAL:${step},${BAD}>,false,true>)' \
    '  list(APPEND all made${step})' 'endforeach()' 'add_custom_target(everything DEPENDS ${all})' >CMakeLists.txt
  echo '{ "version": 3, "configurePresets": [{ "name": "p", "binaryDir": "${sourceDir}/b" }] }' >CMakePresets.json
  printf '. "%s/packaging/install.sh"\nbuild p b everything "$@"\necho went on\n' "$ROOT" >script
}

@test "a build shows its progress on a terminal, and why it failed; that of a tree that was moved is made anew" {
  small_project
  run -0 sh script
  [[ $output == "went on" && ! -e b.log ]]
  rm -r b
  run -0 script -qec 'sh script' /dev/null
  [[ $output == *'[1/3] '*$'\r[3/3] '*$'\r'*"went on"* ]]
  rm -r b
  run -1 sh script -DBAD=2
  [[ $output == *FAILED*'b.log has the whole output'* && $output != *"went on"* && -s b.log ]]
  run -1 script -qec 'sh script -DBAD=2' /dev/null
  [[ $output == *'b.log has the whole output'* && $output != *"went on"* ]]
  rm -r b
  run -0 sh script
  mkdir moved
  cp -R ./[!m]* moved
  cd moved
  tells 0 "went on" sh script
  grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" b/CMakeCache.txt
  echo nonsense >CMakeLists.txt
  run -1 sh script
  [[ $output == *'Parse error'*'b.log has the whole output'* && $output != *"went on"* ]]
}

@test "quickstart.sh has help, and says first that a tree is read-only" {
  local root=$TESTS_DIR/..
  run -0 sh "$root/packaging/quickstart.sh" --help
  [[ ${lines[0]} == 'Installs what is missing'* && $output != *'set -eu'* && $output != *'#'* ]]
  run -64 sh "$root/packaging/quickstart.sh" --frobnicate
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR"/{test,file} "$BATS_TEST_TMPDIR" "$BATS_FILE_TMPDIR"
  as_nobody test -x "$BATS_TEST_TMPDIR" || skip 'the folders of the tests are closed to other users'
  mkdir -p "$BATS_TEST_TMPDIR/it's/packaging"
  cp "$root"/packaging/{quickstart,install}.sh "$BATS_TEST_TMPDIR/it's/packaging"
  chmod 555 "$BATS_TEST_TMPDIR/it's"
  run -1 as_nobody sh "$BATS_TEST_TMPDIR/it's/packaging/quickstart.sh"
  assert_says 'is read-only for you'
  mkdir home
  HOME=$PWD/home bash -c "$(sed -n 's/ && sh .*//p' <<<"$output")"
  [[ -e home/rlock/packaging/quickstart.sh ]]
}

@test "the lines that quickstart.sh shows can be pasted into a shell" {
  local line folder=$BATS_TEST_TMPDIR/l seen=0
  while read -r line; do
    line=${line//--url local:/--url local:$folder}
    run -0 --separate-stderr bash -c "${line//build\/rlock/\"\$RLOCK\"}"
    seen=$((seen + 1))
    ((seen > 1)) || [[ $output == 'I have the lock hello, fencing token '[0-9]* ]]
  done < <(sed -n "/<<'END'/,/^END/{//!p}" "$TESTS_DIR/../packaging/quickstart.sh")
  rlock --url "local:$folder" local stop
  ((seen == 3))
}

@test "the static program runs a command under a lock on a system with nothing else" {
  needs_static_build
  local in=(chroot)
  [[ $(id -u) == 0 ]] || in=(unshare -r chroot)
  "${in[@]}" / true 2>/dev/null || skip 'this user can change no root'
  redis_start srv
  mkdir empty
  strip -o empty/rlock "$RLOCK"
  ln "$srv_sock" empty/s
  export RLOCK_URL=unix:///s
  run -0 --separate-stderr "${in[@]}" empty /rlock run hello -- /rlock status hello
  [[ $output == *held* && -z $stderr ]]
  run -0 "${in[@]}" empty /rlock run hello -- /rlock --version
  assert_clean srv
  redis_stop srv
}

@test "the .deb and the .rpm contain the right files, owned by root, and need nothing" {
  needs_static_build
  [[ -s $BUILD/build.ninja ]] && command -v dpkg-deb >/dev/null || skip 'no build by Ninja on Debian'
  [[ ! -e $BUILD/install_manifest.txt || -w $BUILD/install_manifest.txt ]] || skip 'another user has installed this build'
  export SOURCE_DATE_EPOCH=1000000000
  (umask 077 && cpack --config "$BUILD/CPackConfig.cmake" -B "$PWD/packed" -G DEB >log 2>&1) || { cat log && return 1; }
  local deb=(packed/*.deb) file
  [[ -z $(dpkg-deb -f "${deb[0]}" Depends Pre-Depends) ]]
  # For local: addresses; the other packages have a server.
  [[ $(dpkg-deb -f "${deb[0]}" Recommends) == 'redis-server | valkey-server' ]]
  dpkg-deb -c "${deb[0]}" >list
  for file in etc/rlock/rlock.toml usr/bin/rlock usr/share/man/man{1/rlock{,-run,-acquire,-status,-history,-force-unlock}.1,5/rlock.toml.5,7/rlock-protocol.7}.gz usr/share/doc/rlock/{copyright,changelog.gz,changelog.Debian.gz,THIRD-PARTY.txt.gz,README.md,examples/rlock.toml,examples/prometheus/{alerts.yml,dashboard.json}} \
    usr/share/{bash-completion/completions/rlock,zsh/vendor-completions/_rlock,fish/vendor_completions.d/rlock.fish}; do
    grep -q " \./$file\$" list || { echo "$file is missing" && cat list && return 1; }
  done
  # Debian's zsh does not look there.
  run -1 grep site-functions list
  # Regardless of the builder's umask.
  run -1 grep -vE '^(drwxr-xr-x|-rw-r--r--) root/root .* 2001-09-09|^-rwxr-xr-x root/root .* \./usr/bin/rlock$' list
  mkdir control
  dpkg-deb -e "${deb[0]}" control
  [[ $(<control/conffiles) == /etc/rlock/rlock.toml ]]
  command -v rpmbuild >/dev/null || skip 'the .deb is good; no rpmbuild for the .rpm'
  cpack --config "$BUILD/CPackConfig.cmake" -B "$PWD/packed" -G RPM >log 2>&1 || { cat log && return 1; }
  [[ $(rpm -qp --configfiles packed/*.rpm) == /etc/rlock/rlock.toml ]]
  run -1 grep -vE '^(rpmlib|config)\(' <(rpm -qp --requires packed/*.rpm)
  rpm -qlp packed/*.rpm >list
  ! grep -q '^RLOCK_PARTS' "$BUILD/CMakeCache.txt" || grep -qx /usr/libexec/rlock/redis-server list
  for file in man/man{1/rlock{,-run,-history}.1,5/rlock.toml.5,7/rlock-protocol.7}.gz bash-completion/completions/rlock zsh/site-functions/_rlock fish/vendor_completions.d/rlock.fish; do
    grep -qx "/usr/share/$file" list || { echo "$file is missing" && cat list && return 1; }
  done
  # The prefix is fixed, because the host's settings and the completions are at fixed places.
  [[ -z $(rpm -qp --queryformat '[%{PREFIXES}\n]' packed/*.rpm | grep -v '(none)') ]]
  rpm -qip packed/*.rpm | grep -q 'Build Host *: localhost'
  run -1 grep -qx /usr/bin list
}
