// SPDX-License-Identifier: MIT
// Taking locks that a quorum keeps.
#include <poll.h>

#include <algorithm>
#include <utility>

#include "base/duration.h"
#include "base/log.h"
#include "base/random.h"
#include "lock/lease.h"
#include "lock/quorum.h"
#include "lock/quorum_votes.h"
#include "lock/waiter_channel.h"
#include "lock/wakeups.h"

namespace rlock::lock {
namespace {

constexpr milliseconds kFirstPause = 20ms, kLongestPause = 640ms;  // between attempts at a lock that is contested
constexpr milliseconds kAfterWakeup = 30ms;  // all waiters hear of a release at once
constexpr int kEnoughTries = 8;              // until a contested lock is reported as such
constexpr milliseconds kUndoTime = 500ms;    // somebody waits for us
constexpr milliseconds kPayAgain = 100ms;    // what a server was not told, while nothing else is to be done
constexpr milliseconds kOvertime = 200ms;    // of the last attempt, after the end of the wait

milliseconds random_up_to(milliseconds most) {
  return milliseconds(1 + static_cast<long long>(random_below(static_cast<std::uint64_t>(most.count()))));
}

class Candidate {
 public:
  Candidate(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
            const std::function<void(std::size_t, const Acquired&)>& on_held)
      : servers_(servers), requests_(requests), policy_(policy), on_held_(on_held) {
    if (policy_.limit) end_ = end_.at_most(*policy_.limit);
  }

  Result<Taken> run() {
    for (;;) {
      Election election = attempt();
      switch (election.outcome) {
        case Election::Outcome::granted: return Taken{std::move(holds_), 0, {}};
        case Election::Outcome::refused: return Taken{{}, which_, std::move(election.answer)};
        case Election::Outcome::away:
          if (!may_come_back(election.error)) return std::unexpected(std::move(election.error));
          say_away(election.error);
          RLOCK_TRY(pause(random_up_to(pause_after(++absences_))));
          continue;
        case Election::Outcome::held: contests_ = 0; break;
        case Election::Outcome::contested: ++contests_; break;
      }
      const bool contested = election.outcome == Election::Outcome::contested;
      const bool worth_a_try = is_worth_a_try();
      if (worth_a_try) election.answer.contested.clear();
      RLOCK_TRY(answered(election));
      // Without a wait a contested lock is still tried again: it may be free, but for others who try as well.
      const bool tries_again = contested && worth_a_try && policy_.limit == 0ms;
      if (end_.over() && !tries_again) return Taken{{}, which_, std::move(election.answer)};
      RLOCK_TRY(contested ? pause(random_up_to(pause_after(contests_))) : wait_for_release(election.answer));
    }
  }

 private:
  // A server that does not answer makes each attempt long, and will not decide the next one either.
  bool is_worth_a_try() const {
    return contests_ < kEnoughTries && (!errors_ || BootClock::now() < started_ + policy_.exchange);
  }

  // The grant of all, or why there is none: nothing of the attempt is left then.
  Election attempt() {
    asked_.clear();
    holds_.clear();
    for (std::size_t i = 0; i < servers_.size(); ++i) servers_.member(i).lacks_hold = false;
    const OwnerId owner = OwnerId::fresh_for(requests_.front().name, requests_.front().holder.host);
    const TimePoint sent = BootClock::now();
    for (which_ = 0; which_ < requests_.size(); ++which_) {
      asked_.push_back(requests_[which_]);
      AcquireRequest& request = asked_.back();
      request.owner = owner;
      if (request.heir) request.hold_id = random_uuid();
      Election election = ask(request, sent);
      if (election.outcome == Election::Outcome::granted) {
        const Lock lock{request.name, request.mode.layout()};
        holds_.push_back({lock, *election.owner, request.hold(), election.token, request.lease, sent});
        continue;
      }
      return undone(std::move(election));
    }
    which_ = 0;
    if (auto fine = confirm(); !fine) return undone({.error = std::move(fine).error()});
    servers_.held = asked_;
    servers_.renewed_at = sent;
    give_back_other_grants();
    return {.outcome = Election::Outcome::granted};
  }

  Election undone(Election election) {
    undo();
    return election;
  }

