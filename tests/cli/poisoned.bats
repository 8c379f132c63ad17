# Values that somebody else has written into companion keys: rlock continues, or says which key it is and what to do.

load ../lib/common

setup_file() { redis_start srv; }
teardown_file() { redis_stop srv; }
setup() {
  redis srv flushall >/dev/null
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
}

# each_kind TEST: with the options for a lock of each kind.
each_kind() {
  local kind
  for kind in '' -s -x '--slots 2'; do
    redis srv flushall >/dev/null
    "$@" || {
      echo "kind: $kind" >&2
      return 1
    }
  done
}

# Puts a list in place of every companion key.
poison() {
  local key
  while IFS= read -r key; do
    redis srv del "$key"
    redis srv rpush "$key" junk
  done < <(
    printf '%s\n' 'rlock:queue:{job}' 'rlock:waiters:{job}' 'rlock:holder:{job}' 'redisson_lock_token:{job}'
    redis srv --scan --pattern 'rlock:hold:*'
  )
} >/dev/null
mislabel() { redis srv --scan --pattern 'rlock:hold*' | while read -r key; do redis srv hset "$key" owner other control 1; done; }

forced() {
  rlock acquire $kind job --lease 1m
  "$1"
  rlock status job && rlock status --is-held job || return
  tells 0 'job: free' rlock force-unlock --yes job || return
  # A semaphore without its mark could belong to anybody, so it is left alone.
  [[ $(redis srv exists job '{job}:timeout') == 0 || $(redis srv get job) == 2 ]]
}

@test "force-unlock and status need no other key than the lock" { each_kind forced poison && each_kind forced mislabel; }

@test "a description of more than a megabyte is shown in part, and does no harm" {
  owner=$(rlock acquire job --lease 1m --reason spoilt)
  for field in command reason host; do
    head -c 1200000 /dev/zero | tr '\0' x | redis srv -x hset 'rlock:holder:{job}' "$field"
  done
  tells 0 "$owner" rlock status job
  assert_says xxxxxxxx
  run -75 --separate-stderr rlock run -n job -- true
  ((${#stderr} < 2000))
  run -0 rlock force-unlock --yes job
}

@test "a waiter's record that is deeply nested, or a megabyte long, does no harm" {
  for record in "string.rep('\\145', 100) .. '\\1'" \
    "cmsgpack.pack({version = 2, alive = 9e15, since = 1, lease = '1000', hold = 'h', about = {'host', {{{{{{{{{{1}}}}}}}}}}}})" \
    "cmsgpack.pack({version = 2, alive = 9e15, since = 1, lease = '1000', hold = 'h', about = {'host', string.rep('x', 1200000)}})"; do
    rlock acquire job --lease 1m
    redis srv eval "redis.call('zadd', KEYS[1], 1, 'x'); redis.call('hset', KEYS[2], 'x', $record)" 2 \
      'rlock:queue:{job}' 'rlock:waiters:{job}'
    tells 0 'held' rlock status job
    run -0 rlock force-unlock --yes job
    run -0 rlock run -n job -- true
  done
}
