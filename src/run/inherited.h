// SPDX-License-Identifier: MIT
// The inheritance of a process: its folder, and descriptors besides the three standard streams.
#pragma once

#include <string>
#include <vector>

namespace rlock::run {

// The current folder, for a process that leaves it, so that it can be unmounted, and goes back for a text of the user.
// A folder whose path cannot be entered, as one below the home of another user after sudo(8), is never left.
class Folder {
 public:
  static Folder current();

  const std::string& path() const { return path_; }  // "/" where it has no name

  // False: errno says why. Both may be called between fork(2) and exec(2).
  bool leave() const;
  bool enter() const;

 private:
  std::string path_ = "/";
  bool stays_ = false;
};

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
