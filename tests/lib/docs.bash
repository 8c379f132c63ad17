# The examples in the documents. Source it after common.

# stand_ins TEXT NAME...: puts the program under test and a folder `bin` into PATH, and creates programs, each of which adds
# a line to the file `calls`: its name, what a shell makes of TEXT, and the lock that it runs under.
stand_ins() {
  local text=$1 program
  shift
  mkdir bin
  ln -s "$(realpath "$RLOCK")" bin/rlock
  for program; do
    printf '#!/bin/sh\necho "%s%s under $(echo $RLOCK_NAME)" >>"%s/calls"\n' "${program##*/}" "$text" "$PWD" >"$program"
    chmod +x "$program"
  done
  PATH=$PWD/bin:$PATH
}

# blocks [DOCUMENT]: its shell blocks that are marked as tested, as block.1, block.2 … in this folder; by default those
# of the README and of guarantees.md.
blocks() {
  local root=$TESTS_DIR/..
  (($#)) || set -- "$root/README.md" "$root/docs/guarantees.md"
  awk '/^```sh$/ { getline line; inside = (line == "# tested"); if (inside) { n++; next } }
       /^```$/ { inside = 0 }
       inside { print > ("block." n) }' "$@"
}

# rare SUBCOMMAND: its options that --help leaves to the man page.
rare() {
  case $1 in
    run) printf '%s\n' --resize --java-semaphore --priority-aging --hook-timeout --once-status --keep ;;
    acquire) printf '%s\n' --resize --java-semaphore --priority-aging ;;
  esac
}

# help_of SUBCOMMAND: its help, with the rows of the common options, which `rlock --help` explains.
help_of() {
  "$RLOCK" "$1" --help
  "$RLOCK" --help | sed -n '/^Options of all/,$p'
}
