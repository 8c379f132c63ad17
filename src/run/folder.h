// SPDX-License-Identifier: MIT
#pragma once

#include <string>

namespace rlock::run {

// The current folder, for a process that leaves it, so that it can be unmounted, and goes back for a text of the user. A
// folder whose path cannot be entered, as one below the home of another user after sudo(8), is never left.
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

}  // namespace rlock::run
