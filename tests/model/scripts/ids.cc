// SPDX-License-Identifier: MIT
#include "ids.h"

#include <cstdio>

namespace rlock::model {
namespace {

using std::string_view_literals::operator""sv;

// What comes before the attempt and the client, as text and as bytes.
constexpr std::string_view kText = "7ac0ffee", kBytes = "\x7a\xc0\xff\xee"sv;

// Attempts of requests that release have this added.
constexpr int kRelease = 0x80;

// The end says how many slots its owner takes, if several (lua/06_semaphore.lua).
std::string uuid(int attempt, int client, int taken) {
  char rest[32];
  std::snprintf(rest, sizeof rest, "-%02x%02x-%c000-8000-00000000%04x", attempt & 0xff, client & 0xff,
                taken > 1 ? '8' : '4', taken > 1 ? taken & 0xffff : 0);
  return std::string(kText) + rest;
}

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// Where the attempt and the client are after a match at `at`.
struct Place {
  std::size_t at;
  bool raw;
};

std::optional<Place> next_id(std::string_view text, std::size_t from) {
  std::optional<Place> first;
  for (const std::string_view form : {kText, kBytes}) {
    const std::size_t found = text.find(form, from);
    if (found == std::string_view::npos) continue;
    Place place{found + form.size(), form == kBytes};
    if (!place.raw && place.at < text.size() && text[place.at] == '-') ++place.at;
    if (place.at + (place.raw ? 2 : 4) <= text.size() && (!first || place.at < first->at)) first = place;
  }
  return first;
}

}  // namespace

std::string owner_of(Who who, int taken) { return uuid(who.attempt, who.client, taken) + ":1"; }
std::string release_id_of(Who who) { return uuid(who.attempt | kRelease, who.client, 1); }

std::optional<Who> who_in(std::string_view text) {
  const auto place = next_id(text, 0);
  if (!place) return std::nullopt;
  const auto at = [&](std::size_t i) { return text[place->at + i]; };
  if (place->raw) return Who{at(1), static_cast<unsigned char>(at(0)) & ~kRelease};
  return Who{digit(at(3)), (digit(at(0)) * 16 + digit(at(1))) & ~kRelease};
}

std::string renamed(std::string_view text, const Renaming& renaming) {
  std::string result(text);
  std::size_t from = 0;
  while (const auto place = next_id(result, from)) {
    char& client = result[place->at + (place->raw ? 1 : 3)];
    const int number = place->raw ? client : digit(client);
    if (number < kMostClients)
      client = static_cast<char>(renaming[static_cast<std::size_t>(number)] + (place->raw ? 0 : '0'));
    from = place->at;
  }
  return result;
}

}  // namespace rlock::model
