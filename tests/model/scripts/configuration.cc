// SPDX-License-Identifier: MIT
#include "configuration.h"

namespace rlock::model {
namespace {

using Kind = lock::Mode::Kind;

std::vector<Role> several(int number, const Role& role) { return {static_cast<std::size_t>(number), role}; }

}  // namespace

const std::vector<Configuration>& configurations() {
  static const Role plain, java{.java = true}, read{.mode = {Kind::read}}, write{.mode = {Kind::write}};
  static const std::vector<Configuration> all = {
      {.name = "plain", .clients = several(3, plain)},
      {.name = "read-write", .clients = {read, read, write}},
      {.name = "slots", .clients = several(3, {.mode = {Kind::slots, 2}})},
      {.name = "mixed", .clients = {plain, plain, java}},
      {.name = "loss",
       .clients = {plain, plain},
       .faults = 0,
       .losses = 1,
       .expected = "too many hold the lock at once"},
      {.name = "guarded", .clients = {plain, plain}, .ticks = 9, .faults = 0, .losses = 1, .guarded = true},
      {.name = "string", .clients = several(3, {.mode = {Kind::set}})},
  };
  return all;
}

}  // namespace rlock::model
