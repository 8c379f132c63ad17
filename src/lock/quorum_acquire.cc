// SPDX-License-Identifier: MIT
// Waiting for locks that a quorum keeps.
#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/random.h"
#include "lock/acquire.h"
#include "lock/quorum.h"
#include "lock/waiter_life.h"
#include "redis/subscriber.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kFirstTry = 20ms, kLongestTry = 640ms;  // pauses between attempts at a contested lock
constexpr milliseconds kAfterWakeup = 30ms;                    // because all waiters hear of a release at once
constexpr int kEnoughTries = 8;                                // until a contested lock is reported as such
constexpr milliseconds kTellAgain = 100ms;  // between attempts to give back stray votes during a wait
constexpr milliseconds kOvertime = 200ms;   // for the last attempt, after the end of the wait

milliseconds random_up_to(milliseconds most) {
  return milliseconds(1 + static_cast<long long>(random_below(static_cast<std::uint64_t>(most.count()))));
}

// Listens for releases of the locks, on each server that allows it.
class Releases {
 public:
  Releases(const std::vector<redis::Address>& addresses, const std::vector<AcquireRequest>& requests)
      : heard_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), news_(addresses.size()) {
    std::vector<std::string> channels;
    for (const auto& request : requests) channels.push_back(request.lock().channel());
    const milliseconds connect = addresses.front().server.reads_password_by_process() ? 10s : 2s;
    auto started = redis::Listener::start(addresses, std::move(channels), connect, requests.front().name.display(),
                                          [this](std::size_t which, const redis::Message&) {
                                            news_[which] = true;
                                            eventfd_write(heard_.get(), 1);
                                            return true;
                                          });
    if (!started) log::debug(started.error().message);
    if (started) listener_ = *std::move(started);
  }

  // Readable once there was a message, until take().
  int fd() const { return heard_.get(); }
  // Which servers have sent one.
  std::vector<bool> take() {
    eventfd_t unused;
    eventfd_read(heard_.get(), &unused);
    std::vector<bool> where;
    for (std::atomic<bool>& one : news_) where.push_back(one.exchange(false));
    return where;
  }

 private:
  UniqueFd heard_;
  std::vector<std::atomic<bool>> news_;  // one for each server
  std::unique_ptr<redis::Listener> listener_;
};

// Takes all of the requested locks, or none, in repeated attempts.
class QuorumAcquisition {
 public:
  QuorumAcquisition(Quorum& quorum, std::vector<redis::Address> addresses, const std::vector<AcquireRequest>& requests,
                    const WaitPolicy& policy, const OnHeldOf& on_held)
      : quorum_(quorum), addresses_(std::move(addresses)), requests_(requests), policy_(policy), on_held_(on_held) {
    if (policy_.limit) end_ = end_.at_most(*policy_.limit);
  }

  // Long, because it has a branch for each outcome of an attempt.
  Result<Taken> run() {
    for (;;) {
      auto found = attempt();
      if (!found) {
        if (!may_return(found.error())) return std::unexpected(std::move(found).error());
        warn_unreachable(found.error());
        RLOCK_TRY(pause(random_up_to(pause_after(++absences_))));
        continue;
      }
      if (found->outcome == Acquired::Outcome::granted) return Taken{std::move(holds_), 0, {}};
      if (found->outcome != Acquired::Outcome::held) return Taken{{}, which_, *std::move(found)};
      const bool contested = !found->contested.empty();
      contests_ = contested ? contests_ + 1 : 0;
      const bool worth_a_try = is_worth_a_try();
      if (worth_a_try) found->contested.clear();
      answered(*found, contested && worth_a_try);
      // Even without a wait, a contested lock is tried again: maybe only other attempts are in the way.
      const bool tries_again = contested && worth_a_try && policy_.limit == 0ms;
      if (end_.over() && !tries_again) return Taken{{}, which_, *std::move(found)};
      RLOCK_TRY(contested ? pause(random_up_to(pause_after(contests_))) : wait_for_release(*found));
    }
  }

 private:
  // A server that does not answer makes each attempt long, and is unlikely to decide the next one.
  bool is_worth_a_try() const {
    return contests_ < kEnoughTries && (!errors_ || BootClock::now() < started_ + policy_.exchange);
  }

  // The grant of all, or why there is none; then nothing of the attempt is left.
  Result<Acquired> attempt() {
    quorum_.begin_attempt();
    holds_.clear();
    const OwnerId owner = OwnerId::fresh_for(requests_.front().name, requests_.front().holder.host);
    const TimePoint sent = BootClock::now();
    for (which_ = 0; which_ < requests_.size(); ++which_) {
      AcquireRequest request = requests_[which_];
      request.owner = owner;
      if (request.heir) request.hold_id = random_uuid();
      auto acquired = quorum_.acquire(request, sent, exchange());
      errors_ = !errors_in(quorum_.last_votes()).empty();
      if (!acquired || acquired->outcome != Acquired::Outcome::granted) {
        if (acquired && acquired->outcome == Acquired::Outcome::held && acquired->contested.empty()) {
          note_where_held(request, *acquired);
        }
        quorum_.undo(limit());
        return acquired;
      }
      holds_.push_back(*std::move(acquired->hold));
    }
    which_ = 0;
    if (auto fine = quorum_.confirm(holds_, sent, exchange()); !fine) {
      quorum_.undo(limit());
      return std::unexpected(std::move(fine).error());
    }
    return Acquired{.outcome = Acquired::Outcome::granted};
  }

