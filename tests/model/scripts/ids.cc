// SPDX-License-Identifier: MIT
#include "ids.h"

#include <cstdio>

namespace rlock::model {
namespace {

using std::string_view_literals::operator""sv;

// What comes before the attempt and the client.
constexpr std::string_view kText = "7ac0ffee-0000-4000-8000-00000000", kDigits =
                                                                           "7ac0ffee000040008000"
                                                                           "00000000";
constexpr std::string_view kBytes = "\x7a\xc0\xff\xee\x00\x00\x40\x00\x80\x00\x00\x00\x00\x00"sv;

// Attempts of requests that release have this added.
constexpr int kRelease = 0x80;

std::string uuid(int attempt, int client) {
  char numbers[8];
  std::snprintf(numbers, sizeof numbers, "%02x%02x", attempt & 0xff, client & 0xff);
  return std::string(kText) + numbers;
}

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// Where the attempt and the client are after a match at `at`.
struct Place {
  std::size_t at;
  bool raw;
};

std::optional<Place> next_id(std::string_view text, std::size_t from) {
  std::optional<Place> first;
  for (const std::string_view form : {kText, kDigits, kBytes}) {
    const std::size_t found = text.find(form, from);
    if (found == std::string_view::npos) continue;
    const Place place{found + form.size(), form == kBytes};
    if (place.at + (place.raw ? 2 : 4) <= text.size() && (!first || place.at < first->at)) first = place;
  }
  return first;
}

}  // namespace

std::string uuid_of(Who who) { return uuid(who.attempt, who.client); }
std::string release_id_of(Who who) { return uuid(who.attempt | kRelease, who.client); }

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
