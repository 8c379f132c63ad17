# shellcheck shell=sh disable=SC2034,SC2154
# Sourced by the scripts in the folder $here that make other files of a release from its archives. From the same archives,
# anyone gets the same bytes; the image also depends on the installed CA certificates.

case ${1:-} in
  -h | --help) sed -n '2,/^set -eu/{/^set -eu/d;s/^# \{0,1\}//p}' "$0" && exit ;;
esac

fail() {
  printf '\n!! %s\n' "$*" >&2
  exit 1
}

# setting NAME: prints its value in packaging/cpack.cmake.
setting() { sed -n "s/^set($1 \"\([^\"]*\)\".*/\1/p" "$here/cpack.cmake"; }

# make_work: creates the folder $work, which goes with this script.
make_work() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
}

# open_archives FOLDER VERSION [OUT]: unpacks each rlock-VERSION-linux-ARCH.tar.gz of FOLDER as $work/ARCH; $archs lists
# them. Sets $full, the version, and $semver, as npm and tags of images write it; $out, a folder; and the time that all
# files get.
open_archives() {
  [ $# = 2 ] || [ $# = 3 ] || fail "$0: give the folder of the archives and their version, and perhaps a folder for the result"
  from=$(realpath "$1") full=$2 archs=''
  out=$(realpath "${3:-$1}")
  make_work
  umask 022
  for arch in amd64 arm64; do
    [ -e "$from/rlock-$full-linux-$arch.tar.gz" ] || continue
    mkdir "$work/$arch"
    tar -xzf "$from/rlock-$full-linux-$arch.tar.gz" --strip-components=1 --no-same-owner -C "$work/$arch"
    archs="$archs $arch"
    SOURCE_DATE_EPOCH=$(stat -c %Y "$work/$arch/bin/rlock")
  done
  # SemVer has no ~.
  semver=$(echo "$full" | tr '~' -)
  [ -n "$archs" ] || fail "$from has no archive rlock-$full-linux-*.tar.gz"
  export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C.UTF-8
}

# pack FOLDER NAME...: writes a tar archive of these files, with the same bytes for the same files.
pack() {
  folder=$1
  shift
  tar -C "$folder" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX \
    --format=ustar -cf - -- "$@"
}

# description: prints the text that describes rlock in all packages.
description() { sed -n '/^set(CPACK_PACKAGE_DESCRIPTION$/,/")$/{/^set/d;s/^"//;s/")$//;s/^\.$//;p}' "$here/cpack.cmake"; }

# copy_licences ARCH TO: copies those of rlock and of what is linked into it.
copy_licences() {
  cp "$work/$1/share/doc/rlock/LICENSE" "$2/"
  cp "$work/$1/share/doc/rlock/THIRD-PARTY.txt" "$2/"
}
