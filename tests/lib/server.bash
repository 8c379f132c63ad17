# For files whose tests share one server. What a file needs otherwise, it defines itself behind `load ../lib/server`.

declare -F wait_until >/dev/null || source "${BASH_SOURCE[0]%/*}/common.bash"

setup_file() { redis_start srv; }
setup() { use_server srv; }
teardown() { assert_clean srv; }
teardown_file() { redis_stop srv; }

# open_server: in place of redis_start, one that other users can reach, too.
open_server() {
  redis_start srv --unixsocketperm 777
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true
}

# An owner that is none of ours, and what an owner id looks like.
FOREIGN=11111111-2222-3333-4444-555555555555:1
OWNER_PATTERN='^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9]+$'

# foreign NAME [TTL_MS]: a lock as another program takes it.
foreign() {
  redis srv hset "$1" "$FOREIGN" 1
  redis srv pexpire "$1" "${2:-60000}"
}
# take NAME: prints the owner id.
take() { rlock acquire --lease 30s "$1"; }
holder() { redis srv hgetall "$1"; }
# waiters NAME NUMBER: so many wait for it.
waiters() { [[ $(listeners_on srv "redisson_lock__channel:{$1}") == "$2" ]]; }
