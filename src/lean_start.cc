// SPDX-License-Identifier: MIT
// Libraries prepare things before main() that most jobs do not need, and each job pays for its start. The linker puts
// these functions in the place of the libraries' own (--wrap, ld(1), in CMakeLists.txt); docs/performance.md has the gain
// of each. Where a library has no such function, or calls it from within, the linker leaves everything as it is.

namespace {

bool begun = false;

// With the constructors, which run after .init, where OpenSSL's call stands.
[[gnu::constructor]] void begin() { begun = true; }

}  // namespace

extern "C" {

// OpenSSL asks the processor what it can do: CPUID instructions, each of which a hypervisor sees. It does that before
// main(), and again when TLS begins (OPENSSL_init_crypto), which is early enough.
void __real_OPENSSL_cpuid_setup();
void __wrap_OPENSSL_cpuid_setup();
void __wrap_OPENSSL_cpuid_setup() {
  if (begun) __real_OPENSSL_cpuid_setup();
}

// libc asks for the path of the program, /proc/self/exe, for modules that stand beside it. rlock loads none. The reply is
// libc's own where the path is not known.
const char* __wrap__dl_get_origin();
const char* __wrap__dl_get_origin() { return reinterpret_cast<const char*>(-1); }

}  // extern "C"
