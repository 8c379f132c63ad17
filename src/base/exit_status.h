// SPDX-License-Identifier: MIT
// Every exit status of rlock, in the order of the man page. The numbers are those of sysexits.h where one
// fits; 126 and 127 are those of POSIX sh.
#pragma once

#include "base/error.h"

namespace rlock {

enum ExitStatus : int {
  kDone = 0,
  kFree = 1,        // status --is-held; force-unlock: no such lock is known
  kWarned = kFree,  // doctor
  kUsage = 64,
  kUnavailable = 69,  // no Redis could be used
  kInternal = 70,
  kSystem = 71,
  kLost = 74,  // the lock was lost or in doubt while the command ran
  kNotAcquired = 75,
  kNotOurs = 76,  // wrong type, other kind of lock, not the owner
  kDenied = 77,
  kConfig = 78,
  kTimedOut = 124,  // --max-hold; as timeout(1)
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
