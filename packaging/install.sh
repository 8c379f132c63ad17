# shellcheck shell=sh disable=SC1091
# Sourced by scripts that need packages: need_packages NAME... installs those that are missing.

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

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "packages are missing, and this is neither root nor is there sudo. As root: apt-get install $missing"
  fi
}

need_packages() {
  known_system || fail "this system is not known here: Debian 12 or newer (or Ubuntu 24.04 or newer) is.
   Elsewhere install a C++23 compiler (g++ 12), CMake 3.25, hiredis, CLI11, spdlog with fmt, nlohmann-json and
   redis-server, then: cmake -S . -B build && cmake --build build"
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  say "Installing:$missing"
  # A server that a package brings shall not start by itself: nobody asked for it.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 sh -c "
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null" ||
    fail "these packages could not be installed:$missing"
}
