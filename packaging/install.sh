# shellcheck shell=sh disable=SC1091
# Sourced by scripts that need packages: need_packages NAME... installs those that are missing.

# A build needs these.
# shellcheck disable=SC2034
BUILD_PACKAGES='cmake ninja-build g++ libhiredis-dev libc-ares-dev libssl-dev zlib1g-dev libzstd-dev
  libcli11-dev libtomlplusplus-dev libspdlog-dev libfmt-dev nlohmann-json3-dev redis-server'

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
   Elsewhere install a C++23 compiler (g++ 12, clang 19), CMake 3.25, hiredis, c-ares, OpenSSL 3, CLI11, toml++, spdlog
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