  Election ask(const AcquireRequest& request, TimePoint sent) {
    votes_.push_back(collect_votes(servers_, request, limit(), exchange()));
    if (servers_.interrupted()) return {.error = {Error::Code::interrupted, "interrupted"}};
    if (auto fine = servers_.expect_independent(); !fine) return {.error = std::move(fine).error()};
    errors_ = !errors_in(votes_.back()).empty();
    Election election = elect(request, votes_.back());
    if (election.outcome == Election::Outcome::held) note_where_held(request, election.answer);
    if (election.outcome == Election::Outcome::granted) {
      note_votes(servers_, request, votes_.back(), *election.owner, sent);
    }
    return election;
  }

  // The tokens are raised on a majority, and the validity is not over. Errors: unavailable, interrupted.
  Result<void> confirm() {
    RLOCK_TRY(raise_tokens(servers_, holds_, limit(), exchange()));
    const LeaseTiming timing = RLOCK_TRY(LeaseTiming::make(holds_.front().lease, 0ms));
    if (BootClock::now() < oldest(holds_) + timing.kill_at) return {};
    return fail(Error::Code::unavailable, "the servers took longer than the lease to grant the lock");
  }

  // Whatever a server has granted, or may have, is given back there, now or when it answers again.
  void undo() {
    for (std::size_t name = 0; name < votes_.size(); ++name) {
      for (std::size_t i = 0; i < servers_.size(); ++i) {
        const Result<Vote>& vote = votes_[name][i];
        const bool granted = vote && vote->answer.outcome == Acquired::Outcome::granted;
        if (granted || (!vote && vote.error().maybe_executed)) owe(i, asked_[name]);
      }
    }
    pay();
  }

  // Beside the hold of an ancestor: a server that does not know the ancestor has granted a hold of its own.
  void give_back_other_grants() {
    bool any = false;
    for (std::size_t name = 0; name < votes_.size(); ++name) {
      for (std::size_t i = 0; i < servers_.size(); ++i) {
        const Result<Vote>& vote = votes_[name][i];
        // One that has not answered may have lost the ancestor's hold, too.
        const bool unknown = !vote && vote.error().maybe_executed;
        const OwnerId* owner = vote && vote->answer.hold ? &vote->answer.hold->owner : nullptr;
        if (unknown) owner = &asked_[name].owner;
        if (!owner || *owner == holds_[name].owner) continue;
        AcquireRequest other = asked_[name];
        other.owner = *owner;
        other.heir.reset();
        owe(i, std::move(other));
        any = true;
      }
    }
    votes_.clear();
    if (any) pay();
  }

  void owe(std::size_t i, AcquireRequest request) {
    const TimePoint until = BootClock::now() + request.lease;
    servers_.member(i).debts.push_back({std::move(request), until});
  }

  // Not ended by a signal: that is why it is given back.
  void pay() {
    votes_.clear();
    const auto give_back = [](std::size_t, Member& member, const Until& end) {
      if (const auto paid = pay_debts(member, end); !paid) log::debug(paid.error().message);
    };
    const milliseconds patience = std::min(kUndoTime, limit());
    servers_.ask_all(
        give_back, patience, Until{},
        [&](const auto& answered) { return answered.size() >= majority_of(servers_.size()); }, patience);
  }

  // A server has not been told yet that it is to forget us: nobody has its vote meanwhile.
  bool in_debt() const {
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      if (!servers_.member(i).debts.empty()) return true;
    }
    return false;
  }

  // The servers have answered that it is not free. Errors: those of on_held.
  Result<void> answered(const Election& election) {
    if (std::exchange(away_, false)) log::warning(names() + ": a majority of the servers answers again");
    absences_ = 0;
    last_contact_ = BootClock::now();
    if (election.outcome == Election::Outcome::contested && election.answer.contested.empty()) return {};
    on_held_(which_, election.answer);
    looked_ = true;
    return {};
  }

  // Somebody who says how long to wait means that, whatever there is to wait for.
  bool may_come_back(const Error& error) const {
    if (error.code != Error::Code::unavailable) return false;
    if (policy_.limit) return !end_.over();
    return last_contact_ && BootClock::now() < *last_contact_ + requests_.front().lease;
  }

  void say_away(const Error& error) {
    if (std::exchange(away_, true)) return;
    log::warning(names() + ": " + error.message + "; still waiting");
  }

  std::string names() const {
    std::string names;
    for (const auto& request : requests_) names += (names.empty() ? "" : ", ") + request.name.display();
    return names;
  }

  static milliseconds pause_after(int tries) {
    return std::min(kFirstPause * (1 << std::min(tries, 10)), kLongestPause);
  }