  // The servers have answered that it is not free. `untold`: do not report this before the next attempt.
  void answered(const Acquired& found, bool untold) {
    if (std::exchange(unreachable_, false)) log::warning(names() + ": a majority of the servers answers again");
    absences_ = 0;
    last_contact_ = BootClock::now();
    if (untold) return;
    on_held_(which_, found);
    looked_ = true;
  }

  // The user's limit applies to waiting for the servers, too.
  bool may_return(const Error& error) const {
    if (error.code != Error::Code::unavailable) return false;
    if (policy_.limit) return !end_.over();
    return last_contact_ && BootClock::now() < *last_contact_ + requests_.front().lease;
  }

  void warn_unreachable(const Error& error) {
    if (std::exchange(unreachable_, true)) return;
    log::warning(names() + ": " + error.message + "; still waiting");
  }

  std::string names() const {
    std::string names;
    for (const auto& request : requests_) names += (names.empty() ? "" : ", ") + request.name.display();
    return names;
  }

  static milliseconds pause_after(int tries) { return std::min(kFirstTry * (1 << std::min(tries, 10)), kLongestTry); }

  Result<TimePoint> meanwhile() const { return looked_ && policy_.meanwhile ? policy_.meanwhile() : TimePoint::max(); }

  Result<void> pause(milliseconds span) {
    const Until until = (policy_.limit == 0ms ? Until{TimePoint::max(), policy_.interrupt} : end_).at_most(span);
    do {
      if (wait_for(-1, 0, until.at_most(RLOCK_TRY(meanwhile()))) == WaitEnd::interrupted) {
        return fail(Error::Code::interrupted, "interrupted");
      }
    } while (!until.over());
    return {};
  }

  // Until a server says that a lock was released, or the lease should have ended.
  Result<void> wait_for_release(const Acquired& found) {
    if (!releases_) {
      releases_.emplace(addresses_, requests_);
      // Ask again soon, because a release may have come before we listened.
      return pause(random_up_to(pause_after(2)));
    }
    const Until until = end_.at_most(std::min(look_after(found.expires_in), policy_.longest_look));
    while (!until.over()) {
      const Until look = quorum_.has_strays() ? until.at_most(kTellAgain) : until;
      const WaitEnd end = wait_for(releases_->fd(), POLLIN, look.at_most(RLOCK_TRY(meanwhile())));
      if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
      if (quorum_.has_strays() && look.over()) quorum_.give_back_strays(limit());
      if (end != WaitEnd::ready || !frees_a_vote(releases_->take())) continue;
      RLOCK_TRY(pause(random_up_to(kAfterWakeup)));
      releases_->take();
      return {};
    }
    return pause(random_up_to(kAfterWakeup));
  }

  // Readers are many, and a server that has not answered may have the same holder.
  void note_where_held(const AcquireRequest& request, const Acquired& found) {
    const auto holder_of = [](const Acquired& answer) {
      return answer.holder ? common_id(*answer.holder) : std::string_view();
    };
    held_there_.assign(quorum_.size(), true);
    if (request.mode.layout() != Layout::plain) return;
    for (std::size_t i = 0; i < quorum_.size(); ++i) {
      const Result<Vote>& vote = quorum_.last_votes()[i];
      if (vote) held_there_[i] = holder_of(vote->answer) == holder_of(found);
    }
  }

  // Attempts that fail publish releases, too. If all waiters reacted to them, they would take that vote for a moment
  // and wake the others by giving it back, and the holder would have no chance to take it.
  bool frees_a_vote(const std::vector<bool>& heard) const {
    for (std::size_t i = 0; i < heard.size(); ++i) {
      if (heard[i] && held_there_[i]) return true;
    }
    return false;
  }

  // A password command takes its time, regardless of the lease.
  milliseconds limit() const {
    return quorum_.reads_passwords_by_processes() ? policy_.exchange : vote_limit(requests_.front().lease);
  }

  Until exchange() const {
    const Until until = Until{TimePoint::max(), policy_.interrupt}.at_most(policy_.exchange);
    const bool ends = policy_.limit && *policy_.limit > 0ms;
    return ends ? until.at_most(end_.deadline + kOvertime) : until;
  }

  Quorum& quorum_;
  std::vector<redis::Address> addresses_;
  const std::vector<AcquireRequest>& requests_;
  const WaitPolicy& policy_;
  const OnHeldOf& on_held_;
  Until end_{TimePoint::max(), policy_.interrupt};
  std::vector<Hold> holds_;       // of the current attempt
  std::vector<bool> held_there_;  // which servers name the holder that a majority has named last
  std::size_t which_ = 0;         // the index of the current request
  int contests_ = 0, absences_ = 0;
  bool errors_ = false;  // among the last votes
  const TimePoint started_ = BootClock::now();
  std::optional<TimePoint> last_contact_;
  std::optional<Releases> releases_;
  bool looked_ = false;       // and it was held
  bool unreachable_ = false;  // too few servers answer, and the user was told
};

}  // namespace

Result<Taken> acquire_of_quorum(Quorum& quorum, std::vector<redis::Address> addresses,
                                const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                                const OnHeldOf& on_held) {
  return QuorumAcquisition(quorum, std::move(addresses), requests, policy, on_held).run();
}

}  // namespace rlock::lock
