#!/bin/sh
# sh tests/faults/kill9.sh [--count N] [--victim frontend|monitor|command] [--p99 MS]
# Kills one process of a running job after the other; see kill9.py. RLOCK names the program, build/rlock if not set.
here=$(dirname "$0")
exec python3 "$here/kill9.py" --rlock "${RLOCK:-$here/../../build/rlock}" "$@"