  TimePoint meanwhile() const { return looked_ && policy_.meanwhile ? policy_.meanwhile() : TimePoint::max(); }

  Result<void> pause(milliseconds span) {
    const Until until = (policy_.limit == 0ms ? Until{TimePoint::max(), policy_.interrupt} : end_).at_most(span);
    do {
      if (wait_for(-1, 0, until.at_most(meanwhile())) == WaitEnd::interrupted) {
        return fail(Error::Code::interrupted, "interrupted");
      }
    } while (!until.over());
    return {};
  }

  // Until one of the servers says that it was released, or it may be free by itself.
  Result<void> wait_for_release(const Acquired& found) {
    if (!wakeups_) {
      std::vector<Lock> locks;
      for (const auto& request : requests_) locks.push_back({request.name, request.mode.layout()});
      wakeups_.emplace(servers_.addresses(), locks);
      // A release that came before anybody listened is found soon.
      return pause(random_up_to(pause_after(2)));
    }
    const Until until = end_.at_most(std::min(look_after(found.expires_in), policy_.longest_look));
    while (!until.over()) {
      const Until look = in_debt() ? until.at_most(kPayAgain) : until;
      const WaitEnd end = wait_for(wakeups_->fd(), POLLIN, look.at_most(meanwhile()));
      if (end == WaitEnd::interrupted) return fail(Error::Code::interrupted, "interrupted");
      if (in_debt() && look.over()) pay();
      if (end != WaitEnd::ready || !frees_a_vote(wakeups_->take())) continue;
      RLOCK_TRY(pause(random_up_to(kAfterWakeup)));
      wakeups_->take();
      return {};
    }
    return pause(random_up_to(kAfterWakeup));
  }

  // Readers are many, and one that has not answered may have the same holder.
  void note_where_held(const AcquireRequest& request, const Acquired& found) {
    const auto holder_of = [](const Acquired& answer) {
      return answer.holder ? common_id(*answer.holder) : std::string_view();
    };
    held_there_.assign(servers_.size(), true);
    if (request.mode.layout() != Layout::plain) return;
    for (std::size_t i = 0; i < servers_.size(); ++i) {
      const Result<Vote>& vote = votes_.back()[i];
      if (vote) held_there_[i] = holder_of(vote->answer) == holder_of(found);
    }
  }

  // A loser that gives its vote back is heard as well. All that wait would ask again then, have that vote for a moment,
  // and wake all others by giving it back: the holder would find no moment to take it.
  bool frees_a_vote(const std::vector<bool>& heard) const {
    for (std::size_t i = 0; i < heard.size(); ++i) {
      if (heard[i] && held_there_[i]) return true;
    }
    return false;
  }

  // A password command takes its time, whatever the lease is.
  milliseconds limit() const {
    return servers_.process_source() ? policy_.exchange : vote_limit(requests_.front().lease);
  }

  Until exchange() const {
    const Until until = Until{TimePoint::max(), policy_.interrupt}.at_most(policy_.exchange);
    const bool ends = policy_.limit && *policy_.limit > 0ms;
    return ends ? until.at_most(end_.deadline + kOvertime) : until;
  }

  Servers& servers_;
  const std::vector<AcquireRequest>& requests_;
  const WaitPolicy& policy_;
  const std::function<void(std::size_t, const Acquired&)>& on_held_;
  Until end_{TimePoint::max(), policy_.interrupt};
  std::vector<AcquireRequest> asked_;  // of this attempt
  std::vector<Answers<Vote>> votes_;   // on them
  std::vector<Hold> holds_;
  std::vector<bool> held_there_;  // by the holder that a majority has named last, a server each
  std::size_t which_ = 0;  // the index of the one that is asked for
  int contests_ = 0, absences_ = 0;
  bool errors_ = false;  // among the last votes
  const TimePoint started_ = BootClock::now();
  std::optional<TimePoint> last_contact_;
  std::optional<Wakeups> wakeups_;
  bool looked_ = false;  // and it was held
  bool away_ = false;    // too few servers answer; that has been said
};

}  // namespace

Result<Taken> acquire_all(Servers& servers, const std::vector<AcquireRequest>& requests, const WaitPolicy& policy,
                          const std::function<void(std::size_t, const Acquired&)>& on_held) {
  if (!servers.is_quorum()) return acquire_all(servers.only(), requests, policy, on_held);
  return Candidate(servers, requests, policy, on_held).run();
}

}  // namespace rlock::lock
