// SPDX-License-Identifier: MIT
// One thing that `rlock doctor` has looked at.
#pragma once

#include <string>
#include <string_view>

namespace rlock::cli {

enum class Verdict { ok, warn, fail };

constexpr std::string_view word(Verdict verdict) {
  return verdict == Verdict::ok ? "ok" : verdict == Verdict::warn ? "warn" : "fail";
}

struct Check {
  Verdict verdict = Verdict::ok;
  std::string_view name;
  std::string seen;    // escaped
  std::string advice;  // what to do; empty where all is well
};

}  // namespace rlock::cli
