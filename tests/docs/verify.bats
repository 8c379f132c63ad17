# What the files of a release were built from (packaging/provenance), and whether packaging/verify notices each way in which
# they can be wrong.

load ../lib/common

COMMIT=0123456789abcdef0123456789abcdef01234567

setup() {
  ROOT=$(cd "$TESTS_DIR/.." && pwd)
  cd "$BATS_TEST_TMPDIR" || return
}

# release_in FOLDER COMMIT: something like dist/, without a signature.
release_in() {
  mkdir "$1"
  echo program >"$1/rlock-7.8.9-linux-amd64.tar.gz"
  echo package >"$1/rlock_7.8.9-1_amd64.deb"
  printf '"referenceLocator": "%s"\n' 'pkg:deb/debian/libfmt-dev@9.1.0%2Bds1-2?arch=amd64' pkg:cargo/aws-lc-sys@0.1.2 \
    >"$1/rlock-7.8.9-linux-amd64.spdx.json"
  sh "$ROOT/packaging/provenance" "$1" 7.8.9 "$2" >"$1/rlock-7.8.9.provenance.json"
  list "$1"
}
list() { (cd "$1" && rm -f SHA256SUMS* && sha256sum -- * >"../sums" && mv ../sums SHA256SUMS); }

# sign FOLDER: as packaging/release does, with the key in ./key.
sign() { minisign -S -s key -m "$1/SHA256SUMS" -t "rlock 7.8.9, commit $COMMIT" >/dev/null; }

# signed_release: in ./dist.
signed_release() {
  command -v minisign >/dev/null || skip 'no minisign'
  needs_tools
  minisign -G -W -s key -p key.pub >/dev/null
  release_in dist "$COMMIT"
  sign dist
}

verify() { sh "$ROOT/packaging/verify" "$@"; }

# refused TEXT ARGUMENT...: verify fails, and says TEXT.
refused() {
  local text=$1
  shift
  run -1 verify --key key.pub "$@"
  [[ $output == *"$text"* && $output != *': good: '* ]] || { echo "it did not say: $text" && return 1; }
}

# What the statement names of this system.
needs_tools() { dpkg-query -W ca-certificates cmake dpkg-dev gzip ninja-build openssl python3-wheel rpm tar xz-utils >/dev/null 2>&1 || skip 'not all tools of a release'; }

@test "the statement has the form of in-toto and SLSA, and is the same when it is written again" {
  needs_tools
  release_in dist "$COMMIT"
  sh "$ROOT/packaging/provenance" dist 7.8.9 "$COMMIT" | cmp - dist/rlock-7.8.9.provenance.json
  python3 - "$COMMIT" "$(sha256sum <dist/rlock_7.8.9-1_amd64.deb | cut -d ' ' -f 1)" <<'END'
import json, re, sys
commit, deb = sys.argv[1:]
said = json.load(open('dist/rlock-7.8.9.provenance.json'))
assert said['_type'] == 'https://in-toto.io/Statement/v1' and said['predicateType'] == 'https://slsa.dev/provenance/v1'
files = {one['name']: one['digest']['sha256'] for one in said['subject']}
assert sorted(files) == ['rlock-7.8.9-linux-amd64.spdx.json', 'rlock-7.8.9-linux-amd64.tar.gz', 'rlock_7.8.9-1_amd64.deb'], files
assert files['rlock_7.8.9-1_amd64.deb'] == deb
build, run = said['predicate']['buildDefinition'], said['predicate']['runDetails']
assert build['externalParameters']['commit'] == commit and build['externalParameters']['version'] == '7.8.9'
for uri in build['buildType'], run['builder']['id']:
    assert re.match('https://[^ ]+$', uri), uri
used = {one['uri']: one.get('digest') for one in build['resolvedDependencies']}
assert len(used) == len(build['resolvedDependencies'])
assert all(re.match(r'(git\+https|pkg:(deb|pypi|cargo|generic))[:/][^ +]+$', uri) or uri.startswith('git+https://') for uri in used), used
assert [one for one in used.values() if one][0] == {'gitCommit': commit}
for fetched in 'pkg:pypi/ziglang@[0-9.]+$', 'pkg:cargo/aws-lc-sys@0.1.2$':
    assert any(re.match(fetched, uri) and len(digest['sha256']) == 64 for uri, digest in used.items() if digest), fetched
assert 'pkg:deb/debian/libfmt-dev@9.1.0%2Bds1-2?arch=amd64' in used
for tool in 'cmake', 'ca-certificates', 'python3-wheel':
    assert any(uri.startswith(f'pkg:deb/debian/{tool}@') for uri in used), tool
END
}

