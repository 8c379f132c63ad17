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
      // Without the guard, a server that forgets gives the lock to a second owner.
      {.name = "loss",
       .clients = {plain, plain},
       .ticks = 3,
       .faults = 0,
       .losses = 1,
       .copies = true,
       .expected = "too many hold the lock at once"},
      // A server without a record of earlier leases waits for 30 s, which is three of these ticks.
      {.name = "guarded",
       .clients = {plain, plain},
       .ticks = 4,
       .faults = 0,
       .losses = 1,
       .guarded = true,
       .tick = 10'001ms},
      {.name = "guarded-copy",
       .clients = {plain, plain},
       .ticks = 3,
       .faults = 0,
       .losses = 1,
       .copies = true,
       .guarded = true},
      {.name = "string", .clients = several(3, {.mode = {Kind::set}})},
  };
  return all;
}

}  // namespace rlock::model
