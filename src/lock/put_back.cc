// SPDX-License-Identifier: MIT
#include "lock/put_back.h"

#include <algorithm>

#include "base/log.h"
#include "lock/wire.h"

namespace rlock::lock {
namespace {

Mode mode_of(const Lock& lock, const HolderView& holder) {
  if (lock.layout == Layout::string) return {.kind = Mode::Kind::set};
  if (lock.layout == Layout::plain) return {};
  return {.kind = holder.mode == "read" ? Mode::Kind::read : Mode::Kind::write};
}

// As the holder has sent it; none: a majority does not know it, or has counted more than one hold.
std::optional<AcquireRequest> request_of(const Status& status, const OwnerId& owner, milliseconds lease) {
  const auto holder = std::ranges::find(status.holders, owner.text(), &HolderView::owner);
  if (status.state != Status::State::held || holder == status.holders.end()) return {};
  if (lease == 0ms) lease = holder->lease.value_or(0ms);
  if (!holder->described || holder->holds != 1 || lease == 0ms || status.token.empty()) return {};
  return AcquireRequest{.name = status.name(),
                        .mode = mode_of(status.lock, *holder),
                        .owner = owner,
                        .lease = lease,
                        .holder = holder->who};
}

}  // namespace

// Other readers may be back already: an acquire is refused where a writer is.
bool is_missing(const AcquireRequest& request, RenewOutcome found) {
  const bool beside_others = request.mode.kind == Mode::Kind::read && found == RenewOutcome::other_owner;
  return found == RenewOutcome::free || beside_others;
}

// A server that has forgotten the hold has forgotten its token, too, and has granted it under one of its own clock. A
// hold whose token cannot be raised is none: it is given back, and put back anew.
bool put_back(Member& member, const AcquireRequest& request, const Hold& hold, const Until& until) {
  const TimePoint sent = BootClock::now();
  const auto granted = wire::acquire(member.client, request, sent, Attempts::one, until);
  const bool held = granted && *granted && (*granted)->outcome == Acquired::Outcome::granted;
  const auto raised = held ? wire::raise_all(member.client, {&hold, 1}, until) : Result<bool>(false);
  const bool done = raised && *raised;
  if (done) member.renewed_at = sent;
  if (!done && (held || (!granted && granted.error().maybe_executed))) {
    member.debts.push_back({request, BootClock::now() + request.lease});
  }
  log::debug(request.name.display() + ": " + member.address + (done ? ": has the hold" : ": lacks the hold"));
  return done;
}

bool may_lack(const Result<Renewed>& answer) {
  return answer && (answer->outcome == RenewOutcome::free || answer->outcome == RenewOutcome::other_owner);
}

// The holder's token was raised on a majority, one of which has answered; what describes a holder has that of one
// server.
void put_back_where_lost(Servers& servers, const Status& status, const OwnerId& owner, milliseconds lease,
                         const Answers<Renewed>& answers, const Until& until) {
  const auto request = request_of(status, owner, lease);
  if (!request) return;
  const Hold hold{status.lock, owner, request->hold(), status.token, request->lease, BootClock::now()};
  const auto give = [&](std::size_t i, Member& member, const Until& end) {
    if (!answers[i] || !is_missing(*request, answers[i]->outcome)) return;
    if (member.elector.unfit(request->lease, BootClock::now())) return;
    put_back(member, *request, hold, end);
    if (const auto paid = pay_debts(member, end); !paid) log::debug(paid.error().message);
  };
  servers.ask_all(give, vote_limit(request->lease), until, [](const auto&) { return false; });
}

}  // namespace rlock::lock
