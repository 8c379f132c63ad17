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

@test "the scripts of packaging/ have no errors" {
  command -v shellcheck >/dev/null || skip 'no shellcheck'
  cd "$ROOT"
  shellcheck -x -S warning packaging/*.sh packaging/asdf/bin/* \
    packaging/{debian-source,image,linked,musl,npm,provenance,recipes,release,verify,wheel} packaging/try-* \
    packaging/alpine/APKBUILD packaging/arch/PKGBUILD
}

@test "every script of packaging/ explains itself with --help, or needs an argument" {
  cd "$ROOT"
  local script
  for script in debian-source image musl npm provenance recipes release verify wheel \
    try-arm64 try-image try-install try-musl try-on try-package try-recipes try-source; do
    run -0 sh "packaging/$script" --help
    [[ $output == *"packaging/$script"* && $output != *'set -eu'* ]]
  done
  run -1 sh packaging/linked
  [[ $output == *'give the folder of a build'* ]]
}

@test "the example configuration file is accepted and changes nothing" {
  # A copy, because rlock refuses a file that a group may write to, as in a clone with umask 002.
  install -m 644 "$ROOT/packaging/rlock.toml" example.toml
  # -v reports where each setting comes from at the right time; nobody listens there.
  export RLOCK_URL=unix://$PWD/none
  local file
  for file in "$PWD/example.toml" /dev/null; do
    run -69 --separate-stderr rlock --config "$file" run -v x -- true
    echo "${stderr//"$file"/FILE}" | sed -E 's/^(rlock: )[^ ]+Z /\1/' >"said.${file##*/}"
  done
  grep -q 'config: FILE' said.null
  diff said.example.toml said.null
  unset RLOCK_URL
  # Only comments and empty lines.
  run -1 grep -nvE '^(#.*)?$' "$ROOT/packaging/rlock.toml"
}

@test "each line of the example is accepted when it is uncommented" {
  sed -nE 's/^# ([a-z-]+ = .*|\[profile\..*)/\1/p' "$ROOT/packaging/rlock.toml" >all.toml
  (($(wc -l <all.toml) >= 7))
  chmod 600 all.toml
  # The configuration is read completely, and then the first missing thing is the password file.
  run -78 --separate-stderr rlock --config all.toml run x -- true
  assert_says /etc/rlock/password
  sed -i '/^password-file\|^tls-ca/d' all.toml
  # At the end of the file, in the profile.
  echo 'no-such-setting = 1' >>all.toml
  run -78 --separate-stderr rlock --config all.toml run x -- true
  assert_says no-such-setting
}

@test "the version is that of the newest section in the changelog, or above it if that is not released; no recipe has it" {
  local version newest
  version=$(sed -nE 's/^project\(rlock VERSION ([0-9.]+).*/\1/p' "$ROOT/CMakeLists.txt")
  [[ -n $version ]]
  newest=$(sed -nE 's/^## \[([0-9][0-9.]*)\].*/\1/p' "$ROOT/CHANGELOG.md" | head -n 1)
  if [[ $newest != "$version" ]]; then
    grep -qx '## \[Unreleased\]' "$ROOT/CHANGELOG.md"
    [[ $(printf '%s\n' "$newest" "$version" | sort -V | tail -n 1) == "$version" ]]
  fi
  # Nowhere else, because packaging/release writes it.
  run -1 grep -rnF "$version" "$ROOT/packaging"
}

# write_recipes FOLDER ARCHITECTURE...: the recipes for such archives.
write_recipes() {
  local folder=$1 architecture
  shift
  mkdir "$folder"
  echo source >"$folder/rlock-7.8.9~preview.tar.gz"
  for architecture; do echo "$architecture" >"$folder/rlock-7.8.9~preview-linux-$architecture.tar.gz"; done
  sh "$ROOT/packaging/recipes" "$folder" 7.8.9~preview
}