@test "no statement is written that would be incomplete, or no JSON" {
  needs_tools
  release_in dist "$COMMIT"
  # incomplete TEXT
  incomplete() {
    run -1 sh "$ROOT/packaging/provenance" dist 7.8.9 "$COMMIT"
    [[ $output == *"$1"* && $output != *_type* ]]
  }
  mkdir dist/folder
  incomplete 'dist/folder is not a file'
  rmdir dist/folder
  touch 'dist/a"b'
  incomplete 'an odd name: a"b'
  rm 'dist/a"b'
  mkdir -p bin
  ln -s "$(type -P false)" bin/dpkg-query
  PATH=$PWD/bin:$PATH incomplete 'not from packages of Debian'
  : >dist/rlock-7.8.9-linux-amd64.spdx.json
  incomplete 'name no libraries'
  rm dist/rlock-7.8.9-linux-amd64.spdx.json
  incomplete 'has no list'
}

@test "verify accepts the files of a release, a whole folder, a key in a file or on the command line, and odd names, but no line break" {
  signed_release
  run -0 verify --key key.pub dist/rlock*
  [[ ${#lines[@]} == 4 && ${lines[0]} == "dist/rlock-7.8.9-linux-amd64.spdx.json: good: rlock 7.8.9, commit $COMMIT" ]]
  cd dist
  run -0 verify --key "$(tail -n 1 ../key.pub)" rlock_7.8.9-1_amd64.deb
  # By hand, as docs/security.md says.
  run -0 minisign -Vm SHA256SUMS -P "$(tail -n 1 ../key.pub)"
  rm rlock-7.8.9-linux-amd64.tar.gz
  run -0 sha256sum -c --ignore-missing SHA256SUMS
  cd ..
  run -0 verify dist/* --key key.pub
  [[ ${#lines[@]} == 5 && $output == *'dist/SHA256SUMS: passed over'*'dist/SHA256SUMS.minisig: passed over'* ]]
  cp -R dist other
  mv other/rlock_7.8.9-1_amd64.deb other/--key
  sh "$ROOT/packaging/provenance" other 7.8.9 "$COMMIT" >other/rlock-7.8.9.provenance.json
  list other
  sign other
  cd other
  run -0 verify --key ../key.pub -- --key
  [[ $output == './--key: good: '* ]]
  tells 1 'give a key after --key' verify rlock* --key
  # A line break would hide which file it has read.
  cd ..
  cp dist/rlock_7.8.9-1_amd64.deb dist/$'rlock_7.8.9-1_amd64.deb\n'
  refused 'a name has a line break' dist/$'rlock_7.8.9-1_amd64.deb\n'
}

@test "verify refuses a signature that is missing or from another key, files that are not those that were signed, and such statements" {
  signed_release
  minisign -G -W -s other -p other.pub >/dev/null
  refused 'signature of dist/SHA256SUMS is not good' --key other.pub dist/rlock_7.8.9-1_amd64.deb
  refused 'there is no key none.pub' --key none.pub dist/rlock_7.8.9-1_amd64.deb
  rm dist/SHA256SUMS.minisig
  refused 'dist/SHA256SUMS.minisig is missing' dist/rlock_7.8.9-1_amd64.deb
  refused 'which files?'
  # A file that was changed, is not listed or is missing, and a changed list.
  sign dist
  echo more >>dist/rlock_7.8.9-1_amd64.deb
  refused 'dist/rlock_7.8.9-1_amd64.deb is not the file that was signed' dist/rlock_7.8.9-1_amd64.deb
  # The others are as they were.
  run -0 verify --key key.pub dist/rlock-7.8.9-linux-amd64.tar.gz
  echo new >dist/rlock_7.8.9-2_amd64.deb
  refused 'does not list rlock_7.8.9-2_amd64.deb' dist/rlock_7.8.9-2_amd64.deb
  refused 'dist/none is missing' dist/none
  (cd dist && sha256sum rlock_7.8.9-2_amd64.deb >>SHA256SUMS)
  refused 'signature of dist/SHA256SUMS is not good' dist/rlock_7.8.9-2_amd64.deb
  # A statement that is missing, changed, of other files or of another commit.
  rm -r dist
  release_in dist "$COMMIT"
  sign dist
  local deb=dist/rlock_7.8.9-1_amd64.deb statement=dist/rlock-7.8.9.provenance.json
  mv "$statement" kept
  refused "$statement is missing" "$deb"
  sed "s/$COMMIT/${COMMIT//0/f}/g" kept >"$statement"
  refused "$statement is not the file that was signed" "$deb"
  # Signed by mistake.
  list dist
  sign dist
  refused "is about commit ${COMMIT//0/f}" "$deb"
  grep -v rlock_7.8.9-1 kept >"$statement"
  list dist
  sign dist
  refused "does not name rlock_7.8.9-1_amd64.deb" "$deb"
  rm "$statement"
  list dist
  sign dist
  refused 'lists no statement' "$deb"
}
