// SPDX-License-Identifier: MIT
#include "configuration.h"

namespace rlock::model {
namespace {

using Kind = lock::Mode::Kind;

std::vector<Role> several(int number, const Role& role) { return {static_cast<std::size_t>(number), role}; }

}  // namespace

const std::vector<Configuration>& configurations() {
  static const Role plain, read{.mode = {Kind::read}}, write{.mode = {Kind::write}};
  static const std::vector<Configuration> all = {
      {.name = "plain", .clients = several(3, plain)},
      {.name = "read-write", .clients = {read, read, write}},
      {.name = "slots", .clients = several(3, {.mode = {Kind::slots, 2}})},
      {.name = "string", .clients = several(3, {.mode = {Kind::set}})},
  };
  return all;
}

}  // namespace rlock::model
