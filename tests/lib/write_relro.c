// Runs a program up to its first write(2), and has the program itself store a byte into memory that is to be read-only: the
// first and the last page of its RELRO (PT_GNU_RELRO, elf(5)). A tracer's own write proves nothing, because it ignores
// protections. Prints what became of each store; the first one, onto the stack, is to succeed.
//
//   write_relro PROGRAM [ARG...]       x86-64 and 64-bit ARM
#define _GNU_SOURCE
#include <elf.h>
#include <err.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__x86_64__)
static const unsigned char kCode[] = {0xc6, 0x00, 0x00, 0xcc};  // movb $0, (%rax); int3
#define CALL(r) (r).orig_rax
#define TARGET(r) (r).rax
#define NEXT(r) (r).rip
#define STACK(r) ((r).rsp - 64)
#elif defined(__aarch64__)
static const unsigned char kCode[] = {0x1f, 0x00, 0x00, 0x39, 0x00, 0x00, 0x20, 0xd4};  // strb wzr, [x0]; brk #0
#define CALL(r) (r).regs[8]
#define TARGET(r) (r).regs[0]
#define NEXT(r) (r).pc
#define STACK(r) ((r).sp - 64)
#endif

static void registers(int request, pid_t pid, struct user_regs_struct* to) {
  struct iovec all = {to, sizeof *to};
  if (ptrace(request, pid, NT_PRSTATUS, &all) != 0) err(2, "registers");
}

// Whether the program could store a byte there.
static int stores(pid_t pid, struct user_regs_struct at, unsigned long long where) {
  TARGET(at) = where;
  registers(PTRACE_SETREGSET, pid, &at);
  if (ptrace(PTRACE_CONT, pid, 0, 0) != 0) err(2, "PTRACE_CONT");
  int status;
  if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) errx(2, "it ended");
  siginfo_t how;
  ptrace(PTRACE_GETSIGINFO, pid, 0, &how);
  if (WSTOPSIG(status) == SIGTRAP) return 1;
  if (WSTOPSIG(status) != SIGSEGV || how.si_addr != (void*)where) errx(2, "it stopped with signal %d", WSTOPSIG(status));
  return 0;
}

int main(int argc, char** argv) {
  if (argc < 2) errx(2, "which program?");
  const pid_t pid = fork();
  if (pid == 0) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    execv(argv[1], argv + 1);
    err(2, "%s", argv[1]);
  }
  int status;
  waitpid(pid, &status, 0);
  ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_EXITKILL | PTRACE_O_TRACESYSGOOD);

  // Where it was loaded: the kernel says where its program headers are.
  char name[64];
  snprintf(name, sizeof name, "/proc/%d/auxv", pid);
  Elf64_auxv_t vector[64] = {0};
  unsigned long long headers = 0, page = 0, entry = 0;
  if (read(open(name, O_RDONLY), vector, sizeof vector) <= 0) err(2, "%s", name);
  for (int i = 0; i < 64 && vector[i].a_type != AT_NULL; i++) {
    if (vector[i].a_type == AT_PHDR) headers = vector[i].a_un.a_val;
    if (vector[i].a_type == AT_PAGESZ) page = vector[i].a_un.a_val;
    if (vector[i].a_type == AT_ENTRY) entry = vector[i].a_un.a_val;
  }
  Elf64_Ehdr file;
  Elf64_Phdr segment;
  const int program = open(argv[1], O_RDONLY);
  if (read(program, &file, sizeof file) != sizeof file) err(2, "%s", argv[1]);
  unsigned long long begin = 0, end = 0;
  for (int i = 0; i < file.e_phnum; i++) {
    pread(program, &segment, sizeof segment, file.e_phoff + i * sizeof segment);
    if (segment.p_type != PT_GNU_RELRO) continue;
    begin = (entry - file.e_entry + segment.p_vaddr) & -page;
    end = (entry - file.e_entry + segment.p_vaddr + segment.p_memsz) & -page;
  }
  if (headers == 0 || begin >= end) errx(2, "it has no RELRO");

  struct user_regs_struct at;
  do {
    ptrace(PTRACE_SYSCALL, pid, 0, 0);
    if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status)) errx(2, "it ended without a write");
    registers(PTRACE_GETREGSET, pid, &at);
  } while (WSTOPSIG(status) != (SIGTRAP | 0x80) || CALL(at) != SYS_write);
  ptrace(PTRACE_SYSCALL, pid, 0, 0);
  waitpid(pid, &status, 0);
  registers(PTRACE_GETREGSET, pid, &at);
  CALL(at) = -1;  // this is no call to start again

  long word = ptrace(PTRACE_PEEKTEXT, pid, NEXT(at), 0);
  memcpy(&word, kCode, sizeof kCode);
  if (ptrace(PTRACE_POKETEXT, pid, NEXT(at), word) != 0) err(2, "PTRACE_POKETEXT");
  printf("stack: %s\n", stores(pid, at, STACK(at)) ? "stored" : "refused");
  printf("first byte: %s\n", stores(pid, at, begin) ? "stored" : "refused");
  printf("last byte: %s\n", stores(pid, at, end - 1) ? "stored" : "refused");
  kill(pid, SIGKILL);
}
