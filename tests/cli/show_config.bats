# rlock config: each setting, its value and where it comes from; no secret, and no server.

load ../lib/common

setup() {
  export XDG_CONFIG_HOME=$BATS_TEST_TMPDIR/config
  mkdir -p "$XDG_CONFIG_HOME/rlock"
  USER_FILE=$XDG_CONFIG_HOME/rlock/rlock.toml
  cd "$BATS_TEST_TMPDIR" || return
  umask 077
}

# shown SETTING OPTION...: its line, with single spaces.
shown() {
  local setting=$1
  shift
  rlock config "$@" | tr -s ' ' | sed -n "s/^$setting //p"
}

@test "each setting, with its default, and no server is asked" {
  run -0 --separate-stderr rlock config
  [[ -z $stderr && $(grep -c ' default$' <<<"$output") == "${#lines[@]}" ]]
  [[ $(shown url) == 'redis://127.0.0.1:6379 default' ]]
  [[ $(shown server-timeout) == '5s default' && $(shown lease) == '30s default' && $(shown leftovers) == 'kill default' ]]
  [[ $(shown conflict-exit-code) == '75 default' && $(shown wait) == 'without limit default' ]]
  [[ $(shown quiet) == 'false default' && $(shown on-lost) == '- default' && $(shown config) == '- default' ]]
  # All settings of a configuration file.
  sed -n 's/^The settings are \(.*\)\.$/\1/p' "$TESTS_DIR/../man/rlock.toml.5" | sed 's/ and /, /; s/, /\n/g' | sort >known
  (($(wc -l <known) >= 30))
  diff known <(cut -d' ' -f1 <<<"$output" | grep -vxE 'password|config' | sort)
}

@test "where a setting comes from: option, variable, file; the highest precedence counts" {
  printf '%s\n' 'lease = "41s"' 'server-timeout = "2s"' >"$USER_FILE"
  [[ $(shown lease) == "41s $USER_FILE:1: lease" && $(shown wait) == 'without limit default' ]]
  [[ $(shown config) == "$USER_FILE default" ]]
  [[ $(RLOCK_LEASE=43s shown lease) == '43s RLOCK_LEASE' ]]
  [[ $(shown server-timeout) == "2s $USER_FILE:2: server-timeout" && $(shown server-timeout --server-timeout 3s) == '3s --server-timeout' ]]
  cp "$USER_FILE" other.toml
  [[ $(shown config --config other.toml) == 'other.toml --config' ]]
  [[ $(RLOCK_CONFIG=other.toml shown server-timeout) == '2s other.toml:2: server-timeout' ]]
}

@test "neither passwords nor texts that may contain one are shown" {
  local secret=K9nope3secret
  printf '%s\n' "url = \"redis://me:$secret@h\"" "on-acquire = \"curl $secret\"" "password-command = \"echo $secret\"" \
    "on-lost = \"$secret\"" >"$USER_FILE"
  RLOCK_PASSWORD=$secret REDISCLI_AUTH=$secret RLOCK_SENTINEL_PASSWORD=$secret RLOCK_ON_RELEASE="x $secret" \
    run -0 rlock config -v
  [[ $output != *"$secret"* && $output == *'redis://me@h:6379'* ]]
  [[ $(shown password) == "(not shown) $USER_FILE:3: password-command" ]]
  [[ $(shown on-acquire) == "(not shown) $USER_FILE:2: on-acquire" ]]
  echo "url = \"redis://me:$secret@h\"" >"$USER_FILE"
  [[ $(shown password) == "(not shown) $USER_FILE:1: url" ]]
  [[ $(REDISCLI_AUTH=x shown password) == '(not shown) REDISCLI_AUTH' ]]
  [[ $(RLOCK_PASSWORD=x REDISCLI_AUTH=x shown password) == '(not shown) RLOCK_PASSWORD' ]]
  [[ $(RLOCK_PASSWORD=x shown password --password-file f) == '(not shown) --password-file' ]]
  [[ $(RLOCK_SENTINEL_PASSWORD=x shown sentinel-password) == '(not shown) RLOCK_SENTINEL_PASSWORD' ]]
  run -0 --separate-stderr rlock config --url "redis://:$secret@a" --url redis://b --url redis://c
  [[ $output != *"$secret"* && $output == *'redis://a:6379 redis://b:6379 redis://c:6379'* ]]
}

@test "where a setting comes from does not depend on the file's name" {
  for file in RLOCK_my.toml --lease 'a: b.toml'; do
    printf '%s\n' 'lease = "41s"' "password-file = \"$PWD/pass\"" >"./$file"
    [[ $(shown lease "--config=$file") == "41s $file:1: lease" ]]
    [[ $(shown password "--config=$file") == "(not shown) $file:2: password-file" ]]
    [[ $(shown config "--config=$file") == "$file --config" && $(shown url "--config=$file") == *' default' ]]
  done
}

@test "errors are reported as by the subcommand concerned" {
  RLOCK_LEASE=10x tells 78 "RLOCK_LEASE: '10x'" rlock config
  [[ -z $output ]]
  echo 'max-queue = -1' >"$USER_FILE"
  tells 78 "$USER_FILE:1: max-queue" rlock config
  echo 'lesae = "3s"' >"$USER_FILE"
  tells 78 'did you mean lease?' rlock config
  rm "$USER_FILE"
  RLOCK_URL=nowhere tells 78 'RLOCK_URL: bad address' rlock config
  run -64 --separate-stderr rlock config --url nowhere
  tells 64 "unexpected argument 'lease'" rlock config lease
  run -71 sh -c '"$0" config >/dev/full' "$RLOCK"
}

@test "a value that a terminal could interpret is escaped" {
  RLOCK_REASON=$'a\e[31mb\nc' tells 0 'a\x1b[31mb\x0ac' rlock config
}