@test "recipes have the syntax of their tools, and name the archives next to them, with their checksums" {
  local folder recipe archive
  write_recipes one amd64
  write_recipes both amd64 arm64
  for folder in one both; do
    bash -n "$folder/PKGBUILD"
    sh -n "$folder/APKBUILD"
    if command -v ruby >/dev/null; then ruby -c "$folder/rlock.rb"; fi
    # Each placeholder is replaced.
    run -1 grep -nE '@[A-Z0-9_ ]+@' "$folder"/{PKGBUILD,APKBUILD,rlock.rb}
    grep -qx '  version "7.8.9"' "$folder/rlock.rb"
    for archive in "$folder"/rlock-*-linux-*.tar.gz; do
      grep -qF "/${archive##*/}\"" "$folder/rlock.rb"
      grep -qF "\"$(sha256sum <"$archive" | cut -d ' ' -f 1)\"" "$folder/rlock.rb"
    done
    (
      cd "$folder"
      . ./PKGBUILD
      sha256sum -c <<<"${sha256sums[0]}  ${source[0]}"
    )
  done
  # apk CARCH FOLDER: abuild's view: architectures, archive, and whether the checksum is right.
  apk() { (cd "$2" && CARCH=$1 srcdir=src sh -euc '. ./APKBUILD; echo "$arch: $source $builddir"; echo "$sha512sums" | sha512sum -c >&2'); }
  [[ $(apk x86_64 one) == 'x86_64: rlock-7.8.9~preview-linux-amd64.tar.gz src/rlock-7.8.9~preview-linux-amd64' ]]
  [[ $(apk x86_64 both) == 'x86_64 aarch64: rlock-7.8.9~preview-linux-amd64.tar.gz src/rlock-7.8.9~preview-linux-amd64' ]]
  [[ $(apk aarch64 both) == 'x86_64 aarch64: rlock-7.8.9~preview-linux-arm64.tar.gz src/rlock-7.8.9~preview-linux-arm64' ]]
  # It does not mention the other processor if there is no program for it.
  run -1 grep -niE 'arm|aarch' one/{APKBUILD,rlock.rb}
  [[ $(grep -cE '^  (on_arm do|end)$' both/rlock.rb) == 5 && $(grep -cE '^  (on_intel do|end)$' one/rlock.rb) == 4 ]]
  run -1 grep -n 'depends_on arch' both/rlock.rb
}

