// SPDX-License-Identifier: MIT
// Failures as values.
//
// A Result<T> is either a T or an Error. Outcomes that a caller decides on (the lock is held by
// another, the owner is wrong) are not errors: they are enums in the result of the call.
#pragma once

#include <cerrno>
#include <cstring>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

namespace rlock {

struct [[nodiscard]] Error {
  // The kind of failure, as far as anybody acts on it. src/base/exit_status.h maps each to a status.
  enum class Code {
    usage,        // the command line is wrong
    config,       // a configuration file, a variable or the server's set-up is wrong
    unavailable,  // no server could be reached, or it cannot serve now; trying again may help
    untrusted,    // the server is not the one that is meant, as TLS shows; trying again does not help
    denied,       // authentication or a missing right; trying again does not help
    wrong_kind,   // the key is in use for something else
    no_script,    // the server does not know the script that was named: nothing was executed
    protocol,     // the peer did not answer as Redis does, or refused a command it should know
    interrupted,  // a signal asked us to stop
    system,       // the operating system refused something
    internal,     // a fault of rlock
  };

  Code code;
  std::string message;  // context first, then the cause; never a secret

  // Only with unavailable, protocol and interrupted: the bytes of a command had been sent when it failed,
  // so the server may have executed it.
  bool maybe_executed = false;

  // The same error with more context in front: "context: message".
  Error in(std::string_view context) && {
    message.insert(0, ": ").insert(0, context);
    return std::move(*this);
  }
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(Error::Code code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// The text of an errno value; safe in threads: POSIX lets strerror(3) use a buffer that all of them share, glibc 2.32
// and musl have none.
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
