// SPDX-License-Identifier: MIT
// Runs scripts as Redis does: Lua 5.1 with redis.call, redis.pcall, cmsgpack, KEYS and ARGV, and the same conversions
// of arguments and replies.
#pragma once

#include <string>
#include <vector>

#include "small_redis.h"

struct lua_State;

namespace rlock::model {

class Interpreter {
 public:
  Interpreter();
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // Compiles a script; returns its number for run(). Ends the program if it does not compile.
  int load(const std::string& name, const std::string& text);

  // An error of the script is a reply, too.
  Reply run(int script, const std::vector<std::string>& keys, const std::vector<std::string>& arguments,
            Session& session);

 private:
  lua_State* lua_;
};

}  // namespace rlock::model
