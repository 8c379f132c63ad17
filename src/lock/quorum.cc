// SPDX-License-Identifier: MIT
#include "lock/quorum.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <mutex>
#include <system_error>
#include <thread>

#include "base/log.h"
#include "base/text.h"

namespace rlock::lock {
namespace {

// How long to wait for the other servers once enough have answered; less for one that was late recently, or it would
// slow down each round.
constexpr milliseconds kGrace = 250ms, kShortGrace = 50ms, kLateFor = 10s;

bool is_recent(const std::optional<TimePoint>& moment) { return moment && BootClock::now() < *moment + kLateFor; }

class RoundOfThreads {
 public:
  RoundOfThreads(const std::vector<std::unique_ptr<Member>>& members, const Quorum::Question& question)
      : members_(members), question_(question), done_(eventfd(0, EFD_CLOEXEC)), stop_(eventfd(0, EFD_CLOEXEC)) {}

  void start(const Until& until) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      try {
        threads_.emplace_back([this, i, until] { ask(i, until.deadline); });
      } catch (const std::system_error& error) {
        log::debug(std::string("cannot start a thread: ") + error.what());
        // Ask one after another instead, so that one that hangs leaves time for the others.
        const TimePoint now = BootClock::now();
        const milliseconds left = std::max(0ms, rlock::until(until.deadline));
        ask(i, std::min(until.deadline, now + left / static_cast<int>(members_.size() - i)));
      }
    }
  }

  // In the order of their answers.
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
  const Quorum::Question& question_;
  UniqueFd done_, stop_;
  std::mutex mutex_;
  std::vector<std::size_t> answered_;
  std::vector<std::thread> threads_;
};

}  // namespace

milliseconds vote_limit(milliseconds lease) { return std::clamp<milliseconds>(lease / 10, 200ms, 2s); }

void Member::add_stray(const AcquireRequest& request) { strays.push_back({request, BootClock::now() + request.lease}); }

Result<void> Member::give_back_strays(const Until& until) {
  std::erase_if(strays, [now = BootClock::now()](const StrayGrant& stray) { return now >= stray.until; });
  if (strays.empty()) return {};
  std::vector<AcquireRequest> requests;
  for (const StrayGrant& stray : strays) requests.push_back(stray.request);
  auto given_back = verbs.give_back(requests, until);
  // The request that the caller is about to send was not sent.
  if (!given_back) given_back.error().maybe_executed = false;
  if (given_back) strays.clear();
  return given_back;
}

Quorum::Quorum(const std::vector<std::unique_ptr<redis::Client>>& clients) {
  for (const auto& client : clients) {
    members_.push_back(std::make_unique<Member>(*client, escaped(client->address().display())));
    client->ask_along({"INFO"}, [one = members_.back().get()](const redis::Reply& reply) {
      one->voter.heard(reply, BootClock::now());
    });
  }
}

bool Quorum::lacks_hold() const {
  return std::ranges::any_of(members_, [](const auto& member) { return member->lacks_hold; });
}

bool Quorum::reads_passwords_by_processes() const {
  return std::ranges::any_of(
      members_, [](const auto& member) { return member->client.address().server.reads_password_by_process(); });
}

milliseconds Quorum::limit_of(milliseconds lease, const Until& until) const {
  return reads_passwords_by_processes() ? rlock::until(until.deadline) : vote_limit(lease);
}

Result<void> Quorum::expect_independent() const {
  std::vector<const Voter*> voters;
  std::vector<std::string> addresses;
  for (const auto& member : members_) {
    voters.push_back(&member->voter);
    addresses.push_back(member->address);
  }
  return lock::expect_independent(voters, addresses);
}

bool Quorum::ask_all(const Question& question, milliseconds limit, const Until& until, const Enough& enough,
                     milliseconds patience) {
  const TimePoint patient_until = BootClock::now() + patience;
  Until end = until.at_most(limit);
  RoundOfThreads round(members_, question);
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
    if (std::ranges::find(answered, i) != answered.end()) continue;
    members_[i]->late_at = BootClock::now();
    if (patience > 0ms) members_[i]->hung_at = members_[i]->late_at;
  }
  return true;
}

void Quorum::without_interruption(Error& error) {
  if (error.code != Error::Code::interrupted) return;
  error.code = Error::Code::unavailable;
  constexpr std::string_view kEnd = "interrupted";
  if (error.message.ends_with(kEnd))
    error.message.replace(error.message.size() - kEnd.size(), kEnd.size(), "no answer in time");
}

Result<Released> Quorum::release(const ReleaseRequest& request, const Until& until) {
  const auto ask = [&](Member& member, const Until& end) {
    ReleaseRequest one = request;
    one.lease = {};  // a master that was replaced is only one of several servers
    return member.verbs.release(one, end);
  };
  // A server that is not told keeps the lock until the lease ends.
  const milliseconds patience = request.lease > 0ms ? vote_limit(request.lease) : kLookLimit;
  const auto answers =
      ask_each<Released>(ask, rlock::until(until.deadline), until, until_settled<Released>(ours), patience);
  if (interrupted_) return std::unexpected(Error{Error::Code::interrupted, "interrupted", true});
  return merge_releases(answers);
}

Result<Released> Quorum::force_unlock(const Lock& lock, const OwnerId& owner, const Until& until,
                                      const HistoryNote* note) {
  const auto ask = [&](Member& member, const Until& end) { return member.verbs.force_unlock(lock, owner, end, note); };
  return merge_forced(ask_each<Released>(ask, kLookLimit, until, most_answer<Released>, kLookLimit));
}

Result<long long> Quorum::ask_to_stop(const LockName& name, const OwnerId& owner, const std::string& by,
                                      const Until& until) {
  const auto ask = [&](Member& member, const Until& end) { return member.verbs.ask_to_stop(name, owner, by, end); };
  // One receiver is enough; the others may be servers that the holder has not reached.
  const auto enough = [](const auto& answers, const std::vector<std::size_t>& answered) {
    const auto heard = [&](std::size_t i) { return answers[i]->value_or(0) > 0; };
    return most_answer<long long>(answers, answered) && std::ranges::any_of(answered, heard);
  };
  const auto answers = ask_each<long long>(ask, kLookLimit, until, enough);
  RLOCK_TRY(expect_majority(answers));
  long long heard = 0;  // the largest number, because each process listens on each server
  for (const auto& answer : answers) heard = std::max(heard, answer.value_or(0));
  return heard;
}

}  // namespace rlock::lock
