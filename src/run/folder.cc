// SPDX-License-Identifier: MIT
#include "run/folder.h"

#include <limits.h>
#include <unistd.h>

namespace rlock::run {

Folder Folder::current() {
  Folder folder;
  char path[PATH_MAX];
  if (getcwd(path, sizeof path)) folder.path_ = path;
  folder.stays_ = access(folder.path_.c_str(), X_OK) != 0;
  return folder;
}

bool Folder::leave() const { return stays_ || chdir("/") == 0; }

bool Folder::enter() const { return stays_ || chdir(path_.c_str()) == 0; }

}  // namespace rlock::run
