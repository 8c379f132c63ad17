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
  // src/base/exit_status.h maps each of them to an exit status.
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
