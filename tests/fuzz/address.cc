// SPDX-License-Identifier: MIT
// Addresses: one that is read can be written and read again, and is shown without its password.
#include "redis/address.h"

#include "fuzz.h"

void fuzz(std::string_view bytes) {
  using namespace rlock::redis;
  for (const std::string_view part : split_addresses(bytes)) check(bytes.contains(part));
  const auto address = parse_address(bytes);
  if (!address) return check(!address.error().message.empty());
  const auto again = parse_address(address->url());
  check(again && again->url() == address->url());
  const std::string_view password = password_in(bytes);
  check(password.empty() || bytes.contains(password));
}
