#!/usr/bin/env bats
# rlock history --html FILE where other users may write: in their folders, over their files, through their links.

# shellcheck disable=SC2154 # srv_dir: set by redis_start

load ../lib/common

setup_file() {
  redis_start srv --unixsocketperm 777
  # For as_nobody.
  chmod 711 "$BATS_RUN_TMPDIR" "$BATS_RUN_TMPDIR/file" "$BATS_RUN_TMPDIR/test" "$BATS_FILE_TMPDIR" "$srv_dir" 2>/dev/null || true
}
teardown_file() { redis_stop srv; }
setup() {
  RLOCK_URL=$(redis_url srv)
  export RLOCK_URL
  cd "$BATS_TEST_TMPDIR" || return
  chmod 755 .
  rlock run --history a -- true
  umask 022
}
teardown() { [[ ! -v protected ]] || sysctl -qw fs.protected_symlinks="$protected" || true; }

needs_root() { [[ $(id -u) == 0 ]] || skip 'ONLY ROOT CAN MAKE FILES OF OTHER USERS: what they may lead astray is not tested'; }
mode() { stat -c '%u %a' "$1"; }
no_leftovers() { [[ -z $(find . -name '*.rlock-*') ]]; }

# with_protection COMMAND...: with fs.protected_symlinks 0 and 1, if it can be set here.
with_protection() {
  local value
  [[ -v protected ]] || protected=$(</proc/sys/fs/protected_symlinks)
  for value in 1 0; do
    sysctl -qw fs.protected_symlinks=$value 2>/dev/null || [[ $protected == "$value" ]] || continue
    "$@"
  done
}

@test "a page that replaces another user's file has no set-id, sticky or execute bit; no other group can read it" {
  needs_root
  local bits
  mkdir theirs
  for bits in 6777 4755 2775 1777 600 444; do
    echo old >theirs/page.html
    chown 65534:65534 theirs theirs/page.html
    chmod "$bits" theirs/page.html
    rlock history --html theirs/page.html
    [[ $(mode theirs/page.html) == '0 644' && $(tail -n 1 theirs/page.html) == '</html>' ]]
  done
  no_leftovers
  echo old >page.html
  chown 0:65534 page.html
  chmod 640 page.html
  rlock history --html page.html
  [[ $(stat -c '%g %a' page.html) == '65534 640' ]]
}

@test "a page that replaces our own file keeps its permissions to read and write, and no others" {
  local bits wanted
  while read -r bits wanted; do
    echo old >page.html
    chmod "$bits" page.html
    rlock history --html page.html
    [[ $(mode page.html) == "$(id -u) $wanted" ]]
  done <<'MODES'
6755 644
4711 600
755 644
640 640
600 600
606 604
666 644
660 640
6777 644
MODES
  rm page.html
  (umask 077 && rlock history --html page.html)
  [[ $(mode page.html) == "$(id -u) 600" ]]
}

@test "a file that open(2) would not let us write is kept" {
  needs_root
  needs_nobody
  mkdir -m 777 open
  echo root >open/page.html
  run -71 --separate-stderr as_nobody "$RLOCK" history --html open/page.html
  [[ $stderr == *'open/page.html: Permission denied'* && $(<open/page.html) == root ]]
  # It is not ours, but everybody may write to it.
  chmod 666 open/page.html
  run -0 --separate-stderr as_nobody "$RLOCK" history --html open/page.html
  [[ $(mode open/page.html) == '65534 644' ]]
}

# refused LINK: no page is written through it, and it stays unchanged.
refused() {
  local before
  before=$(stat -c '%N %u' "$1")
  run -78 --separate-stderr rlock history --html "$1"
  [[ $stderr == *"$1: rlock does not follow this link, because it $2"*'name the file that it leads to' ]]
  [[ $(stat -c '%N %u' "$1") == "$before" && $(<target) == mine && ! -e new ]]
}

@test "a link in a sticky folder is refused, regardless of its owner and fs.protected_symlinks" {
  echo mine >target
  mkdir -m 1777 sticky
  ln -s ../target sticky/own
  ln -s ../new sticky/to-nothing
  ln -s .. sticky/folder
  ln -s sticky/own to-own
  [[ $(id -u) != 0 ]] || chown -h 65534 sticky/to-nothing sticky/folder
  each() {
    refused sticky/own 'is in a folder in which others may create links'
    refused sticky/to-nothing 'is in a folder'
    run -78 --separate-stderr rlock history --html to-own
    [[ $stderr == *'sticky/own: rlock does not follow this link'* && $(<target) == mine ]]
    run -78 --separate-stderr rlock history --html sticky/folder/target
    [[ $stderr == *'sticky/folder: rlock does not follow this link'* && $(<target) == mine ]]
  }
  with_protection each
  # Without a link it works.
  rlock history --html sticky/page.html
  rlock history --html sticky/page.html
  [[ $(mode sticky/page.html) == "$(id -u) 644" ]]
}

