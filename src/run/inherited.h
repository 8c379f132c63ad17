// SPDX-License-Identifier: MIT
// The inheritance of a process: its folder, and descriptors besides the three standard streams.
#pragma once

#include <vector>

#include "run/folder.h"

namespace rlock::run {

class Inherited {
 public:
  // Looks. To be called before anything is opened.
  static Inherited look();

  const Folder& folder() const { return folder_; }

  // For a process that only watches: lets go of all of it, of standard input and output, and of the folder, so
  // that a pipe ends when the command closes it and a file system can be unmounted. Standard error stays, for
  // messages.
  void let_go() const;

 private:
  Folder folder_;
  std::vector<int> descriptors_;
};

}  // namespace rlock::run
