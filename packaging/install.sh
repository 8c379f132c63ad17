# shellcheck shell=sh disable=SC1091
# Sourced by scripts that need packages, or build: need_packages NAME... installs those that are missing; build ... builds.

# A build needs these.
# shellcheck disable=SC2034
BUILD_PACKAGES='cmake ninja-build g++ libhiredis-dev libc-ares-dev libssl-dev zlib1g-dev libzstd-dev
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev redis-server'

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '\n!! %s\n' "$*" >&2
  exit 1
}

known_system() {
  . /etc/os-release 2>/dev/null || return 1
  case "$ID:${VERSION_ID:-}" in
    debian:1[2-9] | debian:2* | ubuntu:2[4-9].* | ubuntu:[3-9]*) ;;
    *) return 1 ;;
  esac
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

# may_be_root: this is root, or sudo(8) lets us be; it may ask for a password, on a terminal only.
may_be_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || return
  sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# own FOLDER: what is built there can be built again by this user.
own() {
  [ "$(id -u)" != 0 ] && [ -e "$1" ] || return 0
  foreign=$(find "$1" ! -user "$(id -u)" ! -name 'install*manifest*' -print -quit)
  [ -z "$foreign" ] || fail "$1/ holds files of another user, as $foreign: was it built by root?
   As root: chown -R $(id -un) $PWD/$1"
}

need_packages() {
  known_system || fail "this system is not known here: Debian 12 or newer (or Ubuntu 24.04 or newer) is.
   Elsewhere install a C++23 compiler (g++ 12, clang 19), CMake 3.25, hiredis, c-ares, OpenSSL 3, CLI11, spdlog
   with fmt, nlohmann-json and redis-server, then: cmake -S . -B build && cmake --build build"
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  may_be_root || fail "packages are missing, and you are neither root nor may you use sudo. As root:
   apt-get update && apt-get install --no-install-recommends$missing"
  say "Installing:$missing"
  # A server that a package brings shall not start by itself: nobody asked for it.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 sh -c "
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null" ||
    fail "these packages could not be installed:$missing"
}

# build PRESET FOLDER TARGET [OPTION...]: configures the preset, whose folder this is, with cmake's options, and builds
# the target. On a terminal a line shows how far it is.
build() {
  build_preset=$1 build_folder=$2 build_target=$3
  shift 3
  cmake --preset "$build_preset" -G Ninja "$@" >build.log 2>&1 || build_failed
  # A pipe gives no status.
  { NINJA_STATUS='[%f/%t] ' cmake --build "$build_folder" --target "$build_target" && echo built; } 2>&1 |
    tee -a build.log | { if [ -t 1 ]; then build_steps; else cat >/dev/null; fi; }
  [ "$(tail -n 1 build.log)" = built ] || build_failed
  rm -f build.log
}

# One line that is written again and again: [steps done/all].
build_steps() {
  while read -r step; do
    case $step in
      '['*/*']'*) printf '\r%s] ' "${step%%]*}" ;;
    esac
  done
  printf '\r\033[K'
}

build_failed() {
  tail -n 40 build.log >&2
  fail 'the build failed; the whole output is in build.log'
}
