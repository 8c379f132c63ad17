// SPDX-License-Identifier: MIT
#include "lock/quorum.h"

#include <poll.h>

#include <system_error>

#include "base/log.h"
#include "verbs/lease.h"

namespace rlock::lock {
namespace {

// How long to wait for others once enough have answered; less for one that was late, or it slows down each round.
constexpr milliseconds kGrace = 250ms, kShortGrace = 50ms;

bool is_recent(const std::optional<TimePoint>& moment) { return moment && BootClock::now() < *moment + kLateFor; }

class RoundOfThreads {
 public:
  RoundOfThreads(const std::vector<std::unique_ptr<Member>>& members, const Quorum::Question& question)
      : members_(members), question_(question) {}

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
    if (end == WaitEnd::ready) clear_event(done_);
    return end != WaitEnd::interrupted;
  }

  // Those that have not answered.
  std::vector<Member*> silent(const std::vector<std::size_t>& answered) const {
    std::vector<Member*> all;
    for (std::size_t i = 0; i < members_.size(); ++i) {
      if (std::ranges::find(answered, i) == answered.end()) all.push_back(members_[i].get());
    }
    return all;
  }

  // `patience`: what is left of it.
  milliseconds grace(const std::vector<std::size_t>& answered, milliseconds patience) const {
    milliseconds grace = kShortGrace;
    for (const Member* member : silent(answered)) {
      if (!is_recent(member->late_at)) grace = std::max(grace, kGrace);
      if (!is_recent(member->hung_at)) grace = std::max(grace, patience);
    }
    return grace;
  }

