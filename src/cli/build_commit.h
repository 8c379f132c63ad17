// SPDX-License-Identifier: MIT
#pragma once

namespace rlock::cli {

// The commit that this program was built from, "-dirty" if the files differed from it; empty where that is not known,
// as in a release's archive. src/cli/build_commit.cmake writes it at each build.
const char* build_commit();

}  // namespace rlock::cli
