# The scripts of lua/, built as for the program and run on the server srv. Source it after common.
#
#   use_lock NAME [LAYOUT [MODE]]
#                          sets $lock, $token_key, $holder, $queue, $waiters, $channel, $grant_channels and
#                          $hold_keys, which the functions below work on; plain if not given
#   acquire OWNER LEASE HOLD HEIR [FIELD VALUE ...]
#   enqueue OWNER LEASE HOLD [PLACE [PRIORITY [MOST [REPLACE]]]]
#   renew OWNER LEASE [granted] · release OWNER HOLD [KEEP [REQUEST REMEMBER]] · inspect · force_unlock OWNER [BEGUN]
#                          print the reply, an element on each line, or fail with the error's text. An owner id has a
#                          colon; a LABEL without one is short for LABEL:0, here, in replies and in the functions below
#   id_of LABEL            the whole id
#   in_others_turn COMMAND ...   its scripts run in the turn of others
#   field NAME             a field of the holder key
#   as_weak_user RIGHT     from now on a user with every right but this one runs the scripts
#   lacks_a_right TEXT     TEXT is how the server says that a right is missing
#   fill_memory            from now on the server refuses commands that need memory
#   assert_bounded KEY     the key has a TTL
#   assert_mortal          every key has one, except fencing tokens
#   listen ID...           listens on the channels of these waiters, in the current folder; $listeners must be ended
#   hear_releases FILE     listens on the lock's channel; what it receives goes to the file
#   hears ID TEXT · heard_nothing ID · leaves_the_line ID · in_queue
#   count_calls COMMAND    how often the server has executed it, also in scripts

LUA_DIR=$TESTS_DIR/../lua

# Every command that a script uses.
SCRIPT_COMMANDS='time get set hget hset hexists hdel hmget hgetall hlen pttl pexpire exists del publish type
  getrange hscan zadd zcard zcount zrange zrangebyscore zrank zrem zremrangebyscore zrevrange zrevrangebyscore zscore pubsub hkeys incrby
  lrange rpush lrem persist info'

use_lock() {
  lock=$1
  # As in Redisson: a name with braces provides its own.
  local tag="{$1}"
  [[ $1 != *\{* ]] || tag=$1
  layout=${2:-plain}
  mode=${3:-}
  token_key="redisson_lock_token:$tag"
  holder="rlock:holder:$tag"
  queue="rlock:queue:$tag"
  waiters="rlock:waiters:$tag"
  case $layout in
    plain) channel="redisson_lock__channel:$tag" ;;
    read_write) channel="redisson_rwlock:$tag" ;;
    semaphore) channel="redisson_sc:$tag" ;;
    string) channel="redisson_lock__channel:$tag" mode=${3:-set} ;;
  esac
  grant_channels="rlock:grant:$tag:"
  hold_keys="rlock:hold:$tag:"
  resize=0
  script_user=()
}

id_of() { [[ $1 == *:* || -z $1 ]] && echo "$1" || echo "$1:0"; }

# The text that calls the script with words (script_words.lua).
script_text() {
  [[ -s $BATS_FILE_TMPDIR/words.lua ]] ||
    sed -e "/^--SCRIPT/{r $BATS_FILE_TMPDIR/lua/script.lua" -e 'd}' "$TESTS_DIR/lib/script_words.lua" >"$BATS_FILE_TMPDIR/words.lua"
}

# script VERB NAME=VALUE ...: see script_words.lua.
script() {
  local verb=$1 status=0
  shift
  local text=$BATS_FILE_TMPDIR/words.lua
  script_text
  if [[ -n ${first_line:-} ]]; then
    echo "$first_line" | cat - "$text" >"$BATS_TEST_TMPDIR/begun.lua"
    text=$BATS_TEST_TMPDIR/begun.lua
  fi
  local way
  way_to srv
  redis-cli "${way[@]}" "${script_user[@]}" -e --eval "$text" \
    "$lock" "$token_key" "$holder" "$queue" "$waiters" ${last_key:+"$last_key"} , "$verb" "$layout" "$sharded" "$@" \
    >"$BATS_TEST_TMPDIR/$verb.reply" || status=$?
  sed 's/^\([^: ]*\):0$/\1/' "$BATS_TEST_TMPDIR/$verb.reply"
  return "$status"
}

# in_others_turn COMMAND ...: its scripts run in the turn of others, regardless of how slow this test is.
in_others_turn() {
  local first_line="do local t = redis.call('time')
    redis.call('hset', KEYS[5], 'open', string.format('%.0f', math.floor(t[1] * 1000 + t[2] / 1000))) end"
  "$@"
}

# $wanted: $mode as words. SLOTS [TAKEN [from NAMES]] of a semaphore.
want() {
  wanted=()
  local slots taken from names
  if [[ $mode == [0-9]* ]]; then
    read -r slots taken from names <<<"$mode"
    wanted=(want.slots="$slots" ${taken:+want.taken="$taken"} ${names:+want.names="$names"})
  elif [[ $mode ]]; then
    wanted=(want.mode="$mode")
  fi
  ((resize % 2 == 0)) || wanted+=(resize=true)
  ((resize < 2)) || wanted+=(adopt=true)
}