@test "a link of another user is refused, unless the folder is also theirs and we are not root; root's is followed" {
  needs_root
  needs_nobody
  echo mine >target
  mkdir -m 777 open
  mkdir theirs group
  mkdir -m 777 pages
  chmod 775 group
  ln -s ../target open/theirs
  ln -s ../target group/theirs
  ln -s ../target theirs/page.html
  ln -s ../pages/page.html theirs/other.html
  ln -s ../pages/of-root.html theirs/of-root
  ln -s ../pages theirs/folder
  chown -h 65534 open/theirs group/theirs
  chown -h 61234 theirs theirs/page.html theirs/other.html
  each() {
    refused open/theirs 'belongs to another user (id 65534)'
    refused group/theirs 'belongs to another user (id 65534)'
    refused theirs/page.html 'belongs to another user (id 61234)'
  }
  with_protection each
  as_nobody "$RLOCK" history --html theirs/other.html
  [[ -L theirs/other.html && $(tail -n 1 pages/page.html) == '</html>' ]]
  as_nobody "$RLOCK" history --html theirs/of-root
  as_nobody "$RLOCK" history --html theirs/folder/second.html
  [[ $(ls pages) == $'of-root.html\npage.html\nsecond.html' ]]
}

@test "a file or a pipe that another user has put into a sticky folder is not written to; a pipe is not waited for anywhere" {
  needs_root
  mkdir -m 1777 sticky
  mkdir theirs
  echo theirs >sticky/file
  mkfifo -m 666 sticky/pipe theirs/pipe
  chown -R 65534 sticky/file sticky/pipe theirs
  local name
  for name in file pipe; do
    run -78 --separate-stderr rlock history --html "sticky/$name"
    [[ $stderr == *"sticky/$name: not written, because it belongs to another user (id 65534) and is in a folder in which others may create files; name another file"* ]]
  done
  [[ $(<sticky/file) == theirs ]]
  run -78 --separate-stderr rlock history --html theirs/pipe
  [[ $stderr == *'theirs/pipe: not written, because it is a pipe that belongs to another user (id 65534); name another file'* ]]
}

@test "a folder that is replaced while the page is written is not written to" {
  command -v strace >/dev/null && strace true 2>/dev/null || skip 'NO STRACE HERE: a folder that is exchanged meanwhile is not tested'
  mkdir pages elsewhere
  strace -f -qq -o trace -e trace=renameat,rename,renameat2 -e inject=renameat,rename,renameat2:delay_enter=3s \
    "$RLOCK" history --html pages/page.html 3>&- &
  local writer=$!
  written() { ls pages/page.html.rlock-*; }
  wait_until written
  mv pages moved
  ln -s elsewhere pages
  wait "$writer"
  [[ $(ls moved) == page.html && -z $(ls elsewhere) ]]
}

# For the user 65534 and the file's group, which has no right: acl(5), in the kernel's form.
give_list() {
  python3 - "$1" "$2" <<'PY'
import os, struct, sys
entries = [(1, 6, 0xffffffff), (2, 4, 65534), (4, 0, 0xffffffff), (16, 6, 0xffffffff), (32, 0, 0xffffffff)]
os.setxattr(sys.argv[1], sys.argv[2], struct.pack('<I', 2) + b''.join(struct.pack('<HHI', *one) for one in entries))
PY
}

@test "a page that replaces one with an access control list is no more open than that was" {
  echo old >page.html
  give_list page.html system.posix_acl_access 2>/dev/null || skip 'this file system has no access control lists'
  [[ $(mode page.html) == "$(id -u) 660" ]]
  rlock history --html page.html
  [[ $(mode page.html) == "$(id -u) 600" ]]
  # If the folder has a default list for new files, that does not open a closed page.
  mkdir folder
  give_list folder system.posix_acl_default
  echo old >folder/page.html
  python3 -c 'import os; os.removexattr("folder/page.html", "system.posix_acl_access")'
  chmod 660 folder/page.html
  (umask 077 && rlock history --html folder/page.html)
  [[ $(mode folder/page.html) == "$(id -u) 600" ]]
  run -1 python3 -c 'import os; os.getxattr("folder/page.html", "system.posix_acl_access")'
}
