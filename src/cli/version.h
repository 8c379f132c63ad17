// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace rlock::cli {

// The text of `rlock --version`: the version, the commit it was built from, and the libraries in it.
std::string version_text();

// The commit that this program was built from, "-dirty" if the files differed from it; empty if that is not known,
// as in a release's archive. src/cli/build_commit.cmake writes it at each build.
const char* build_commit();

}  // namespace rlock::cli
