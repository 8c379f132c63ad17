#!/bin/sh
# sh tests/faults/epoch.sh [N] [KIND...]
# Makes servers forget locks, N times in each way (20), under load, with the epoch guard and without it, and counts
# commands that ran at the same time as another; see epoch.py. RLOCK names the program, build/rlock if not set.
here=$(dirname "$0")
exec /usr/bin/python3 -B "$here/epoch.py" "${RLOCK:-$here/../../build/rlock}" "$@"
