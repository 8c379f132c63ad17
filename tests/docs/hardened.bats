# The program is hardened: readelf(1) and nm(1) show what the compiler has made of it, /proc what holds while it runs.

load ../lib/common

setup() {
  BUILD=$(dirname "$RLOCK")
  cd "$BATS_TEST_TMPDIR" || return
}

# missing_in PROGRAM: a line for each missing thing.
missing_in() {
  LC_ALL=C readelf -W -h -l -d "$1" >elf
  has() { grep -qE "$2" elf || echo "$1"; }
  has 'addresses that differ from run to run (PIE)' '^ *Type: *DYN '
  has 'a table of addresses that nobody can write (RELRO)' '^ *GNU_RELRO'
  has 'all addresses looked up at the start (BIND_NOW)' '\((FLAGS|FLAGS_1|BIND_NOW)\).*NOW'
  has 'a stack that is no code' '^ *GNU_STACK .* RW '
  ! grep -q TEXTREL elf || echo 'code that nobody writes to'
  ! grep -qE '^ *LOAD .* RWE ' elf || echo 'no memory that can be both written and executed'
}

needs_own_build() {
  [[ -e $BUILD/compile_commands.json && -e $BUILD/librlock_redis.a ]] || skip 'the program under test was not built here'
  ! grep -q fsanitize "$BUILD/compile_commands.json" || skip 'the sanitizers look for such faults by themselves'
}

@test "the program is loaded at a different address each time, and its tables are read-only" {
  run -0 missing_in "$RLOCK"
  [[ -z $output ]] || { echo "missing: $output" && return 1; }
  if grep -qsx 'RLOCK_STATIC:BOOL=ON' "$BUILD/CMakeCache.txt"; then run -1 grep -E 'INTERP|NEEDED' elf; fi
  # A program without all of this is recognized.
  echo 'int main() {}' >plain.c
  cc -no-pie -Wl,-z,norelro,-z,execstack -o plain plain.c
  [[ $(missing_in ./plain | wc -l) -ge 3 ]]
}

# Its header promises it, but a static program of musl has to do it by itself.
@test "the running program cannot write to its tables of addresses" {
  stuck 1 "$RLOCK" --version 3>&- &
  program=$!
  in_its_write() { [[ /proc/$program/exe -ef $RLOCK ]] && in_state "$program" S; }
  wait_until in_its_write
  read -r at size < <(LC_ALL=C readelf -lW "$RLOCK" | awk '/GNU_RELRO/ { print $3, $6 }')
  page=$(getconf PAGESIZE) base='' modes=''
  while read -r range mode offset _ _ file; do
    [[ -n $base || $offset != 00000000 || ! $file -ef $RLOCK ]] || base=0x${range%-*}
    [[ -z $base ]] || ((0x${range#*-} <= (base + at & -page) || 0x${range%-*} >= (base + at + size & -page))) || modes+=$mode,
  done <"/proc/$program/maps"
  echo "modes: $modes"
  [[ $modes =~ ^(r--p,)+$ ]]
  kill "$program"
}

@test "rlock's code checks its stack, its buffers and its containers" {
  needs_own_build
  # Nothing was compiled without them.
  for flag in -fPIE -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS; do
    run -1 grep -vE -e "$flag|\"(directory|file|output)\"|^[][{}, ]*$" "$BUILD/compile_commands.json"
  done
  # And they had an effect: a canary, a copy that knows the size of its target (musl has no such functions).
  nm -C "$BUILD"/librlock_*.a >symbols 2>/dev/null
  grep -q ' U __stack_chk_fail$' symbols
  [[ -n $(sed -n 's/^RLOCK_PARTS:PATH=//p' "$BUILD/CMakeCache.txt") ]] || grep -qE ' U __[a-z_]+_chk$' symbols
  # The processor's own marks for jumps (Intel, AMD; on ARM the symbol differs, and the mark is the same section).
  ar p "$BUILD/librlock_base.a" log.cc.o >text.o
  LC_ALL=C readelf -nW text.o >notes
  case $(uname -m) in
    x86_64) grep -q 'x86 feature: .*IBT.*SHSTK' notes ;;
    aarch64) grep -q 'AArch64 feature: .*BTI.*PAC' notes ;;
  esac
}

@test "access beyond the end of a vector, or to an empty optional, ends the program" {
  needs_own_build
  compile=$(sed -n 's/^ *"command": "\(.*\) -o [^ ]* -c [^ ]*base.log\.cc",*$/\1/p' "$BUILD/compile_commands.json")
  [[ $compile == *-D_GLIBCXX_ASSERTIONS* ]]
  printf '%s\n' '#include <optional>' '#include <vector>' 'int main(int argc, char**) {' '  std::vector<int> three(3);' \
    '  std::optional<int> none;' '  return argc == 1 ? three[2] : argc == 2 ? three[argc + 1] : *none;' '}' >probe.cc
  eval "$compile -O0 -U_FORTIFY_SOURCE -o probe probe.cc"
  ./probe
  run ./probe 1
  ((status > 128))
  run ./probe 1 2
  ((status > 128))
}
