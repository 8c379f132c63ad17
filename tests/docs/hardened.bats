# The program is hardened: readelf(1) and nm(1) read what the compiler has made of it.

load ../lib/common

setup() {
  BUILD=$(dirname "$RLOCK")
  cd "$BATS_TEST_TMPDIR" || return
}

# missing_in PROGRAM: a line for each thing that it lacks.
missing_in() {
  LC_ALL=C readelf -W -h -l -d "$1" >elf
  has() { grep -qE "$2" elf || echo "$1"; }
  has 'addresses that differ from run to run (PIE)' '^ *Type: *DYN '
  has 'a table of addresses that nobody can write (RELRO)' '^ *GNU_RELRO'
  has 'all addresses looked up at the start (BIND_NOW)' '\((FLAGS|FLAGS_1|BIND_NOW)\).*NOW'
  has 'a stack that is no code' '^ *GNU_STACK .* RW '
  ! grep -qE '^ *LOAD .* RWE ' elf || echo 'no memory that can be both written and executed'
}

needs_own_build() {
  [[ -e $BUILD/compile_commands.json && -e $BUILD/librlock_redis.a ]] || skip 'the program under test was not built here'
  ! grep -q fsanitize "$BUILD/compile_commands.json" || skip 'the sanitizers look for such faults by themselves'
}

@test "the program is at another address in each run, and its tables cannot be written" {
  run -0 missing_in "$RLOCK"
  [[ -z $output ]] || { echo "missing: $output" && return 1; }
  # A program without all of it is told from one that has it.
  echo 'int main() {}' >plain.c
  cc -no-pie -Wl,-z,norelro,-z,execstack -o plain plain.c
  [[ $(missing_in ./plain | wc -l) -ge 3 ]]
}

@test "code of rlock watches its stack, its buffers and its containers" {
  needs_own_build
  local flag
  # Nothing was compiled without them.
  for flag in -fPIE -fstack-protector-strong -fstack-clash-protection -D_FORTIFY_SOURCE=3 -D_GLIBCXX_ASSERTIONS; do
    run -1 grep -vE -e "$flag|\"(directory|file|output)\"|^[][{}, ]*$" "$BUILD/compile_commands.json"
  done
  # And they did something: a canary, a copy that knows the size of its target, an index that is compared.
  nm -C "$BUILD"/librlock_*.a >symbols 2>/dev/null
  grep -q ' U __stack_chk_fail$' symbols
  if grep -q ' U std::__glibcxx_assert_fail' symbols; then
    grep -qE ' U __[a-z_]+_chk$' symbols
  else
    # musl has no such functions, and libc++ ends the program by an instruction.
    [[ -n $(sed -n 's/^RLOCK_PARTS:PATH=//p' "$BUILD/CMakeCache.txt") ]]
  fi
  # The processor's own marks for jumps (Intel, AMD; on ARM the symbol is another, and the mark is the same section).
  ar p "$BUILD/librlock_base.a" text.cc.o >text.o
  LC_ALL=C readelf -nW text.o >notes
  case $(uname -m) in
    x86_64) grep -q 'x86 feature: .*IBT.*SHSTK' notes ;;
    aarch64) grep -q 'AArch64 feature: .*BTI.*PAC' notes ;;
  esac
}
