#!/bin/sh
# The last step: gives the lock back. It fails with 76 where the lock was lost meanwhile: then another job may have
# deployed beside this one.
set -eu
rlock release deploy --owner "$(cat .lock-owner)"
rm .lock-owner
