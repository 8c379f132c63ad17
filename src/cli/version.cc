// SPDX-License-Identifier: MIT
#include "cli/version.h"

#include <string_view>

#include "base/log.h"
#include "options/parse.h"
#include "redis/reply.h"
#include "redis/resolve.h"
#include "redis/tls.h"
#include "show/json.h"

namespace rlock::cli {

std::string version_text() {
  std::string text = "rlock " RLOCK_VERSION "\n";
  if (!std::string_view(build_commit()).empty()) text += "commit " + std::string(build_commit()) + "\n";
  return text + "with " + redis::protocol_library() + ", " + redis::resolver_library() + ", " + redis::tls_library() +
         ", " + line_library() + ", " + json_library() + ", " + log::library() + "\n";
}

}  // namespace rlock::cli
