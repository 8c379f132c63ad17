# The real libraries of other languages, behind the line protocol of README.md. Source it after common.
#
#   clients_install LANGUAGE    python, php, node, java, go or rust, or valkey, a server: installs or builds clients/LANGUAGE once,
#                               below the folder of the program; fails with the reason if that is impossible
#   client LIBRARY              sets the array $driver to the program, which takes LIBRARY and addresses
#   language_of LIBRARY

CLIENTS=$TESTS_DIR/interop/clients

# Beside the program, so that the next run finds them, if that folder is writable.
clients_folder() {
  local folder
  folder=$(dirname "$RLOCK")/interop-clients
  mkdir -p "$folder" 2>/dev/null && [[ -w $folder ]] || folder=$BATS_FILE_TMPDIR/interop-clients
  mkdir -p "$folder"
  echo "$folder"
}

language_of() {
  case $1 in
    redis-py | redlock-py | pottery | python-redis-lock | redlock-rb | redlock-net) echo python ;;
    laravel | symfony) echo php ;;
    redlock4 | redlock5 | ioredis-lock | redis-semaphore) echo node ;;
    redsync | bsm-redislock) echo go ;;
    rslock) echo rust ;;
    spring | spring-pubsub | shedlock) echo java ;;
  esac
}

needs() { command -v "$1" >/dev/null || { echo "there is no $1"; return 1; }; }

# The interpreter may be behind a link of tests/lib/common.bash, which ends with the run; the environment stays.
new_environment() { "$(readlink -f "$(command -v python3)")" -m venv "$1"; }

install_python() {
  needs python3 || return
  new_environment "$1" && "$1/bin/pip" install -q --disable-pip-version-check -r "$CLIENTS/python/requirements.txt"
}
install_valkey() {
  needs python3 || return
  new_environment "$1" && "$1/bin/pip" install -q --disable-pip-version-check -r "$CLIENTS/valkey/requirements.txt" || return
  # The package for another architecture may not have it.
  find "$1/lib" -name valkey-server -type f -exec ln -s {} "$1/valkey-server" \; -quit
  chmod +x "$1/valkey-server" && "$1/valkey-server" --version
}
install_php() {
  needs php || return
  # shellcheck disable=SC2016 # PHP
  php -r 'foreach (["Illuminate/Cache", "Illuminate/Redis", "Symfony/Component/Lock"] as $library) {
      if (!extension_loaded("redis") || !stream_resolve_include_path("$library/autoload.php")) exit(1);
    }' || { echo "install php-redis, php-illuminate-cache, php-illuminate-redis and php-symfony-lock"; return 1; }
}
install_node() {
  needs node && needs npm || return
  cp "$CLIENTS/node/package.json" "$1" && npm install --prefix "$1" --no-audit --no-fund --silent
}
install_java() {
  needs mvn && needs javac || return
  mvn -q -B -f "$CLIENTS/java/pom.xml" "-Dtarget=$1" package
}
install_go() {
  needs go || return
  (cd "$CLIENTS/go" && go build -o "$1/driver" .)
}
install_rust() {
  needs cargo || return
  mkdir -p "$1/src" && cp "$CLIENTS/rust/Cargo.toml" "$1" && cp "$CLIENTS/rust/src/main.rs" "$1/src" &&
    cargo build -q --manifest-path "$1/Cargo.toml"
}

# Test files run in parallel, and the sources may have changed.
clients_install() {
  local folder done_for turn log
  folder=$(clients_folder)/$1
  exec {turn}>"$folder.lock"
  flock "$turn"
  done_for=$(find "$CLIENTS/$1" -type f -exec cat {} + | sha1sum)
  if [[ $(cat "$folder/done" 2>/dev/null) != "$done_for" ]]; then
    rm -rf "$folder"
    mkdir -p "$folder"
    log=$("install_$1" "$folder" 2>&1 3>&- {turn}>&-) || {
      echo "not tested: that rlock and the locks of $1 exclude each other: ${log:-it cannot be installed}" | tail -n 20
      return 1
    }
    echo "$done_for" >"$folder/done"
  fi
  exec {turn}>&-
}

client() {
  local folder
  folder=$(clients_folder)
  case $(language_of "$1") in
    python) driver=("$folder/python/bin/python" "$CLIENTS/python/driver.py") ;;
    php) driver=(php "$CLIENTS/php/driver.php") ;;
    node) driver=(env NODE_CLIENTS="$folder/node" node "$CLIENTS/node/driver.js") ;;
    go) driver=("$folder/go/driver") ;;
    rust) driver=("$folder/rust/target/debug/rlock-interop") ;;
    java) driver=(java -XX:+UseSerialGC -Xshare:auto -XX:TieredStopAtLevel=1 -cp "$folder/java/classes:$folder/java/lib/*" Locks) ;;
  esac
}
