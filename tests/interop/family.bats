# The rest of Redisson's family: locks that are not notified of a release, several names at a time, and objects that are
# no locks.

load interop

# Redisson has been refused the lock once more.
asks() { redis r info commandstats | sed -n 's/^cmdstat_pttl:calls=\([0-9]*\).*/\1/p'; }
has_asked() { (($(asks) > $1 + 3)); }

@test "RSpinLock finds a lock that rlock has released, and rlock looks without being notified" {
  running_job rlock
  redisson_throws a spin-unlock "$name"
  [[ $(value a spin-trylock "$name" 0 30000) == false ]]
  before=$(asks)
  redisson_send a spin-lock "$name"
  wait_until has_asked "$before"
  not redisson_replies a
  end_job rlock
  wait_until redisson_replies a

  run -75 rlock run -n "$name" -- true
  start_job rlock
  wait_until waiters 1
  redisson a spin-unlock "$name"
  wait_until job_runs rlock
  redisson_send a spin-lock "$name"
  rlock force-unlock --yes --now "$name"
  wait_until redisson_replies a
  redisson a spin-force-unlock "$name"
  job_ends rlock 74
  wait_until lock_free
}

@test "RNonReentrantLock is refused to its own holder, and its field stays" {
  use_kind nonreentrant
  redisson a nonreentrant-lock "$name"
  redisson_throws a nonreentrant-lock "$name"
  [[ $(redis r hgetall "$name") == "$(reply owner)"$'\n1' ]]
  redisson a nonreentrant-unlock "$name"
  wait_until lock_free
}

@test "RedissonMultiLock and a job with several names: all or none, and each wakes the other" {
  local other=z-$name
  redisson a multi-lock "$other,$name"
  run -75 rlock run -n "$name" -- true
  run -75 rlock run -n "$other" a-third -- true
  start_job rlock "$other"
  wait_until waiters 1
  redisson a multi-unlock "$other,$name"
  job_wakes rlock
  [[ $(redis r exists "$name" "$other") == 2 ]]

  # A free name of it is released while the other is not.
  [[ $(value a multi-trylock "free-$name,$name" 0 30000) == false ]]
  [[ $(redis r exists "free-$name") == 0 ]]
  redisson_send a multi-lock "$other,$name"
  channel="redisson_lock__channel:{$other}"
  wait_until waiters 1
  end_job rlock
  wait_until redisson_replies a
  redisson a multi-unlock "$other,$name"
  wait_until lock_free
}

@test "RedissonMultiLock of write locks, and a job with -x and the same names" {
  local other=z-$name
  redisson a multi-write-lock "$name,$other"
  run -75 rlock run -n -x "$name" -- true
  run -75 rlock run -n -s "$other" -- true
  waiting_job rlock -x "$other"
  redisson a multi-write-unlock "$name,$other"
  wait_until job_runs rlock
  [[ $(value a multi-write-trylock "$other,$name" 0 30000) == false ]]
  end_job rlock
  [[ $(value a multi-write-trylock "$other,$name" 0 30000) == true ]]
  redisson a multi-write-unlock "$other,$name"
  [[ $(redis r exists "$name" "$other") == 0 ]]
}

# A large hash has no order.
contents() {
  if [[ $(redis r type "$name") == hash ]]; then
    redis r hgetall "$name" | paste - - | grep -v ':expire_time' | sort # Redisson renews these
  else
    redis r get "$name"
  fi
}

# refused TEXT: every command that takes, frees or asks for the lock exits with 76 and TEXT, and the key stays
# unchanged.
refused() {
  local before command
  before=$(contents)
  for command in run 'run -n' 'run -s' 'run -x' 'run --slots 2' 'acquire --lease 5s' 'force-unlock --yes' \
    'run --protocol set' 'status --is-held'; do
    # `run --protocol set` needs a string that expires, and says so.
    [[ $command != *set || $(redis r type "$name") == hash ]] || continue
    # shellcheck disable=SC2046,SC2086 # words
    tells 76 "$1" rlock $command "$name" $([[ $command != run* ]] || echo '-- touch ran')
  done
  tells 0 "$1" rlock status "$name"
  [[ $(contents) == "$before" && ! -e ran ]]
}

@test "an RSemaphore and an RCountDownLatch are named, refused, left as they are, and still count" {
  redisson a set-semaphore "$name" 2
  refused "Redisson's RSemaphore"
  [[ $(value a try-semaphore "$name") == true && $(redis r get "$name") == 1 ]]
  [[ $(value a try-semaphore "$name") == true && $(value a try-semaphore "$name") == false ]]
  refused "Redisson's RSemaphore"
  redis r del "$name"
  redisson a set-latch "$name" 2
  refused "RCountDownLatch"
  [[ $(value a count-down "$name") == 1 && $(value a count-down "$name") == 0 ]]
  wait_until lock_free
}

@test "the lock of a group, getMultiLock(group, values), is named and refused, and the release of each leaves the other's" {
  needs_redisson 3.38.0
  redisson a group-lock "$name,one,two"
  refused "Redisson's RMultiLock of one group"
  redisson b group-lock "$name,three"
  refused "Redisson's RMultiLock of one group"
  redisson b group-unlock "$name,three"
  redisson a group-unlock "$name,one,two"
  wait_until lock_free

  # Redisson's script only looks for its own fields, so it takes one beside a name that rlock holds.
  running_job rlock
  redisson a group-lock "$name,one"
  end_job rlock
  refused "Redisson's RMultiLock of one group"
  redisson a group-unlock "$name,one"
  wait_until lock_free
}