  void end() {
    set_event(stop_);
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  void ask(std::size_t i, TimePoint deadline) {
    question_(i, *members_[i], Until{deadline, stop_.get()});
    const std::lock_guard guard(mutex_);
    answered_.push_back(i);
    set_event(done_);
  }

  const std::vector<std::unique_ptr<Member>>& members_;
  const Quorum::Question& question_;
  UniqueFd done_ = make_event().value_or(UniqueFd()), stop_ = make_event().value_or(UniqueFd());
  std::mutex mutex_;
  std::vector<std::size_t> answered_;
  std::vector<std::thread> threads_;
};

constexpr milliseconds kUndoTime = 500ms;  // short, because the user waits

std::string why_unfit(const Member& member, milliseconds lease, TimePoint sent) {
  const auto unfit = member.voter.unfit(lease, sent);
  return unfit ? member.address + ": " + *unfit : "";
}

// Runs in the thread of that server.
Result<Vote> vote(Member& member, const AcquireRequest& request, bool may_evict, const Until& until) {
  RLOCK_TRY(member.give_back_strays(until));
  const TimePoint sent = BootClock::now();
  auto answer = RLOCK_TRY(member.verbs.ask(request, sent, Attempts::one, Guard::life, until));
  if (!answer) return fail(Error::Code::unavailable, member.address + ": it takes too long");
  if (!may_evict) RLOCK_TRY(expect_no_eviction(member.client));
  Held* held = std::get_if<Held>(&*answer);
  const bool back = held && held->back;
  if (back) held->back->server = member.address;
  std::string unfit = back ? why_held_back(*held->back) : why_unfit(member, request.lease, sent);
  return Vote{std::move(*answer), std::move(unfit), sent};
}

// A restarted server may have forgotten the lock of a job whose lease is longer than ours, which the others may know.
void judge_by_leases_of_others(const Quorum& quorum, const AcquireRequest& request, Answers<Vote>& votes) {
  const milliseconds longest = longest_lease(request, votes);
  if (longest <= request.lease) return;
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const bool back = votes[i] && votes[i]->held() && votes[i]->held()->back;
    if (votes[i] && !back) votes[i]->unfit = why_unfit(quorum.member(i), longest, votes[i]->sent);
  }
}

std::string why_missing(const Member& member, const Result<Vote>& vote) {
  if (!vote) {
    const std::string& why = vote.error().message;
    return why.contains(member.address) ? why : member.address + ": " + why;
  }
  return vote->unfit.empty() ? member.address + ": it is held there" : vote->unfit;
}

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
  return Voter::expect_independent(voters, addresses);
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
  for (Member* member : round.silent(answered)) {
    member->late_at = BootClock::now();
    if (patience > 0ms) member->hung_at = member->late_at;
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

Result<Released> Quorum::force_unlock(const Lock& lock, const HolderView& shown, const std::string& by,
                                      const Until& until, const HistoryNote* note) {
  const auto ask = [&](Member& member, const Until& end) {
    return member.verbs.force_unlock(lock, shown, by, end, note);
  };
  const auto answers = ask_each<Released>(ask, kLookLimit, until, most_answer<Released>, kLookLimit);
  auto forced = merge_forced(answers);
  if (!forced) {
    forced.error().message += "; until a majority takes the lock away, it may still be held: try again";
  } else if (ours(*forced)) {
    for (const Error* error : errors_in(answers)) {
      log::warning(lock.name.display() + ": a majority of the servers has taken the lock away, without " +
                   error->message + "; there it ends with its lease");
    }
  }
  return forced;
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

// The votes on each request of an attempt, and giving them back without a majority.

void Quorum::begin_attempt() {
  asked_.clear();
  votes_.clear();
  for (const auto& member : members_) member->lacks_hold = false;
}

// Keeps all answers, even those that do not count, because every grant may have to be given back.
Result<Acquired> Quorum::acquire(const AcquireRequest& request, TimePoint sent, const Until& until) {
  asked_.push_back(request);
  const auto question = [&](Member& member, const Until& end) {
    return vote(member, request, !refuses_eviction_, end);
  };
  Answers<Vote>& votes = votes_.emplace_back(
      ask_each<Vote>(question, limit_of(request.lease, until), until, until_settled<Vote>(std::mem_fn(&Vote::counts))));
  judge_by_leases_of_others(*this, request, votes);
  if (interrupted_) return interrupted();
  RLOCK_TRY(expect_independent());
  auto acquired = elect(request, votes, sent);
  if (const Hold* hold = as<Hold>(acquired)) {
    note_votes(request, votes, hold->owner, sent);
    say_what_is_missing(request, votes);
  }
  return acquired;
}

// Notes which servers have granted the lock to `owner`, by requests sent at `sent` or later, and which lack it.
void Quorum::note_votes(const AcquireRequest& request, const Answers<Vote>& votes, const OwnerId& owner,
                        TimePoint sent) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    const Hold* granted = votes[i] ? votes[i]->hold() : nullptr;
    if (granted && granted->owner == owner) members_[i]->renewed_at = sent;
    // Nested holds are never put back.
    const bool may_vote = !votes[i] || votes[i]->unfit.empty();
    if (owner == request.owner && !granted && may_vote) members_[i]->lacks_hold = true;
  }
}

// Once for each server: as a warning if it refuses us, which will not change by itself, otherwise as a notice, because
// cron should not send mail about a minority that is down.
void Quorum::say_what_is_missing(const AcquireRequest& request, const Answers<Vote>& votes) {
  for (std::size_t i = 0; i < votes.size(); ++i) {
    Member& member = *members_[i];
    if ((votes[i] && votes[i]->counts()) || std::exchange(member.said_missing, true)) continue;
    const auto say = !votes[i] && votes[i].error().code != Error::Code::unavailable ? log::warning : log::notice;
    say(request.name.display() + ": a majority of the servers grants the lock, without " +
        why_missing(member, votes[i]));
  }
}

Result<void> Quorum::raise_tokens(std::span<const Hold> holds, const Until& until) {
  const auto raise = [&](Member& member, const Until& end) { return member.verbs.raise(holds, end); };
  using Raised = std::vector<bool>;
  const auto answers = ask_each<Raised>(raise, limit_of(holds.front().lease, until), until,
                                        until_each_settled<Raised>(holds.size(), std::identity()));
  if (interrupted_) return interrupted();
  // Each name may have another majority.
  std::size_t done = 0;
  while (done < holds.size() && most(answers, [&](const Raised& all) { return all[done]; })) ++done;
  if (done == holds.size()) return {};
  std::string why;
  for (const Error* error : errors_in(answers)) why += "; " + error->message;
  return fail(Error::Code::unavailable, "the fencing token could not be raised on a majority of the servers" + why);
}

Result<void> Quorum::confirm(std::span<const Hold> holds, TimePoint sent, const Until& until) {
  RLOCK_TRY(raise_tokens(holds, until));
  const LeaseTiming timing = RLOCK_TRY(LeaseTiming::make(holds.front().lease, 0ms));
  if (BootClock::now() >= oldest(holds) + timing.kill_at) {
    return fail(Error::Code::unavailable, "the servers took longer than the lease to grant the lock");
  }
  held_ = asked_;
  renewed_at_ = sent;
  if (note_strays(holds)) give_back_strays();
  return {};
}

void Quorum::undo() {
  note_strays({});
  give_back_strays();
}

// What the servers have granted, or may have if they have not answered, is to be given back, apart from the holds that
// are kept: if an ancestor's hold counts, a server that does not know it has granted a separate one. Returns whether
// there is anything.
bool Quorum::note_strays(std::span<const Hold> kept) {
  bool any = false;
  for (std::size_t name = 0; name < votes_.size(); ++name) {
    for (std::size_t i = 0; i < size(); ++i) {
      const Result<Vote>& vote = votes_[name][i];
      AcquireRequest stray = asked_[name];
      if (vote ? !vote->hold() : !vote.error().maybe_executed) continue;
      if (!kept.empty()) {
        if (vote) stray.owner = vote->hold()->owner;
        stray.heir.reset();
        if (stray.owner == kept[name].owner) continue;
      }
      members_[i]->add_stray(stray);
      any = true;
    }
  }
  return any;
}

bool Quorum::has_strays() const {
  return std::ranges::any_of(members_, [](const auto& member) { return !member->strays.empty(); });
}

// A signal does not end this, because signals are a reason to give locks back.
void Quorum::give_back_strays() {
  const auto give_back = [](std::size_t, Member& member, const Until& end) {
    if (const auto given = member.give_back_strays(end); !given) log::debug(given.error().message);
  };
  const milliseconds patience = std::min(kUndoTime, limit_of(asked_.front().lease, Until{}));
  ask_all(
      give_back, patience, Until{}, [&](const auto& answered) { return answered.size() >= majority_of(size()); },
      patience);
}

Status Quorum::merged(const LockName& name, const Answers<Status>& answers) const {
  Status status = merge_views(name, answers);
  status.token.clear();
  status.asked = joined(members_, " ", [](const auto& member) { return member->client.address().display(); });
  status.listening = 0;  // all waiters of a quorum listen there, and rlock's cannot be told apart
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto& answer = answers[i];
    const std::string& address = members_[i]->address;
    if (!answer) {
      std::string trouble = answer.error().message;
      if (trouble.starts_with(address + ": ")) trouble.erase(0, address.size() + 2);
      status.servers.push_back({address, std::move(trouble), Status::State::free, {}});
      continue;
    }
    status.servers.push_back({address, "", answer->state, answer->holders});
    status.token = larger(status.token, answer->token);
  }
  return status;
}

Result<Status> Quorum::inspect(const LockName& name, const Until& until, Look look) {
  const auto ask = [&](Member& member, const Until& end) { return member.verbs.inspect(name, end, look); };
  const auto answers = look.majority ? ask_each<Status>(ask, kLookLimit, until, most_answer<Status>)
                                     : look_at_each<Status>(ask, kLookLimit, until);
  RLOCK_TRY(expect_majority(answers, true));
  return merged(name, answers);
}

}  // namespace rlock::lock
