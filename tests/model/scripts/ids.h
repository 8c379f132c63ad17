// SPDX-License-Identifier: MIT
// The owner ids of the clients. They differ in two hexadecimal digits for the attempt and two for the client, so that a
// client can be renamed wherever its id is stored: as text, as the digits of a permit, or as a permit's raw bytes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rlock::model {

inline constexpr int kMostClients = 4;

// A client's new number by its old one.
using Renaming = std::array<std::uint8_t, kMostClients>;

struct Who {
  int client = 0, attempt = 0;
  bool operator==(const Who&) const = default;
};

// `taken`: how many slots it takes.
std::string owner_of(Who who, int taken);
// The id of the request that releases this owner's hold, or gives up its wait.
std::string release_id_of(Who who);

// The first client that a text names, in any of the three forms.
std::optional<Who> who_in(std::string_view text);

std::string renamed(std::string_view text, const Renaming& renaming);

}  // namespace rlock::model
