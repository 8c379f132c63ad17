// SPDX-License-Identifier: MIT
// The inheritance of a process: its folder, and descriptors besides the three standard streams.
#pragma once

#include <string>
#include <vector>

namespace rlock::run {

class Inherited {
 public:
  // Looks. To be called before anything is opened.
  static Inherited look();

  const std::string& folder() const { return folder_; }  // "/" where it has no name

  // For a process that only watches: lets go of all of it, of standard input and output, and of the folder, so
  // that a pipe ends when the command closes it and a file system can be unmounted. Standard error stays, for
  // messages.
  void let_go() const;

 private:
  std::string folder_ = "/";
  std::vector<int> descriptors_;
};

}  // namespace rlock::run
