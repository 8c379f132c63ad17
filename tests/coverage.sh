#!/bin/sh
# Which code do the tests run?
#
#   sh tests/coverage.sh [FILE...]    runs these bats files or folders; tests/cli, tests/faults and tests/lua unless named
#
# Builds a copy of the committed source in build-coverage/ with clang's counters, and marks in the scripts
# (tests/coverage/marks.py), and runs the unit tests and these tests with it, which takes half an hour. Prints a table of
# lines, branches and functions for each folder of src/ and of statements for lua/, and then what never ran: functions,
# each with the reason in tests/coverage/reasons, and statements. Ends with 1 if a function that did not run has no
# reason, or one with a reason did run. Tests that fail are named, but do not count, because some measure the program's
# speed or compare its scripts.
set -eu
# shellcheck disable=SC1091,SC2016,SC2086 # lists of words, text for another shell
cd "$(dirname "$0")/.."
. packaging/install.sh
need_packages $BUILD_PACKAGES clang-19 llvm-19 libclang-rt-19-dev libgtest-dev bats procps python3
[ $# -gt 0 ] || set -- tests/cli tests/lua tests/faults

home=$PWD
rm -rf build-coverage
mkdir -p build-coverage/counts build-coverage/logs
git archive HEAD | tar -x -C build-coverage
cd build-coverage
chmod 777 counts logs
python3 tests/coverage/marks.py add lua
say 'Building ...'
build coverage build all -DBUILD_TESTING=ON

# A server that writes its log where it can be counted. rlock reads the log of a private server itself.
server=$(command -v redis-server)
mkdir bin
cat >bin/marked-server <<SCRIPT
#!/bin/sh
case "\$*" in *"--protected-mode yes"*) exec $server "\$@" ;; esac
exec $server "\$@" --logfile $PWD/logs/\$\$.log
SCRIPT
chmod 755 bin/marked-server
export REDIS_SERVER="$PWD/bin/marked-server" RLOCK="$PWD/build/rlock"

say 'Unit tests'
build/unit_tests --gtest_brief=1
build/rlock --version >/dev/null
chmod 666 counts/*.profraw # some tests run rlock as another user
say 'Tests on real servers'
TMPDIR=$(mktemp -d /tmp/rt.XXXX)
export TMPDIR BATS_TEST_TIMEOUT=300
chmod 711 "$TMPDIR"
trap 'rm -rf "$TMPDIR"' EXIT
for path; do
  if [ -d "$path" ]; then printf '%s\n' "$path"/*.bats; else echo "$path"; fi
done | env --default-signal=HUP,INT,QUIT xargs -P "${JOBS:-12}" -n 1 sh -c '
  case $1 in */local.bats) unset REDIS_SERVER ;; esac # counts the servers by their names
  setsid -w bats --formatter tap "$1" </dev/null 2>&1 | sed -n "s|^not ok|failed in $1:|p"' sh

say 'Coverage'
# The counters of a program are in a file of its own.
llvm-profdata-19 merge -sparse counts/*.profraw -o counts/all
llvm-cov-19 export -instr-profile=counts/all build/rlock -object build/unit_tests >counts/all.json
find logs -type f -exec cat {} + | grep -oE 'mark [0-9a-z_/]+\.lua:[0-9]+' | sort -u >counts/marks || true
python3 tests/coverage/table.py counts/all.json "$PWD/src" "$home/tests/coverage/reasons"
python3 "$home/tests/coverage/marks.py" count "$home/lua" counts/marks
