// SPDX-License-Identifier: MIT
#include "lock/servers.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/text.h"
#include "lock/verbs.h"
#include "lock/wire.h"

namespace rlock::lock {
namespace {

// For those that have not answered yet once the others are enough; less for one that was late not long ago, or it would
// slow down each round.
constexpr milliseconds kGrace = 250ms, kShortGrace = 50ms, kLateFor = 10s;

bool is_recent(const std::optional<TimePoint>& moment) { return moment && BootClock::now() < *moment + kLateFor; }

// The threads of one round.
class Round {
 public:
  Round(const std::vector<std::unique_ptr<Member>>& members, const Servers::Question& question)
      : members_(members), question_(question), done_(eventfd(0, EFD_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC)) {}

  void start(const Until& until) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      try {
        threads_.emplace_back([this, i, until] { ask(i, until.deadline); });
      } catch (const std::system_error& error) {
        log::debug(std::string("cannot start a thread: ") + error.what());
        // One after another, then, and one that hangs leaves time for the others.
        const TimePoint now = BootClock::now();
        const milliseconds left = std::max(0ms, rlock::until(until.deadline));
        ask(i, std::min(until.deadline, now + left / static_cast<int>(members_.size() - i)));
      }
    }
  }

  // In the order in which they have answered.
  std::vector<std::size_t> answered() {
    const std::lock_guard guard(mutex_);
    return answered_;
  }

  // False: `until.interrupt` is readable.
  bool wait(const Until& until) {
    const WaitEnd end = wait_for(done_.get(), POLLIN, until);
    eventfd_t unused;
    if (end == WaitEnd::ready) eventfd_read(done_.get(), &unused);
    return end != WaitEnd::interrupted;
  }

  // `patience`: what is left of it.
  milliseconds grace(const std::vector<std::size_t>& answered, milliseconds patience) const {
    milliseconds grace = kShortGrace;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (std::ranges::find(answered, i) != answered.end()) continue;
      if (!is_recent(members_[i]->late_at)) grace = std::max(grace, kGrace);
      if (!is_recent(members_[i]->hung_at)) grace = std::max(grace, patience);
    }
    return grace;
  }

  void end() {
    eventfd_write(stop_.get(), 1);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void ask(std::size_t i, TimePoint deadline) {
    question_(i, *members_[i], Until{deadline, stop_.get()});
    const std::lock_guard guard(mutex_);
    answered_.push_back(i);
    eventfd_write(done_.get(), 1);
  }

  const std::vector<std::unique_ptr<Member>>& members_;
  const Servers::Question& question_;
  UniqueFd done_, stop_;
  std::mutex mutex_;
  std::vector<std::size_t> answered_;
  std::vector<std::thread> threads_;
};

}  // namespace

milliseconds vote_limit(milliseconds lease) { return std::clamp<milliseconds>(lease / 10, 200ms, 2s); }

Result<void> pay_debts(Member& member, const Until& until) {
  std::erase_if(member.debts, [now = BootClock::now()](const Debt& debt) { return now >= debt.until; });
  if (member.debts.empty()) return {};
  std::vector<AcquireRequest> requests;
  for (const Debt& debt : member.debts) requests.push_back(debt.request);
  auto paid = wire::give_back_all(member.client, requests, until);
  // The next request has not been sent for that.
  if (!paid) paid.error().maybe_executed = false;
  if (paid) member.debts.clear();
  return paid;
}

Servers::Servers(std::vector<redis::Address> addresses) {
  for (redis::Address& address : addresses) {
    std::string shown = escaped(address.display());
    members_.emplace_back(new Member{.client = redis::Client(std::move(address)), .address = std::move(shown)});
  }
  if (!is_quorum()) return;
  for (const auto& member : members_) {
    member->client.ask_along(
        {"INFO"}, [one = member.get()](const redis::Reply& reply) { one->elector.heard(reply, BootClock::now()); });
  }
}

std::vector<redis::Address> Servers::addresses() const {
  std::vector<redis::Address> all;
  for (const auto& member : members_) all.push_back(member->client.address());
  return all;
}

std::string Servers::display() const {
  std::string all;
  for (const auto& member : members_) all += (all.empty() ? "" : " ") + member->client.address().display();
  return all;
}

bool Servers::lacks_hold() const {
  return std::ranges::any_of(members_, [](const auto& member) { return member->lacks_hold; });
}

Result<void> Servers::expect_independent() const {
  std::vector<const Elector*> electors;
  std::vector<std::string> addresses;
  for (const auto& member : members_) {
    electors.push_back(&member->elector);
    addresses.push_back(member->address);
  }
  return lock::expect_independent(electors, addresses);
}

bool Servers::ask_all(const Question& question, milliseconds limit, const Until& until, const Enough& enough,
                      milliseconds patience) {
  const TimePoint patient_until = BootClock::now() + patience;
  Until end = until.at_most(limit);
  Round round(members_, question);
  round.start({end.deadline, -1});
  bool goes_on = true, graced = false;
  std::vector<std::size_t> answered;
  for (;;) {
    answered = round.answered();
    if (answered.size() == size() || end.over()) break;
    if (!graced && enough(answered)) {
      graced = true;
      end = end.at_most(round.grace(answered, rlock::until(patient_until)));
    }
    goes_on = round.wait(end);
    if (!goes_on) break;
  }
  round.end();
  if (!goes_on) return false;
  for (std::size_t i = 0; i < size(); ++i) {
    const bool late = std::ranges::find(answered, i) == answered.end();
    if (!late) continue;
    members_[i]->late_at = BootClock::now();
    if (patience > 0ms) members_[i]->hung_at = members_[i]->late_at;
  }
  return true;
}

void Servers::call_themselves(const std::string& name) {
  for (const auto& member : members_) member->client.call_itself(name);
}

void Servers::refuse_eviction() {
  refuses_eviction_ = true;
  if (!is_quorum()) lock::refuse_eviction(only());
}

UniqueFd Servers::hand_over() {
  if (!is_quorum()) return only().hand_over();
  disconnect();
  return {};
}

void Servers::adopt(UniqueFd connection) {
  if (!is_quorum()) only().adopt(std::move(connection));
}

void Servers::connect_ahead(const Until& until) {
  if (!is_quorum()) only().connect_ahead(until);
}

void Servers::disconnect() {
  for (const auto& member : members_) member->client.disconnect();
}

void Servers::forget() {
  for (const auto& member : members_) member->client.forget();
}

void Servers::keep_password_from_children() const {
  for (const auto& member : members_) member->client.keep_password_from_children();
}

const redis::PasswordSource* Servers::process_source() const {
  for (const auto& member : members_) {
    const auto& source = member->client.address().server.password_source;
    if (source && source->starts_processes) return &*source;
  }
  return nullptr;
}

void Servers::read_password_from(const redis::PasswordSource& source) {
  for (const auto& member : members_) {
    const auto& own = member->client.address().server.password_source;
    if (own && own->starts_processes) member->client.read_password_from(source);
  }
}

}  // namespace rlock::lock
