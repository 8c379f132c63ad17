// SPDX-License-Identifier: MIT
// A shell text that prints the password: tokens that are good for some minutes come from programs.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "base/secret.h"
#include "base/wait.h"
#include "run/inherited.h"

namespace rlock::run {

struct PasswordCommand {
  std::string text;
  std::vector<std::string> environment;  // NAME=value; without secrets
  Folder folder;
};

// Runs the text by /bin/sh -c, and returns what it has printed, without the newline at its end. It has a process group
// of its own, an empty standard input, and our standard error. It gets 10 s, and no more than `until`; then, as after
// its end, the whole group is killed, but for what runs as another user: that is left alone. May be called by several threads.
// Errors: config (it has failed, was not done in time, or has printed nothing or more than Secret::kLongest bytes; it
// cannot be started); interrupted.
Result<Secret> run_password_command(const PasswordCommand& command, const Until& until);

}  // namespace rlock::run