@test "an archive of a release: tar leaves folders and links where it is unpacked as they are" {
  local tar
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

@test "the recipes for mise and aqua have the syntax of their tools, and name the archives and checksums" {
  /usr/bin/python3 -c 'import tomllib, yaml' || skip 'no tomllib or yaml'
  local folder
  write_recipes one amd64
  write_recipes both amd64 arm64
  for folder in one both; do
    run -1 grep -nE '@[A-Z0-9_ ]+@' "$folder"/{mise.toml,aqua-registry.yaml}
    /usr/bin/python3 - "$folder" <<'END'
import glob, hashlib, sys, tomllib, yaml
folder = sys.argv[1]
archives = {name.split('-')[-1].split('.')[0]: name for name in glob.glob(folder + '/rlock-*-linux-*.tar.gz')}
tool = tomllib.load(open(folder + '/mise.toml', 'rb'))['tools']['http:rlock']
assert tool['version'] == '7.8.9' and tool['bin_path'] == 'bin'
where = {'amd64': 'linux-x64', 'arm64': 'linux-arm64'}
assert set(tool['platforms']) == {where[one] for one in archives}, tool
for architecture, name in archives.items():
    platform = tool['platforms'][where[architecture]]
    assert platform['url'].endswith('/releases/download/v7.8.9/' + name.split('/')[-1]), platform
    assert platform['checksum'] == 'sha256:' + hashlib.sha256(open(name, 'rb').read()).hexdigest()
[package] = yaml.safe_load(open(folder + '/aqua-registry.yaml'))['packages']
assert package['supported_envs'] == ['linux/' + one for one in sorted(archives)]
assert package['url'].rsplit('/', 1)[0] + '/SHA256SUMS' == package['checksum']['url']
END
  done
}

# asdf COMMAND: runs a program of the plugin in ./asdf-rlock as asdf does, with the releases in ./releases.
asdf() {
  mkdir -p downloaded
  ASDF_RLOCK_DOWNLOADS=file://$PWD/releases ASDF_RLOCK_SOURCE=$PWD/source ASDF_INSTALL_TYPE=version \
    ASDF_INSTALL_VERSION=7.8.9 ASDF_DOWNLOAD_PATH=$PWD/downloaded ASDF_INSTALL_PATH=$PWD/installed "asdf-rlock/bin/$1"
}

@test "the plugin for asdf lists the tagged versions, and installs the archive with the right checksum only" {
  command -v curl >/dev/null || skip 'no curl'
  [[ $(uname -m) == x86_64 ]] || skip 'the archive of this test is for x86-64'
  write_recipes dist amd64
  tar -xzf dist/asdf-rlock.tar.gz
  git init -q source
  git -C source -c user.name=x -c user.email=x commit -q --allow-empty -m x
  for tag in v7.8.9 v7.8.10 v0.9.0 other; do git -C source tag "$tag"; done
  [[ $(asdf list-all) == '0.9.0 7.8.9 7.8.10' ]]
  local release=releases/v7.8.9 name=rlock-7.8.9-linux-amd64
  mkdir -p "$release" "$name/bin" "$name/share/man"
  echo program >"$name/bin/rlock"
  tar -czf "$release/$name.tar.gz" "$name"
  (cd "$release" && sha256sum -- *.tar.gz >SHA256SUMS)
  asdf download
  asdf install
  [[ $(<installed/bin/rlock) == program && -d installed/share/man && ! -e downloaded/SHA256SUMS ]]
  rm -r downloaded
  echo more >>"$release/$name.tar.gz"
  run -1 asdf download
  [[ $output == *'does not have the checksum'* && ! -e downloaded/bin ]]
  # It is not listed.
  : >"$release/SHA256SUMS"
  run -1 asdf download
  [[ $output == *'does not have the checksum'* && ! -e downloaded/bin ]]
}

@test "the Debian source package has the version and the addresses, and is the same when it is created again" {
  command -v dpkg-source >/dev/null || skip 'no dpkg-dev'
  [[ -e $ROOT/.git ]] || skip 'not a clone'
  local folder
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

@test "the recipe for Alpine packs the program and the settings" {
  local name=rlock-7.8.9-linux-amd64
  mkdir -p dist src "$name/bin" "$name/share/doc/rlock/examples"
  echo program >"$name/bin/rlock"
  cp "$ROOT/packaging/rlock.toml" "$name/share/doc/rlock/examples/"
  tar -czf "dist/$name.tar.gz" "$name"
  echo source >dist/rlock-7.8.9.tar.gz
  sh "$ROOT/packaging/recipes" dist 7.8.9
  # What abuild does, as far as this recipe needs it.
  CARCH=x86_64 srcdir=$PWD/src pkgdir=$PWD/pkg sh -euc '
    . dist/APKBUILD
    tar -xzf "dist/$source" -C "$srcdir"
    cd "$builddir"
    build
    package'
  [[ $(<pkg/usr/bin/rlock) == program ]]
  cmp pkg/etc/rlock/rlock.toml "$ROOT/packaging/rlock.toml"
}

@test "the recipe for Homebrew takes the completions from where the install rules put them" {
  local shell file
  for shell in bash zsh fish; do
    file=$(sed -n "s/^ *${shell}_completion\.install \"share\/\(.*\)\"$/\1/p" "$ROOT/packaging/homebrew/rlock.rb")
    grep -qE "^  add_completion\($shell .* ${file##*/} ${file%/*}\)$" "$ROOT/CMakeLists.txt"
  done
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

@test "the static program needs no library, and its parts are known, with licences" {
  needs_static_build
  LC_ALL=C readelf -W -l -d "$RLOCK" >elf
  run -1 grep -E 'INTERP|NEEDED' elf
  [[ -s $BUILD/build.ninja ]] && command -v dpkg-query >/dev/null || skip 'no build by Ninja on Debian'
  sh "$ROOT/packaging/linked" "$BUILD" >linked
  local source
  for source in c-ares cli11 fmtlib '(glibc|musl)' hiredis nlohmann-json3 openssl spdlog; do
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
    assert part['externalRefs'][0]['referenceLocator'].startswith(('pkg:deb/', 'pkg:generic/'))
    assert part['licenseDeclared'] and part['versionInfo']
END
}

@test "a program with the libraries of packaging/musl does not contain its builder's folders" {
  local parts
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
  local line
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

@test "a build shows its progress on a terminal, and is silent elsewhere" {
  small_project
  run -0 sh script
  [[ $output == "went on" && ! -e b.log ]]
  rm -r b
  run -0 script -qec 'sh script' /dev/null
  [[ $output == *'[1/3] '*$'\r[3/3] '*$'\r'*"went on"* ]]
}

@test "a build that fails shows why and keeps its output, and the script stops" {
  small_project
  run -1 sh script -DBAD=2
  [[ $output == *FAILED*'b.log has the whole output'* && $output != *"went on"* && -s b.log ]]
  run -1 script -qec 'sh script -DBAD=2' /dev/null
  [[ $output == *'b.log has the whole output'* && $output != *"went on"* ]]
  echo nonsense >CMakeLists.txt
  run -1 sh script
  [[ $output == *'Parse error'*'b.log has the whole output'* && $output != *"went on"* ]]
}

@test "a library with an unknown licence is reported" {
  needs_static_build
  [[ -s $BUILD/build.ninja ]] && command -v dpkg-query >/dev/null || skip 'no build by Ninja on Debian'
  sed 's/fmtlib | //' "$ROOT/packaging/linked" >linked
  run -1 sh linked "$BUILD"
  assert_says 'unknown licence of fmtlib'
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
  [[ -z $(dpkg-deb -f "${deb[0]}" Depends Pre-Depends Recommends) ]]
  # Packages with a program redis-server, which a local: address starts.
  [[ $(dpkg-deb -f "${deb[0]}" Suggests) == 'redis-server | valkey-redis-compat' ]]
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
  for file in man/man{1/rlock{,-run,-history}.1,5/rlock.toml.5,7/rlock-protocol.7}.gz bash-completion/completions/rlock zsh/site-functions/_rlock fish/vendor_completions.d/rlock.fish; do
    grep -qx "/usr/share/$file" list || { echo "$file is missing" && cat list && return 1; }
  done
  # The prefix is fixed, because the host's settings and the completions are at fixed places.
  [[ -z $(rpm -qp --queryformat '[%{PREFIXES}\n]' packed/*.rpm | grep -v '(none)') ]]
  rpm -qip packed/*.rpm | grep -q 'Build Host *: localhost'
  run -1 grep -qx /usr/bin list
}
