# shellcheck shell=sh disable=SC2016 # text for another shell
# Sourced after packaging/install.sh by scripts that test in a bare root of another distribution. Reads the options that all
# of them have, and leaves the script's own and its arguments.
fresh=''
while :; do
  case ${1:-} in
    --fresh) fresh=yes && shift ;;
    -h | --help) sed -n '2,/^# shellcheck/{/^# shellcheck/d;s/^# \{0,1\}//p}' "packaging/${0##*/}" && exit ;;
    *) break ;;
  esac
done

# in_store DISTRO: checks DISTRO, and creates $store, where bare roots are kept, with the temporary folder $new.
in_store() {
  distro=${1:-}
  case $distro in
    debian-12 | debian-13 | ubuntu-24.04) ;;
    *) fail "'$distro' is neither an option nor debian-12, debian-13 or ubuntu-24.04; see packaging/${0##*/} --help" ;;
  esac
  [ "$(id -u)" = 0 ] || fail "only root can create the root of another system: sudo $0 $distro"
  store=${TRY_ON_ROOT:-/var/tmp/rlock-try-on}
  mkdir -p "$store/packages-$distro"
  new=$(mktemp -d "$store/new.XXXX")
  trap 'rm -rf "$new"' EXIT
  trap 'exit 1' HUP INT TERM
}

# inside ROOT COMMAND...: runs it in namespaces of its own, so that all processes and mounts end with it.
inside() {
  root=$1
  shift
  cp -L /etc/resolv.conf "$root/etc/resolv.conf"
  env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    ${JOBS:+JOBS="$JOBS"} ${REDIS_SERVER:+REDIS_SERVER="$REDIS_SERVER"} \
    unshare --mount --pid --ipc --fork --kill-child sh -euc '
      root=$1 packages=$2
      shift 2
      mount --bind "$root" "$root"  # as on real machines, / is a mount point
      mount -t proc proc "$root/proc"
      mount -t sysfs -o ro sysfs "$root/sys"
      mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
      mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts "$root/dev/pts"
      mount --bind "$root/dev/pts/ptmx" "$root/dev/ptmx"
      mount --bind "$packages" "$root/var/cache/apt/archives"
      # No exec, because the shell is process 1 and must reap orphans.
      chroot "$root" "$@" </dev/null
      exit $?' sh "$root" "$store/packages-$distro" "$@"
}

# install_in ROOT PACKAGE...
install_in() {
  root=$1
  shift
  inside "$root" sh -euc 'export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1
    apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@" >/dev/null' sh "$@"
}

# bare DISTRO: creates $store/DISTRO if it is missing or $fresh is set. Only one script at a time does so.
bare() {
  exec 9>"$store/making"
  flock 9
  make_bare "$1"
  exec 9>&-
}

make_bare() {
  [ -z "$fresh" ] || [ "$1" != "$distro" ] || rm -rf "${store:?}/$1"
  [ ! -d "$store/$1" ] || return 0
  say "Creating a bare root of $1 ..."
  case $1 in
    debian-12) suite=bookworm ;;
    debian-13) suite=trixie ;;
  esac
  case $1 in
    debian-*)
      need_packages debootstrap
      debootstrap --variant=minbase "$suite" "$new/bare" >"$new/log" || {
        tail -n 20 "$new/log" >&2
        fail "debootstrap failed"
      }
      ;;
    ubuntu-24.04)
      # Debian 13 has Ubuntu's keys, and a debootstrap that knows Ubuntu. Ubuntu always has universe.
      make_bare debian-13
      cp -a "$store/debian-13" "$new/maker"
      install_in "$new/maker" debootstrap ubuntu-keyring
      inside "$new/maker" debootstrap --variant=minbase --components=main,universe noble /bare >"$new/log" || {
        tail -n 20 "$new/log" >&2
        fail "debootstrap failed"
      }
      mv "$new/maker/bare" "$new/bare"
      rm -rf "$new/maker"
      ;;
  esac
  rm -rf "$new/bare/var/cache/apt/archives/"*.deb
  mv "$new/bare" "$store/$1"
}
