// SPDX-License-Identifier: MIT
#include "verbs/mode.h"

#include <cctype>

namespace rlock::lock {

constexpr long long kHighest = 1'000'000;  // a number of a slot is less

std::string permit_of(const std::string& owner) {
  std::string digits;
  for (const char c : owner) {
    if (digits.size() == 32) break;
    if (c == '-') continue;
    if (!std::isxdigit(static_cast<unsigned char>(c))) return "";
    digits += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return digits.size() == 32 ? digits : "";
}

std::string_view noun(Layout layout) {
  constexpr std::string_view kNouns[] = {"plain lock", "read-write lock", "semaphore", "string lock"};
  return kNouns[static_cast<int>(layout)];
}

std::optional<Layout> OtherKind::layout() const {
  for (const Layout layout : {Layout::plain, Layout::read_write, Layout::semaphore}) {
    if (!foreign && noun(layout) == what) return layout;
  }
  return {};
}

std::string_view OtherKind::perhaps() const {
  if (!foreign) return "";
  if (what == "string" && expires_in) return "a lock that redis-py, Redlock or a script has taken with SET NX";
  if (what == "zset" && expires_in) return "a lock of Symfony, or an application's data";
  if (guess == "number") {
    return "a counter, or Redisson's RSemaphore or RCountDownLatch; an RPermitExpirableSemaphore without holders looks "
           "the same";
  }
  if (guess == "multilock") return "Redisson's RMultiLock of one group, getMultiLock(group, values)";
  if (guess == "timeless") return "another program's lock (those of rlock and Redisson always expire)";
  return what == "string" ? "an application's data, or a lock taken with SETNX" : "an application's data";
}

std::string OtherKind::text() const {
  std::string text = "a " + escaped(what, 100);
  if (!foreign) return text;
  text += expires_in ? " that expires in " + rough_duration(*expires_in) : " that never expires";
  return text + ", perhaps " + std::string(perhaps());
}

Layout Mode::layout() const {
  constexpr Layout kLayouts[] = {Layout::plain, Layout::read_write, Layout::read_write, Layout::semaphore,
                                 Layout::string};
  return kLayouts[static_cast<int>(kind)];
}

std::string Lock::channel() const {
  switch (layout) {
    case Layout::plain:
    case Layout::string: break;  // only waiters of rlock listen there
    case Layout::read_write: return name.companion(lua::kRwReleases);
    case Layout::semaphore: return name.companion(lua::kSlotReleases);
  }
  return name.companion(lua::kReleases);
}

std::string Lock::description_key(const std::string& owner) const {
  if (has_one_holder()) return name.holder_key();
  return name.hold_key_prefix() + (layout == Layout::semaphore ? permit_of(owner) : owner);
}

std::optional<NameRange> NameRange::in(std::string_view item) {
  const std::size_t open = item.find('['), close = item.find(']');
  const bool bracketed = open < close && close != item.npos;
  const std::string_view numbers = bracketed ? item.substr(open + 1, close - open - 1) : item;
  const std::string_view between = bracketed ? "-" : "..";
  const std::size_t at = std::min(numbers.find(between), numbers.size());
  const std::string_view left = numbers.substr(0, at),
                         right = numbers.substr(std::min(at + between.size(), numbers.size()));
  const auto first = whole_number(left), last = whole_number(right);
  if (!first || !last || *first < 0 || *last < *first || *last - *first >= kMostNames) return {};
  NameRange range{.first = *first, .count = *last - *first + 1, .digits = left.starts_with('0') ? left.size() : 1};
  if (bracketed) range.before = item.substr(0, open), range.after = item.substr(close + 1);
  return range;
}

std::string NameRange::name(long long index) const {
  const std::string number = std::to_string(first + index);
  return before + std::string(digits - std::min(digits, number.size()), '0') + number + after;
}

bool NameRange::has(std::string_view one) const {
  if (one.size() < before.size() + after.size() || !one.starts_with(before) || !one.ends_with(after)) return false;
  const auto number = whole_number(one.substr(before.size(), one.size() - before.size() - after.size()));
  return number && *number >= first && *number - first < count && name(*number - first) == one;
}

long long names_in(const std::vector<std::string>& list) {
  long long count = 0;
  for (const std::string& item : list) {
    const auto range = NameRange::in(item);
    count += range ? range->count : 1;
  }
  return count;
}

std::string name_in(const std::vector<std::string>& list, long long index) {
  for (const std::string& item : list) {
    const auto range = NameRange::in(item);
    const long long count = range ? range->count : 1;
    if (index < count) return range ? range->name(index) : item;
    index -= count;
  }
  return "";
}

bool has_name(const std::vector<std::string>& list, const std::string& name) {
  return std::ranges::any_of(list, [&](const std::string& item) {
    const auto range = NameRange::in(item);
    return range ? range->has(name) : item == name;
  });
}

Slots Slots::read(std::string_view numbers, const std::vector<std::string>& list) {
  Slots slots;
  for (const std::string& word : split(numbers, ' ')) {
    const auto number = whole_number(word);
    if (!number || *number < 0 || *number >= kHighest || slots.numbers.size() == kMostTaken) return {};
    slots.numbers.push_back(static_cast<int>(*number));
    const std::string name = name_in(list, *number);
    if (!name.empty() && !has_control(name)) slots.resources.push_back(name.substr(0, kLongestResource));
  }
  if (slots.resources.size() < slots.numbers.size()) slots.resources.clear();
  return slots;
}

std::string Slots::number_text() const {
  return joined(numbers, " ", [](int number) { return std::to_string(number); });
}

std::string Slots::resource_text() const { return joined(resources, " "); }

}  // namespace rlock::lock