acquire() {
  local wanted about=("${@:5}")
  want
  [[ " ${about[*]} " != *' history '* ]] || wanted+=(history=true)
  script acquire owner="$(id_of "$1")" lease="$2" hold="$3" ${4:+heir="$(id_of "$4")"} "${wanted[@]}" "${about[@]/#/about=}"
}
enqueue() {
  local wanted
  want
  [[ ${7:-0} == 0 ]] || wanted+=(wait.replace=true)
  script acquire owner="$(id_of "$1")" lease="$2" hold="$3" "${wanted[@]}" about=host about=h about=pid about="$1" about=user about=u \
    ${4:+wait.place="$4"} wait.priority="${5:-0}" ${6:+wait.most="$6"}
}
renew() { script renew owner="$(id_of "$1")" lease="$2" ${3:+"$3=true"}; }
release() {
  local last_key="$hold_keys${4:-request}:released"
  script release owner="$(id_of "$1")" hold="$2" keep="${3:-0}" id="${4:-request}" remember="${5:-0}"
}
inspect() { script inspect; }
force_unlock() { script force-unlock owner="$(id_of "$1")" begun="${2:-}" count=1000 by=me; }
raise() { script raise owner="$(id_of "$1")" token="$2"; }

field() { redis srv hget "$holder" "$1"; }

as_weak_user() {
  redis srv acl setuser weak reset on '>pw' '~*' '&*' +@all "-$1"
  [[ -z $sharded || $1 != publish ]] || redis srv acl setuser weak -spublish
  script_user=(--user weak --pass pw --no-auth-warning)
}

# In a script, Redis 7.0 says it with the first words, later versions and Valkey with the second, and 6.2 as outside of
# one.
lacks_a_right() { [[ $1 == *"can't run this command"* || $1 == *"can't access at least one of the keys"* || $1 == *'ACL failure'* || $1 == *NOPERM* ]]; }

as_full_user() { script_user=(); }

fill_memory() { redis srv config set maxmemory-policy noeviction && redis srv config set maxmemory 1; }

free_memory() { redis srv config set maxmemory 0; }

assert_bounded() {
  local ttl
  ttl=$(redis srv pttl "$1")
  ((ttl >= 0)) || {
    echo "$1: pttl $ttl" >&2
    return 1
  }
}

assert_mortal() {
  local key
  while IFS= read -r key; do
    [[ -z $key || $key == redisson_lock_token:* ]] || [[ $(redis srv pttl "$key") != -1 ]] || {
      echo "key without TTL: $key" >&2
      return 1
    }
  done < <(redis srv --scan)
}

count_calls() {
  if [[ $sharded && $1 == publish ]]; then set -- spublish; fi
  redis srv info commandstats | sed -n "s/^cmdstat_$1:calls=\([0-9]*\),.*/\1/p" | grep . || echo 0
}

# listen ID...: listens on the channels of these waiters; what they receive goes to heard-ID.
listen() {
  local id
  for id; do
    # Not a function, because its end must be the end of the connection.
    redis-cli -s "$srv_sock" "${sharded:+s}subscribe" "$grant_channels$(id_of "$id")" >"heard-$id" 3>&- &
    listeners+=($!)
    declare -g "listener_${id//[^a-z0-9]/_}=$!"
    wait_until grep -q subscribe "heard-$id"
  done
}
# hear_releases FILE: listens on the lock's channel, like Redisson; what it receives goes to the file.
hear_releases() {
  redis-cli -s "$srv_sock" "${sharded:+s}subscribe" "$channel" >"$1" 3>&- &
  listeners+=($!)
  wait_until grep -q subscribe "$1"
}
# hears ID TEXT: that waiter receives it.
hears() { wait_until grep -qx -- "$2" "heard-$1"; }
heard_nothing() { ! grep -q message "heard-$1"; }
# leaves_the_line ID: nobody listens on its channel any longer.
leaves_the_line() {
  local name=listener_${1//[^a-z0-9]/_}
  kill "${!name}"
  nobody() { [[ $(listeners_on srv "$grant_channels$(id_of "$1")") == 0 ]]; }
  wait_until nobody "$1"
}
# packed FIELDS: the record of a living waiter, but for these.
packed() {
  echo "(function() local one = {version = 2, alive = 9e15, since = 1, lease = '1000', hold = 'h', about = {}}
    for name, value in pairs({$1}) do one[name] = value end return cmsgpack.pack(one) end)()"
}

in_queue() { redis srv zrange "$queue" 0 -1 | sed 's/:0$//' | xargs; }

# What the files share: a server for the file, a lock and a clean database for each test.
start_script_server() {
  redis_start srv
  # As rlock does in a cluster from Redis 7 on.
  export sharded=''
  [[ ${TEST_OVER:-} != cluster || $(redis srv command info spublish) != *spublish* ]] || sharded=sharded
  # Sentinel publishes on the server, too, where some tests count.
  if [[ ${TEST_OVER:-} == sentinel ]]; then
    local way
    way_to srv
    export sentinel_says=${way[1]}
    redis_freeze srv_watch
  fi
  cmake -DOUT="$BATS_FILE_TMPDIR/lua" -P "$LUA_DIR/embed.cmake"
  script_text
}

fresh_lock() {
  redis srv flushall
  redis srv config resetstat
  free_memory
  use_lock "lock-$BATS_TEST_NUMBER"
  cd "$BATS_TEST_TMPDIR" || return
  listeners=()
} >/dev/null

# end_listeners: ends those that listen and hear_releases have started.
end_listeners() { end_mine "${listeners[@]}"; }
