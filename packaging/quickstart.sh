#!/bin/sh
# Installs what is missing, builds rlock, and runs a first command under a lock.
#
#   sh packaging/quickstart.sh            as root or with sudo
#
# Can be repeated. Installs only packages of the distribution, and nothing outside the package manager; the program stays in
# build/rlock.
set -eu
# shellcheck disable=SC1091,SC2015,SC2016,SC2086 # lists of words, && || as if, text for another shell
cd "$(dirname "$0")/.."

. packaging/install.sh
need_packages $BUILD_PACKAGES
own build

say 'Building build/rlock (about a minute on two free cores) ...'
build release build rlock -DBUILD_TESTING=OFF

say 'Running a command under the lock "hello", on a private Redis server:'
set -x
build/rlock --url local: run hello -- sh -c 'echo "I have the lock $RLOCK_NAME, fencing token $RLOCK_TOKEN"'
build/rlock --url local: run hello -- build/rlock status hello
build/rlock --url local: status hello
{ set +x; } 2>/dev/null

say 'It works. The private server keeps running in the background; `build/rlock --url local: local stop` ends it.
Next: `build/rlock run --help`, the README, `man man/rlock-run.1`; `sudo cmake --install build` installs it.'
