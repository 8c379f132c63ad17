// SPDX-License-Identifier: MIT
// What a process inherits: its folder, and descriptors besides the three standard streams.
#pragma once

#include <string>
#include <vector>

namespace rlock::run {

// The current folder. A process leaves it, so that it can be unmounted, and returns to run the user's hooks. If its
// path cannot be entered, as after sudo(8) in another user's home, it is never left.
class Folder {
 public:
  static Folder current();

  const std::string& path() const { return path_; }  // "/" if it has none

  // Both return false with errno on failure, and are safe between fork(2) and exec(2).
  bool leave() const;
  bool enter() const;

 private:
  std::string path_ = "/";
  bool stays_ = false;
};

class Inherited {
 public:
  // Call this before anything is opened.
  static Inherited look();

  const Folder& folder() const { return folder_; }

  // Whether it is one of the descriptors.
  bool has(int descriptor) const;

  // Closes all of it, standard input and output, and leaves the folder, so that a pipe ends when the command closes it
  // and a file system can be unmounted. Standard error stays open for messages.
  void let_go() const;

 private:
  Folder folder_;
  std::vector<int> descriptors_;
};

}  // namespace rlock::run
