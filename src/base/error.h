// SPDX-License-Identifier: MIT
// Failures as values: a Result<T> is either a T or an Error. Outcomes that a caller must decide on (another owner holds
// the lock) are not errors, but enums in the result of the call.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace rlock {

struct [[nodiscard]] Error {
  enum class Code {
    usage,        // the command line is wrong
    config,       // a configuration file, a variable or the server's configuration is wrong
    unavailable,  // no server can be reached or used now; trying again may help
    untrusted,    // TLS shows that this is not the right server; trying again does not help
    denied,       // authentication failed, or a right is missing; trying again does not help
    wrong_kind,   // the key is in use for something else
    no_script,    // the server does not know the script, so it has executed nothing
    protocol,     // the server did not answer as Redis does, or refused a command that it should know
    interrupted,  // a signal asks rlock to stop
    system,       // the operating system refused something
    internal,     // a bug in rlock
  };

  Code code;
  std::string message;  // context first, then the cause; never a secret

  // Only with unavailable, protocol and interrupted: the failure came after the bytes of a command were sent, so the
  // server may have executed it.
  bool maybe_executed = false;

  // The same error with more context in front: "context: message".
  Error in(std::string_view context) && {
    message.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

// All exit statuses of rlock, in the order of the man page. The numbers are those of sysexits.h or of POSIX sh.
enum ExitStatus : int {
  kDone = 0,
  kFree = 1,         // status --is-held; force-unlock: no such lock is known
  kWarned = kFree,   // doctor
  kNothing = kFree,  // release --forget: there is nothing to forget; status --succeeded-within: no success
  kUsage = 64,
  kUnavailable = 69,  // no usable Redis
  kInternal = 70,
  kSystem = 71,
  kLost = 74,  // the lock was lost, or may have been lost, while the command ran
  kNotAcquired = 75,
  kNotOurs = 76,  // wrong type, another kind of lock, another owner
  kDenied = 77,
  kConfig = 78,
  kTimedOut = 124,  // --max-hold; the same as timeout(1)
  kNotExecutable = 126,
  kNotFound = 127,
};

// The only map from failures to statuses.
constexpr ExitStatus status_of(Error::Code code) {
  switch (code) {
    case Error::Code::usage: return kUsage;
    case Error::Code::config: return kConfig;
    case Error::Code::unavailable:
    case Error::Code::untrusted:
    case Error::Code::no_script:
    case Error::Code::protocol: return kUnavailable;
    case Error::Code::denied: return kDenied;
    case Error::Code::wrong_kind: return kNotOurs;
    case Error::Code::system: return kSystem;
    default: return kInternal;
  }
}

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Error::Code code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// The text of an errno value. Safe in threads, because strerror(3) of glibc 2.32 and musl has no shared buffer.
inline std::string errno_text(int number) { return std::strerror(number); }

// "context: cause of errno", as an Error::Code::system.
inline Error system_error(std::string_view context, int number = errno) {
  return {Error::Code::system, std::string(context) + ": " + errno_text(number)};
}

}  // namespace rlock

// Evaluates to the value of a Result, or returns its error from the calling function.
#define RLOCK_TRY(expression)                                                   \
  __extension__({                                                               \
    auto rlock_result = (expression);                                           \
    if (!rlock_result) return std::unexpected(std::move(rlock_result).error()); \
    *std::move(rlock_result);                                                   \
  })
