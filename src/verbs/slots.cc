// SPDX-License-Identifier: MIT
#include "verbs/slots.h"

#include "base/text.h"

namespace rlock::lock {

Slots Slots::read(std::string_view numbers, const std::vector<std::string>& names) {
  constexpr long long kHighest = 1'000'000;
  Slots slots;
  for (const std::string& word : split(numbers, ' ')) {
    const auto number = whole_number(word);
    if (!number || *number < 0 || *number > kHighest || slots.numbers.size() == kMostTaken) return {};
    slots.numbers.push_back(static_cast<int>(*number));
    if (static_cast<std::size_t>(*number) < names.size()) {
      slots.resources.push_back(names[static_cast<std::size_t>(*number)]);
    }
  }
  if (slots.resources.size() < slots.numbers.size()) slots.resources.clear();
  return slots;
}

std::string Slots::number_text() const {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : " ") + std::to_string(number);
  return text;
}

std::string Slots::resource_text() const { return joined(resources, " "); }

}  // namespace rlock::lock
