# rlock run --owner: a lock that one job acquires and others run under, as in plan, approve and apply.

load ../lib/server
load ../lib/job

setup() {
  not_over cluster sentinel 'the keys are looked at'
  use_server srv
}
teardown() {
  touch end
  [[ -z ${frontend:-} ]] || wait_until gone "$frontend"
  assert_clean srv
}

left() { redis srv pttl "$1"; }
count() { redis srv hvals "$1"; }
# begin [OPTION ...]: a command that runs until there is a file "end". used OPTION...: another one is not started.
begin() { job_until end --owner "$owner" "$@" job; }
used() { tells 76 "$1" rlock run --owner "$owner" "${@:2}" -- touch ran && [[ ! -e ran ]]; }

@test "plan, approve, apply: the lock, its owner and its fencing token stay the same, and the lease is the whole one again" {
  eval "$(rlock acquire --lease 60s --export apply)"
  local token=$RLOCK_TOKEN owner=$RLOCK_OWNER before
  redis srv pexpire apply 20000 >/dev/null
  prints "apply $owner $token" rlock run --owner "$owner" apply -- bash -c 'echo "$RLOCK_NAME $RLOCK_OWNER $RLOCK_TOKEN"'
  before=$(left apply)
  ((before > 50000 && before <= 60000))
  [[ $(redis srv hget apply "$owner") == 1 ]]
  run -75 rlock run -n apply -- touch ran
  [[ ! -e ran ]]
  run -0 rlock run --owner "$owner" --keep 2m apply -- true
  (($(left apply) > 100000))
  run -7 rlock run --owner "$owner" --release apply -- bash -c 'exit 7'
  [[ $(redis srv exists apply) == 0 ]]
  used "apply: not held by owner $owner: its lease has ended, it was released, or rlock did not grant it" apply
}

@test "status shows no process while the command runs, because that of the acquire has ended" {
  owner=$(rlock acquire --lease 60s job)
  run -0 rlock run --owner "$owner" job -- "$RLOCK" status job
  [[ $output == *"holder    $(id -un)@$(uname -n)"$'\ncommand'* ]]
  begin
  [[ $(rlock status --json job) == *'"pid": null,'* ]] # 0 would be the group of the caller for kill(1)
  rlock release --owner "$owner" job
  tells 76 "not released: rlock run has it, $(id -un)@$(uname -n), and releases it" rlock release --owner "$owner" job
  job_finish end 3
}

@test "it is renewed while the command runs, and nested runs work" {
  owner=$(rlock acquire --lease 6s job)
  run -0 rlock run --owner "$owner" --lease 6s job -- bash -c '
    left() { redis-cli -s "$srv_sock" pttl job; }
    until before=${now:-9999} now=$(left) && ((now > before)); do sleep 0.05; done
    "$RLOCK" run -n job -- echo inner'
  [[ $output == *inner* && $(count job) == 1 ]]
  rlock release --owner "$owner" job
}

@test "two at the same time under one owner are refused" {
  owner=$(rlock acquire --lease 30s job)
  begin
  used 'job: this hold is in use: a job runs under it' job
  # Also if the owner's own hold has been released meanwhile; the lock is free when the command ends.
  rlock release --owner "$owner" job
  used '' job
  run -75 rlock run -n job -- true
  job_finish end 3
  [[ $(redis srv exists job) == 0 ]]
  rm end begun
  owner=$(rlock acquire --lease 30s job)
  run -0 rlock run --owner "$owner" --release job -- true
}

@test "the hold of a job, and that of a keeper, are refused, because something works under them; one that is kept is nobody's" {
  job_until end job
  owner=$(redis srv hget 'rlock:holder:{job}' owner)
  used 'this hold is in use: a job runs under it' --release job
  [[ $(redis srv exists job) == 1 ]]
  owner=$(rlock acquire --for-pid $$ --history kept)
  used 'or rlock acquire --for-pid keeps it' --release kept
  rlock release --owner "$owner" kept
  redis srv del 'rlock:history:{kept}' 'rlock:totals:{kept}' >/dev/null
  rlock run --min-hold 10m other -- true
  owner=$(redis srv hget 'rlock:holder:{other}' owner)
  used "other: not held by owner $owner" --release other
  rlock force-unlock --yes --now other
}

@test "status lines do not say that a lock is free that stays with its owner" {
  owner=$(rlock acquire --lease 30s job)
  rlock run --status-fd 5 --owner "$owner" job -- true 5>lines
  grep -q '"event":"released"' lines
  run ! grep -q free_in_ms lines
  rlock run --status-fd 5 --owner "$owner" --release job -- true 5>lines
  grep -q '"free_in_ms":0' lines
}

@test "force-unlock asks the command to stop, and waits until it has; without a command it frees the lock at once" {
  owner=$(rlock acquire --lease 60s job)
  run -0 rlock run --owner "$owner" job -- true
  job_start --owner "$owner" job -- bash -c 'trap "touch asked; until [[ -e end ]]; do sleep 0.1; done; touch over; exit 0" TERM
    touch begun; while :; do sleep 0.02; done'
  wait_until test -e begun
  "$RLOCK" force-unlock -y job >told 3>&- &
  local unlocking=$!
  wait_until test -e asked
  [[ $(redis srv exists job) == 1 ]]
  let_end end "$unlocking"
  [[ $(<told) == *'the holder has been asked to stop'* && -e over ]]
  job_status 74
  [[ $(redis srv exists job) == 0 ]]
  owner=$(rlock acquire --lease 60s job)
  run -0 rlock run --owner "$owner" job -- true
  run -0 timeout 1 "$RLOCK" force-unlock -y job
}

@test "every kind of lock, and several at once" {
  for kind in '' -s -x '--slots 2' '--protocol set'; do
    owner=$(rlock acquire --lease 30s $kind one)
    run -0 rlock run --owner "$owner" one -- true
    run -0 rlock run --owner "$owner" --release one -- true
    [[ $(rlock status --is-held one) == '' ]] || return
    run -1 rlock status --is-held one
    redis srv del one 'one:rwlock_timeout' '{one}:timeout' 'rlock:holder:{one}' >/dev/null
  done
  owner=$(rlock acquire --lease 30s a b)
  run -0 rlock run --owner "$owner" --release a b -- true
  [[ $(redis srv exists a b) == 0 ]]
  # If one of them is gone, nothing runs, and the other stays as it was.
  owner=$(rlock acquire --lease 30s a b)
  rlock release --owner "$owner" b
  used '' a b
  [[ $(redis srv hget a "$owner") == 1 ]]
  rlock release --owner "$owner" a
}

@test "the end is in the history once it is released" {
  owner=$(rlock acquire --lease 30s job)
  run -0 rlock run --history --owner "$owner" job -- true
  run -0 rlock history job
  [[ $output != *exited* ]]
  run -3 rlock run --history --owner "$owner" --release job -- bash -c 'exit 3'
  run -0 rlock history job
  [[ $output == *'exited with 3'* || $output == *'exit 3'* ]]
  redis srv del 'rlock:history:{job}' 'rlock:totals:{job}' >/dev/null
}

@test "a lock that is taken away stops the command: 74; if the host with both guards dies, it expires with its lease" {
  owner=$(rlock acquire --lease 3s job)
  begin --lease 3s
  rlock force-unlock --now -y job
  job_status 74 'the lock is lost'
  rm begun
  owner=$(rlock acquire --lease 2s job)
  begin --lease 2s
  job_parts
  kill_guards
  wait_until free job
  touch end
  unset frontend
}
free() { [[ $(redis srv exists "$1") == 0 ]]; }
