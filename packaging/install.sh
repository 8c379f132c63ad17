# shellcheck shell=sh disable=SC1091
# Sourced by scripts that install packages or build: see need_packages and build.

# shellcheck disable=SC2034
BUILD_PACKAGES='cmake ninja-build g++ libhiredis-dev libc-ares-dev libssl-dev zlib1g-dev libzstd-dev
  libcli11-dev libspdlog-dev libfmt-dev nlohmann-json3-dev redis-server'
# What the searches over the script and the simulator need in addition.
# shellcheck disable=SC2034
MODEL_PACKAGES='libgtest-dev liblua5.1-0-dev libxxhash-dev'

say() { printf '\n== %s\n' "$*"; }

fail() {
  printf '\n!! %s\n' "$*" >&2
  exit 1
}

# quietly COMMAND...: shows what it prints only if it fails, and then exits.
quietly() { log=$("$@" 2>&1) || { printf '%s\n' "$log" >&2 && exit 1; }; }

# word TEXT: TEXT as one word of a shell.
word() { printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")"; }

known_system() {
  . /etc/os-release 2>/dev/null || return 1
  case "$ID:${VERSION_ID:-}" in
    debian:1[2-9] | debian:2* | ubuntu:2[4-9].* | ubuntu:[3-9]*) ;;
    *) return 1 ;;
  esac
  command -v apt-get >/dev/null && command -v dpkg-query >/dev/null
}

# may_be_root: true for root, and if sudo(8) works; asks for a password only on a terminal.
may_be_root() {
  [ "$(id -u)" = 0 ] && return
  command -v sudo >/dev/null || return
  sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; }
}

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

# own FOLDER: fails if this user cannot build there again.
own() {
  [ "$(id -u)" != 0 ] && [ -e "$1" ] || return 0
  foreign=$(find "$1" ! -user "$(id -u)" ! -name 'install*manifest*' -print -quit)
  [ -z "$foreign" ] || fail "$1/ contains files of another user, such as $foreign; was it built by root?
   As root: chown -R $(id -un) $(word "$PWD/$1")"
}

need_packages() {
  known_system || fail "unknown system: this works on Debian 12 and Ubuntu 24.04, or newer.
   On others, install a C++23 compiler (g++ 12, clang 19), CMake 3.25, hiredis, c-ares, OpenSSL 3, CLI11, spdlog
   with fmt, nlohmann-json and redis-server, then: cmake -S . -B build && cmake --build build"
  missing=
  for package in "$@"; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  may_be_root || fail "packages are missing, and you are not root and cannot use sudo. As root:
   apt-get update && apt-get install --no-install-recommends$missing"
  say "Installing:$missing"
  # RUNLEVEL keeps servers in these packages from starting.
  as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 sh -c "
    apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing >/dev/null" ||
    fail "these packages could not be installed:$missing"
}

# build PRESET FOLDER TARGET [OPTION...]: configures the preset, which builds in FOLDER, and builds the target. Shows the
# progress on a terminal. OPTION is for cmake.
build() {
  build_preset=$1 build_folder=$2 build_target=$3 build_log=$2.log
  shift 3
  # CMake refuses the folder if the tree was moved or copied since.
  if [ -e "$build_folder/CMakeCache.txt" ] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$(pwd -P)" "$build_folder/CMakeCache.txt"; then
    rm -rf "$build_folder/CMakeCache.txt" "$build_folder/CMakeFiles"
  fi
  cmake --preset "$build_preset" -G Ninja "$@" >"$build_log" 2>&1 || build_failed
  # The status of a pipe is that of its last command, hence "built".
  { NINJA_STATUS='[%f/%t] ' cmake --build "$build_folder" --target "$build_target" && echo built; } 2>&1 |
    tee -a "$build_log" | { if [ -t 1 ]; then build_steps; else cat >/dev/null; fi; }
  [ "$(tail -n 1 "$build_log")" = built ] || build_failed
  rm -f "$build_log"
}

# Keeps updating one line: [steps done/all].
build_steps() {
  while read -r step; do
    case $step in
      '['*/*']'*) printf '\r%s] ' "${step%%]*}" ;;
    esac
  done
  printf '\r\033[K'
}

build_failed() {
  tail -n 40 "$build_log" >&2
  fail "the build failed; $build_log has the whole output"
}
