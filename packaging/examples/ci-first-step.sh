#!/bin/sh
# The first step of a CI job whose steps are shells of their own: takes the lock "deploy" for as long as the runner lives.
#
# A keeper stays in the background and renews the lock. If the job is cancelled and its last step never comes, the lock is
# free when the runner ends. LOCK_PID is the process that starts the steps; our parent, if not given.
set -eu
rlock acquire deploy --wait "${LOCK_WAIT:-30m}" --for-pid "${LOCK_PID:-$PPID}" --reason "${CI_JOB_URL:-a CI job}" >.lock-owner
