#!/bin/sh
# The last step: releases the lock. It fails with 76 if the lock was lost in the meantime: then another job may have
# deployed at the same time.
set -eu
rlock release deploy --owner "$(cat .lock-owner)"
rm .lock-owner
