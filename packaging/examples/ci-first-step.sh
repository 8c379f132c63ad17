#!/bin/sh
# The first step of a CI job whose steps are separate shells: takes the lock "deploy" for as long as the runner lives.
#
# LOCK_PID is the process that starts the steps: the parent of the step's shell. Only that shell knows it:
#
#   LOCK_PID=$PPID ./ci-first-step.sh
#   LOCK_PID=$PPID; . ./ci-first-step.sh     # the same, in the step's own shell
#
# Begin each later step with this line, which ends the step if the lock was lost:
#
#   rlock renew deploy --owner "$(cat .lock-owner)" || exit
#
# A keeper stays in the background and renews the lock. If the job is cancelled and its last step never runs, the lock is
# free when the runner ends.
#
# The server is in RLOCK_URL, or in url in /etc/rlock/rlock.toml.
set -eu
: "${LOCK_PID:?give the process that starts the steps: LOCK_PID=\$PPID ./ci-first-step.sh}"
# Not written to the file directly: that would empty it while another job in this folder has the lock.
owner=$(rlock acquire deploy --wait "${LOCK_WAIT:-30m}" --for-pid "$LOCK_PID" --reason "${CI_JOB_URL:-a CI job}")
# A link in the checkout could lead to any file.
{ rm -f .lock-owner && echo "$owner" >.lock-owner; } || {
  rlock release deploy --owner "$owner"
  exit 1
}
