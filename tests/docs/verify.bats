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
  echo '"referenceLocator": "pkg:deb/debian/libfmt-dev@9.1.0%2Bds1-2?arch=amd64"' >"$1/rlock-7.8.9-linux-amd64.spdx.json"
  sh "$ROOT/packaging/provenance" "$1" 7.8.9 "$2" >"$1/rlock-7.8.9.provenance.json"
  list "$1"
}
list() { (cd "$1" && rm -f SHA256SUMS* && sha256sum -- * >"../sums" && mv ../sums SHA256SUMS); }

# sign FOLDER: as packaging/release does, with the key in ./key.
sign() { minisign -S -s key -m "$1/SHA256SUMS" -t "rlock 7.8.9, commit $COMMIT" >/dev/null; }

# signed_release: in ./dist.
signed_release() {
  command -v minisign >/dev/null || skip 'no minisign'
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

@test "the statement has the form of in-toto and SLSA, and is the same when it is written again" {
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
assert all(re.match(r'(git\+https|pkg:(deb|pypi|generic))[:/][^ +]+$', uri) or uri.startswith('git+https://') for uri in used), used
assert [one for one in used.values() if one][0] == {'gitCommit': commit}
assert any(re.match('pkg:pypi/ziglang@[0-9.]+$', uri) and len(digest['sha256']) == 64 for uri, digest in used.items() if digest)
assert 'pkg:deb/debian/libfmt-dev@9.1.0%2Bds1-2?arch=amd64' in used
assert any(uri.startswith('pkg:deb/debian/cmake@') for uri in used)
END
}

@test "verify accepts the files of a release, with the key in a file or on the command line" {
  signed_release
  run -0 verify --key key.pub dist/rlock*
  [[ ${#lines[@]} == 4 && ${lines[0]} == "dist/rlock-7.8.9-linux-amd64.spdx.json: good: rlock 7.8.9, commit $COMMIT" ]]
  cd dist
  run -0 verify --key "$(tail -n 1 ../key.pub)" rlock_7.8.9-1_amd64.deb
  # By hand, as docs/security.md says.
  run -0 minisign -Vm SHA256SUMS -P "$(tail -n 1 ../key.pub)"
  rm rlock-7.8.9-linux-amd64.tar.gz
  run -0 sha256sum -c --ignore-missing SHA256SUMS
}

@test "verify refuses a release whose signature is missing, or from another key" {
  signed_release
  minisign -G -W -s other -p other.pub >/dev/null
  refused 'signature of dist/SHA256SUMS is not good' --key other.pub dist/rlock_7.8.9-1_amd64.deb
  refused 'there is no key none.pub' --key none.pub dist/rlock_7.8.9-1_amd64.deb
  rm dist/SHA256SUMS.minisig
  refused 'dist/SHA256SUMS.minisig is missing' dist/rlock_7.8.9-1_amd64.deb
  refused 'which files?'
}

@test "verify refuses a file that was changed, is not listed or is missing, and a changed list" {
  signed_release
  echo more >>dist/rlock_7.8.9-1_amd64.deb
  refused 'dist/rlock_7.8.9-1_amd64.deb is not the file that was signed' dist/rlock_7.8.9-1_amd64.deb
  # The others are as they were.
  run -0 verify --key key.pub dist/rlock-7.8.9-linux-amd64.tar.gz
  echo new >dist/rlock_7.8.9-2_amd64.deb
  refused 'does not list rlock_7.8.9-2_amd64.deb' dist/rlock_7.8.9-2_amd64.deb
  refused 'dist/none is missing' dist/none
  (cd dist && sha256sum rlock_7.8.9-2_amd64.deb >>SHA256SUMS)
  refused 'signature of dist/SHA256SUMS is not good' dist/rlock_7.8.9-2_amd64.deb
}

@test "verify refuses a statement that is missing, changed, of other files or of another commit" {
  signed_release
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
