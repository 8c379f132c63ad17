#!/bin/sh
# Installs what is missing, builds rlock, and runs a first command under a lock.
#
#   sh packaging/quickstart.sh            as root or with sudo
#
# Can be repeated. Installs only packages of the distribution, and nothing outside the package manager; the program stays in
# build/rlock.
# shellcheck disable=SC1091,SC2015,SC2016,SC2086 # lists of words, && || as if, text for another shell
set -eu
case ${1-} in
  '') ;;
  -h | --help)
    sed -n '/^# shellcheck/q; 2,$s/^#\( \|$\)//p' "$0"
    exit
    ;;
  *)
    echo 'usage: sh packaging/quickstart.sh [--help]' >&2
    exit 64
    ;;
esac
cd "$(dirname "$0")/.."

. packaging/install.sh
[ -w . ] || fail "$(pwd) is read-only for you, and the build needs a folder in it. Copy it:
   cp -R $(word "$(pwd)") ~/rlock && sh ~/rlock/packaging/quickstart.sh"
need_packages $BUILD_PACKAGES
own build

say 'Building build/rlock (about a minute on two free cores) ...'
build release build rlock -DBUILD_TESTING=OFF

say 'Running a command under the lock "hello", on a private Redis server:'
# Not set -x: dash shows the words without their quotes.
while read -r line; do
  printf '+ %s\n' "$line"
  eval "$line" </dev/null
done <<'END'
build/rlock --url local: run hello -- sh -c 'echo "I have the lock $RLOCK_NAME, fencing token $RLOCK_TOKEN"'
build/rlock --url local: run hello -- build/rlock status hello
build/rlock --url local: status hello
END

say 'It works. The private server keeps running in the background; `build/rlock --url local: local stop` ends it.
Next: `build/rlock run --help`, the README, `man man/rlock-run.1`; `sudo cmake --install build` installs it.'
