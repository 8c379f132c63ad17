// SPDX-License-Identifier: MIT
#include "redisson.h"

#include <poll.h>

#include "base/wait.h"
#include "java.h"
#include "redis/address.h"
#include "verbs/mode.h"

namespace rlock::sim {
namespace {

constexpr Time kLease = 30 * kSecond, kRenewsEvery = 10 * kSecond;
// Of the lease, without 1 % for the rates of clocks, and half a second for a step.
constexpr Time kReliable = kLease * 99 / 100 - 500 * kMillisecond;

void sleep_until(Time then) { ::poll(nullptr, 0, static_cast<int>((then - world->now()) / kMillisecond + 1)); }

}  // namespace

Redisson::Redisson(Process& process, const std::string& name, const std::string& url, Checker& checker)
    : process_(process),
      name_(name),
      channel_(lock::Lock{*lock::LockName::parse(name)}.channel()),
      server_(redis::parse_addresses(url)->front().server),
      checker_(checker) {}

void Redisson::run_until(Time then) {
  while (world->now() < then) {
    // A request may still be on its way when it has given up.
    owner_ = "00000000-0000-4000-8000-" + std::to_string(100'000'000'000 + process_.number) + ":" +
             std::to_string(++attempts_);
    if (connect() && acquire(world->now() + world->random.spread(kSecond, 60 * kSecond))) {
      hold(world->now() + world->random.spread(100 * kMillisecond, 60 * kSecond));
    }
    sleep_until(world->now() + world->random.spread(kMillisecond, 10 * kSecond));
  }
}

bool Redisson::connect() {
  const Until soon = Until{}.at_most(3s);
  commands_.reset();
  auto commands = redis::Connection::open(server_, soon), messages = redis::Connection::open(server_, soon);
  if (!commands || !messages) return false;
  commands_ = std::move(*commands);
  messages_ = std::move(*messages);
  return messages_->send({"SUBSCRIBE", channel_}, soon) && messages_->receive(soon);
}

std::optional<redis::Reply> Redisson::call(const char* script) {
  if (!commands_) return {};
  const Until soon = Until{}.at_most(3s);
  const std::string lease = std::to_string(kLease / kMillisecond);
  const redis::Words command = {"EVAL", script, "1", name_, owner_, lease, channel_};
  const auto sent = commands_->send(command, soon);
  const auto reply = sent ? commands_->receive(soon) : std::unexpected(sent.error());
  if (reply && !reply->is(redis::Reply::Kind::error)) return *reply;
  commands_.reset();
  return {};
}

bool Redisson::acquire(Time until) {
  while (world->now() < until) {
    const Time sent = world->now();
    const auto reply = call(model::kJavaTakes);
    if (!reply) return false;
    if (reply->as_text() == "granted") {
      valid_until_ = sent + kReliable;
      return true;
    }
    // A message, or the end of the other's lease.
    const Until then =
        Until{}.at_most(milliseconds(std::min<Time>(reply->integer, (until - world->now()) / kMillisecond)));
    if (!messages_->receive(then) && !then.over()) return false;
  }
  return false;
}

void Redisson::hold(Time until) {
  runs_ = world->now() < valid_until_;
  if (runs_) checker_.begins_beside(name_, process_.number, world->now());
  look_at_lease();
  for (Time renews = valid_until_ - kReliable + kRenewsEvery; world->now() < until; renews += kRenewsEvery) {
    sleep_until(std::min(until, renews));
    if (world->now() < renews) continue;
    const Time sent = world->now();
    const auto reply = call(model::kJavaRenews);
    if (!reply) connect();
    if (reply && reply->as_text() == "renewed") valid_until_ = sent + kReliable;
  }
  end();
  call(model::kJavaUnlocks);
}

// Its command goes on when its lease has ended, but it has no lock.
void Redisson::look_at_lease() {
  if (!runs_) return;
  if (world->now() >= valid_until_) return end();
  world->at(valid_until_, [this] { look_at_lease(); });
}

void Redisson::end() {
  if (!std::exchange(runs_, false)) return;
  checker_.ends(name_, process_.number, world->now());
}

}  // namespace rlock::sim
