// SPDX-License-Identifier: MIT
#include "configuration.h"

namespace rlock::model {
namespace {

using Kind = lock::Mode::Kind;

std::vector<Role> several(int number, const Role& role) { return {static_cast<std::size_t>(number), role}; }

// Some of two slots with names.
lock::Mode pool_for(int taken) { return {.kind = Kind::slots, .slots = 2, .taken = taken, .resources = {"a", "b"}}; }

}  // namespace

const std::vector<Configuration>& configurations() {
  static const Role plain, longer{.lease = 20s}, java{.java = true}, read{.mode = {Kind::read}},
      write{.mode = {Kind::write}}, once{.once = true}, replacing{.replaces = true};
  static const std::vector<Configuration> all = {
      {.name = "plain", .clients = several(3, plain), .ticks = 3, .faults = 1},
      // One that has waited for a tick is ahead of the next one with a higher priority.
      {.name = "aging", .clients = {plain, plain, {.priority = 1, .aging = 4s}}, .ticks = 2, .faults = 1},
      {.name = "replacing", .clients = {plain, plain, replacing, replacing}, .ticks = 1, .faults = 1},
      {.name = "plain-pair", .clients = several(2, plain), .ticks = 4, .faults = 3},
      {.name = "read-write", .clients = {read, read, write}, .ticks = 3, .faults = 1},
      {.name = "slots", .clients = several(3, {.mode = {Kind::slots, 2}}), .ticks = 3, .faults = 1},
      {.name = "pool",
       .clients = {{.mode = pool_for(1)}, {.mode = pool_for(1)}, {.mode = pool_for(2)}},
       .ticks = 3,
       .faults = 1},
      {.name = "pool-pair", .clients = {{.mode = pool_for(1)}, {.mode = pool_for(2)}}, .ticks = 4, .faults = 2},
      {.name = "string", .clients = several(3, {.mode = {Kind::set}}), .ticks = 3, .faults = 1},
      {.name = "mixed", .clients = {plain, plain, java}, .ticks = 3, .faults = 1},
      {.name = "jobs", .clients = several(2, plain), .ticks = 3, .attempts = 2, .faults = 1},
      {.name = "once", .clients = several(3, once), .ticks = 3, .faults = 1},
      {.name = "once-pair", .clients = several(2, once), .ticks = 3, .attempts = 2, .faults = 1},
      {.name = "once-mixed", .clients = {once, once, plain}, .ticks = 2, .faults = 1},
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
       .clients = {plain, longer},
       .ticks = 4,
       .faults = 0,
       .losses = 1,
       .guarded = true,
       .tick = 10'001ms},
      {.name = "guarded-copy",
       .clients = {plain, longer},
       .ticks = 3,
       .faults = 0,
       .losses = 1,
       .copies = true,
       .guarded = true},
      {.name = "guarded-sentinels",
       .clients = {plain, longer},
       .ticks = 3,
       .faults = 0,
       .losses = 1,
       .copies = true,
       .guarded = true,
       .sentinels = true},
      // What the guard cannot know: a lease that was longer than all before, and was forgotten together with its
      // record.
      {.name = "guarded-longer",
       .clients = {plain, {.is_new = true, .lease = 20s}},
       .ticks = 4,
       .faults = 0,
       .losses = 1,
       .copies = true,
       .guarded = true,
       .expected = "too many hold the lock at once"},
  };
  return all;
}

}  // namespace rlock::model
