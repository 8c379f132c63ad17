# The wheel, the npm packages and the image, as packaging/wheel, packaging/npm and packaging/image make them from an
# archive: installed without a network, and used. packaging/try-image runs that of a release in containers.

load ../lib/server

setup_file() {
  redis_start srv
  RELEASE=$BATS_FILE_TMPDIR/release
  export RELEASE
  [[ ! -d $(dirname "$RLOCK")/completions ]] || make_archive
}
setup() {
  ROOT=$(cd "$TESTS_DIR/.." && pwd)
  [[ -d $RELEASE ]] || skip 'the program under test was not built here'
  use_server srv
}

# make_archive: an archive like that of packaging/release in $RELEASE, of version 7.8.9~preview.
# $BATS_FILE_TMPDIR/rlock is a copy of the program in it.
make_archive() {
  local built name root=$TESTS_DIR/.. tree section
  built=$(dirname "$RLOCK")
  name=rlock-7.8.9~preview-linux-$(dpkg --print-architecture)
  tree=$BATS_FILE_TMPDIR/tree/$name
  mkdir -p "$RELEASE" "$tree"/bin "$tree"/share/{doc/rlock,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
  strip -o "$tree/bin/rlock" "$RLOCK"
  cp "$tree/bin/rlock" "$BATS_FILE_TMPDIR/"
  install -D "$(type -P "$REDIS_SERVER")" "$tree/libexec/rlock/redis-server"
  cp "$root/LICENSE" "$tree/share/doc/rlock/"
  echo 'notices' >"$tree/share/doc/rlock/THIRD-PARTY.txt"
  for section in 1 5 7; do install -m 644 -D -t "$tree/share/man/man$section" "$root"/man/*."$section"; done
  cp "$built/completions/rlock" "$tree/share/bash-completion/completions/"
  cp "$built/completions/_rlock" "$tree/share/zsh/site-functions/"
  cp "$built/completions/rlock.fish" "$tree/share/fish/vendor_completions.d/"
  eval "$(sed -n '/^archive() {/,/^}/p' "$root/packaging/release")"
  SOURCE_DATE_EPOCH=1000000000 archive "$RELEASE/$name.tar.gz" "$BATS_FILE_TMPDIR/tree" "$name"
}

# made_twice SCRIPT: packs the archive with it into one/, and again as somebody else. Both have the same bytes.
made_twice() {
  mkdir one two
  echo 'raise SystemExit("imported from the current folder")' | tee wheel.py >zipfile.py
  sh "$ROOT/packaging/$1" "$RELEASE" 7.8.9~preview one
  (umask 077 && TZ=Asia/Tokyo LC_ALL=C SOURCE_DATE_EPOCH=1 sh "$ROOT/packaging/$1" "$RELEASE" 7.8.9~preview two)
  diff -r one two
}

# becomes PROGRAM COMMAND...: the command passes on the status of a job, and becomes the program, so that nothing of a job
# is left if the command is killed.
becomes() {
  local program=$1
  shift
  run -7 "$@" run job -- sh -c 'exit 7'
  "$@" run job -- sh -c 'echo "$$" >command; exec sleep 1000' 3>&- &
  wait_until test -s command
  [[ $(readlink "/proc/$!/exe") == "$(realpath "$program")" ]]
  kill -9 "$!"
  wait_until gone "$(<command)"
  rm command
  wait_until eval '[[ $(redis srv exists job) == 0 ]]'
  # local: works without another server.
  [[ $(PATH='' "$program" --url "local:$PWD/l" local status) == *", $(realpath "$(dirname "$program")/..")/libexec/rlock/redis-server"* ]]
}

@test "a wheel: pip installs the program, man pages, completions and licences" {
  /usr/bin/python3 -m wheel version >/dev/null 2>&1 || skip 'no python3-wheel'
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || skip 'no python3-venv'
  made_twice wheel
  [[ $(echo one/*) == "one/rlock_cli-7.8.9.dev0-py3-none-manylinux2014_$(uname -m).musllinux_1_1_$(uname -m).whl" ]]
  /usr/bin/python3 -m venv venv
  export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INDEX=1 PIP_QUIET=1
  venv/bin/pip install one/*.whl
  for file in share/{man/man1/rlock-run.1,man/man5/rlock.toml.5,bash-completion/completions/rlock} \
    lib/python3*/site-packages/rlock_cli-7.8.9.dev0.dist-info/licenses/{LICENSE,THIRD-PARTY.txt}; do
    [[ -s $(echo venv/$file) ]] || { echo "$file is missing" && return 1; }
  done
  becomes venv/bin/rlock venv/bin/rlock
  venv/bin/pip uninstall -y rlock-cli
  [[ -z $(find venv -name '*rlock*') ]]
  # pip chooses as on Alpine.
  venv/bin/pip install --only-binary :all: --platform "musllinux_1_1_$(uname -m)" --target alpine one/*.whl
  cmp alpine/bin/rlock "$BATS_FILE_TMPDIR/rlock"
  [[ -x alpine/libexec/rlock/redis-server ]]
}

@test "npm packages: the command becomes the program, wherever npm and others put it" {
  command -v npm >/dev/null || skip 'no npm'
  made_twice npm
  export HOME=$PWD/home npm_config_offline=true npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
  npm install --silent --prefix project "$PWD"/one/*.tgz
  becomes project/node_modules/rlock-cli-linux-*/bin/rlock project/node_modules/.bin/rlock
  [[ $(npm exec --prefix project -- rlock --version) == "$(rlock --version)" ]]
  # Job control works as without npm.
  RLOCK=$PWD/project/node_modules/.bin/rlock SOCKET=$srv_sock FOLDER=$PWD \
    timeout -k 1 45 /usr/bin/python3 "$TESTS_DIR/lib/session.py" ctrl_z_fg

  npm install --silent --global --prefix global "$PWD"/one/*.tgz
  becomes global/lib/node_modules/rlock-cli-linux-*/bin/rlock global/bin/rlock
  [[ -s global/share/man/man1/rlock-run.1 && -s global/share/man/man5/rlock.toml.5 ]]

  # The program's package is further up, and then missing.
  mkdir -p project/node_modules/other/node_modules
  mv project/node_modules/rlock-cli project/node_modules/other/node_modules/
  becomes project/node_modules/rlock-cli-linux-*/bin/rlock project/node_modules/other/node_modules/rlock-cli/bin/rlock
  rm -r project/node_modules/rlock-cli-linux-*
  tells 127 'install rlock-cli again' project/node_modules/other/node_modules/rlock-cli/bin/rlock --version
}

@test "the image: what is in it" {
  command -v openssl >/dev/null && [[ -d /usr/share/ca-certificates/mozilla ]] || skip 'no openssl or ca-certificates'
  made_twice image
  mkdir layout
  tar -C layout -xf one/rlock-7.8.9~preview-image.tar
  /usr/bin/python3 - layout "$BATS_FILE_TMPDIR/rlock" <<'END'
import gzip, hashlib, io, json, sys, tarfile
layout, program = sys.argv[1:]
def read(name):
    with open(f'{layout}/{name}', 'rb') as file:
        return file.read()
def blob(descriptor):
    data = read('blobs/' + descriptor['digest'].replace(':', '/'))
    assert len(data) == descriptor['size'] and descriptor['digest'] == 'sha256:' + hashlib.sha256(data).hexdigest()
    return data
top, = json.loads(read('index.json'))['manifests']
assert top['annotations']['org.opencontainers.image.ref.name'] == '7.8.9-preview'
one, = json.loads(blob(top))['manifests']
manifest = json.loads(blob(one))
config = json.loads(blob(manifest['config']))
assert one['platform'] == {'architecture': config['architecture'], 'os': config['os']}
assert config['config']['Entrypoint'] == ['/usr/bin/rlock'] and config['config']['User'] == '65532:65532'
layer = gzip.decompress(blob(manifest['layers'][0]))
assert config['rootfs']['diff_ids'] == ['sha256:' + hashlib.sha256(layer).hexdigest()]
files = tarfile.open(fileobj=io.BytesIO(layer))
assert files.extractfile('usr/bin/rlock').read() == open(program, 'rb').read()
for name in 'etc/ssl/certs/ca-certificates.crt', 'usr/share/doc/rlock/LICENSE', 'usr/share/doc/rlock/THIRD-PARTY.txt':
    assert files.getmember(name).size > 0
*others, home = files.getmembers()
assert (home.name, home.uid, home.gid, home.mode) == ('home/rlock', 65532, 65532, 0o700)
assert all(file.uid == file.gid == 0 for file in others) and all(file.mtime == 1000000000 for file in files)
programs = 'usr/bin/rlock', 'usr/libexec/rlock/redis-server'
assert all(file.mode == (0o755 if file.isdir() or file.name in programs else 0o644) for file in others if not file.issym())
# For docker load.
old, = json.loads(read('manifest.json'))
assert json.loads(read(old['Config'])) == config and old['Layers'] == ['blobs/' + manifest['layers'][0]['digest'].replace(':', '/')]
END
}
