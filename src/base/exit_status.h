// SPDX-License-Identifier: MIT
// All exit statuses of rlock, in the order of the man page. The numbers come from sysexits.h where one fits; 126 and
// 127 come from POSIX sh.
#pragma once

#include "base/error.h"

namespace rlock {

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
    case Error::Code::interrupted:
    case Error::Code::internal: return kInternal;
  }
  return kInternal;
}

}  // namespace rlock
