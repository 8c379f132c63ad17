// SPDX-License-Identifier: MIT
#include "cli/acquisition.h"

#include <cstdlib>
#include <tuple>

#include "cli/server.h"
#include "run/tree.h"
#include "show/status.h"

namespace rlock::cli {
namespace {

constexpr milliseconds kSayAgain = 1min;
// Without a terminal, report only longer waits, because cron would mail the line.
constexpr milliseconds kSayFirst = 2s;

// A lock that we wait for: reports who holds it, and asks the holders to stop with --supersede.
class AwaitedLock {
 public:
  // The wait begins now. REQUIRES: the arguments outlive this object.
  AwaitedLock(lock::Servers& servers, const LockingOptions& options, const lock::AcquireRequest& request,
              const lock::WaitPolicy& policy, const Events& events)
      : servers_(servers),
        options_(options),
        request_(request),
        policy_(policy),
        events_(events),
        wait_{policy.limit ? BootClock::now() + *policy.limit : TimePoint::max(), policy.interrupt} {}

  // Must be called whenever the lock was found held. Returns why the wait can never end, and what to do instead: the
  // holder is an `rlock run` above this process, or what RLOCK_OWNER names. "": it may end.
  std::string look(const lock::Held& found) {
    if (found.holders == 0 && !found.back) return "";
    if (!found.expires_in && !std::exchange(warned_, true)) {
      log::warning(request_.name.display() +
                   ": the lock never expires, so it is only free after its holder releases it");
    }
    if (policy_.limit == 0ms) return "";
    if (std::string why = own_hold(found); !why.empty()) return why;
    note(found);
    say_what_is_due();
    if (options_.supersede) ask_to_stop();
    return "";
  }

  // Reports the holder and our place in the queue if that is due: on a terminal at the start, every minute and after
  // changes; otherwise after two seconds and then every minute. Returns when the next report is due.
  TimePoint say_what_is_due() {
    const TimePoint now = BootClock::now();
    if (!found_) return TimePoint::max();
    if (now < say_at_) return say_at_;
    lock::Held found = *found_;
    const auto passed = std::chrono::duration_cast<milliseconds>(now - found_at_);
    if (found.holder && found.holder->held_for) *found.holder->held_for += passed;
    if (found.back) {
      found.back->age += passed;
      found.back->left = std::max(found.back->left - passed, 0ms);
    }
    const auto forecast = forecast_of(found);
    log::info("waiting for " + request_.name.display() + ": " + held_by(found) +
                  (found.ahead ? ", you are " + place_text(*found.ahead) : "") +
                  (forecast ? "; " + forecast_text(*forecast, options_.verbose) : "") +
                  (meanwhile_.empty() ? "" : "; meanwhile you hold " + meanwhile_),
              {"waiting", request_.name.text()});
    return say_at_ = now + kSayAgain;
  }

 private:
  // Not the one that we wait for: a hold that frees one of several slots may be another's, and a reader waits for
  // writers only.
  bool may_be_another(const lock::HolderView& holder) const {
    using Kind = lock::Mode::Kind;
    const bool both_read = request_.mode.kind == Kind::read && holder.mode == "read";
    return request_.mode.kind == Kind::slots || both_read || holder.who.ended;
  }

  // Only what is certain, of a new holder.
  std::string own_hold(const lock::Held& found) const {
    if (!found.holder || found.holder->owner == shown_owner_) return "";
    const lock::HolderView& holder = *found.holder;
    if (may_be_another(holder)) return "";
    const std::vector<pid_t> ancestors = run::ancestors();
    const pid_t has_it = pid_here(holder);
    for (const pid_t pid : ancestors) {
      const auto words = is_rlock(pid) ? run::words_of_process(pid) : std::vector<std::string>{};
      if (!runs_under(words, holder.owner, pid == has_it)) continue;
      // Then it may end first, and leave us behind.
      if (has_any(words, {"ignore", "--leftovers=ignore", "RLOCK_LEFTOVERS=ignore"})) return "";
      return "this runs under pid " + std::to_string(pid) +
             ", which holds it; to be let in, pass RLOCK_HELD on, as sudo --preserve-env=RLOCK_HELD does";
    }
    return hold_of_variable(found, std::ranges::count(ancestors, has_it) > 0 ? has_it : 0);
  }

  // 0: it is on another host, or unknown.
  pid_t pid_here(const lock::HolderView& holder) const {
    const bool here = holder.described && holder.who.host == request_.holder.host;
    return here ? static_cast<pid_t>(holder.who.pid) : 0;
  }
  static bool is_rlock(pid_t pid) {
    static const std::string ours = run::name_of_process(getpid());
    return run::name_of_process(pid) == ours;
  }
  static bool has_any(const std::vector<std::string>& words, std::initializer_list<std::string> ones) {
    return std::ranges::find_first_of(words, ones) != words.end();
  }

  // Whether that is the line of an `rlock run` with our lock. A holder on a host that only has the name of this one, as
  // containers may, is no mistake, because something runs below the ancestor, so that has this very lock, too.
  bool runs_under(const std::vector<std::string>& words, const std::string& owner, bool has_it) const {
    return has_any(words, {"run"}) && has_any(words, {request_.name.text()}) &&
           (has_it || has_any(words, {owner, "--owner=" + owner}));
  }

  // If RLOCK_OWNER names the holder. `has_it`: the ancestor that holds the lock; 0: none.
  std::string hold_of_variable(const lock::Held& found, pid_t has_it) const {
    const char* owners = std::getenv("RLOCK_OWNER");
    if (!owners || std::ranges::count(split(owners, '\n'), found.holder->owner) == 0) return "";
    if (found.holder->who.listens) {
      // A keeper (acquire --for-pid) renews it.
      if (has_it == 0 || is_rlock(has_it)) return "";
      return "RLOCK_OWNER holds it until pid " + std::to_string(has_it) +
             " ends, and this runs under it: run the command without rlock";
    }
    const bool ends = found.expires_in && BootClock::now() + *found.expires_in < wait_.deadline;
    if (policy_.limit && ends) return "";
    return "RLOCK_OWNER holds it: run the command under that hold with rlock run --owner \"$RLOCK_OWNER\" " +
           escaped(shell_word(request_.name.text()));
  }

  void note(const lock::Held& found) {
    const std::string owner = found.holder.transform([](const auto& one) { return one.owner; }).value_or("");
    const auto ahead = found.ahead.or_else([&] { return shown_ahead_; });
    const bool news = owner != shown_owner_ || ahead != shown_ahead_;
    if (owner != shown_owner_) events_.waiting(request_.name, found, forecast_of(found));
    const TimePoint now = BootClock::now();
    const bool told = std::exchange(held_back_, found.back && !found.holder);
    if (!watched_ && !found_) {
      say_at_ = now + kSayFirst;
    } else if ((watched_ && news) || (held_back_ && !told)) {
      say_at_ = now;
    }
    found_ = found;
    found_at_ = now;
    shown_owner_ = owner;
    shown_ahead_ = ahead;
  }

  std::optional<lock::Forecast> forecast_of(const lock::Held& found) const {
    if (!found.holder) return {};
    return lock::forecast(*found.holder, found.ahead, request_.mode.slots, request_.mode.taken);
  }

  // A reader only waits for writers. For a slot, one holder has to stop: the one that has held its slot for the longest
  // time, and that can be asked.
  std::vector<lock::HolderView> in_the_way(const lock::Status& status) const {
    std::vector<lock::HolderView> holders = status.holders;
    if (request_.mode.kind == lock::Mode::Kind::read) {
      std::erase_if(holders, [](const lock::HolderView& holder) { return holder.mode == "read"; });
    }
    if (status.lock.layout != lock::Layout::semaphore || holders.empty()) return holders;
    const auto rank = [&](const lock::HolderView& one) {
      return std::tuple(one.who.listens && asked_.contains(one.owner), one.who.listens, one.held_for);
    };
    return {std::ranges::max(holders, {}, rank)};
  }

  // Asks all of them again each time, because a new holder may not listen yet, and all holders listen on one channel,
  // so the server's answer does not tell who has received the request.
  void ask_to_stop() {
    const auto status = servers_->inspect(request_.name, exchange(), {.majority = true});
    if (!status || status->state != lock::Status::State::held) return;
    for (const lock::HolderView& holder : in_the_way(*status)) ask_to_stop(holder);
  }

  void ask_to_stop(const lock::HolderView& holder) {
    const std::string name = request_.name.display();
    if (!holder.who.listens) {
      if (!asked_.insert(holder.owner).second) return;
      log::warning(name + ": " + held_by(holder) + ": it cannot be asked to stop; waiting until it releases the lock");
      return;
    }
    const std::string& reason = request_.holder.reason;  // several jobs of CI are one user's
    const std::string by = asker("--supersede" + (reason.empty() ? "" : ", reason " + in_quotes(reason)));
    const auto heard = servers_->ask_to_stop(request_.name, lock::OwnerId::as_stored(holder.owner), by, exchange());
    if (!heard || *heard == 0 || !asked_.insert(holder.owner).second) return;
    log::info(name + ": the holder has been asked to stop");
  }

  Until exchange() const { return wait_.at_most(policy_.exchange); }

  lock::Servers& servers_;
  const LockingOptions& options_;
  const lock::AcquireRequest& request_;
  const lock::WaitPolicy& policy_;
  const Events& events_;
  const bool watched_ = options_.verbose || isatty(STDERR_FILENO);  // report as on a terminal
  const Until wait_;
  // Other locks that this process runs under, for messages.
  const std::string meanwhile_ = held_by_ancestors().display_without(request_.name);
  bool held_back_ = false;  // by the epoch guard, when it last looked
  bool warned_ = false;
  std::optional<std::string> shown_owner_;
  std::optional<long long> shown_ahead_;
  std::optional<lock::Held> found_;  // most recently
  TimePoint found_at_{}, say_at_{};
  std::set<std::string> asked_;  // owners that were asked to stop, or cannot be asked
};

// Slots that are free may be kept for a job that waits for more of them.
std::string kept_slots(lock::Servers& servers, const lock::AcquireRequest& request, milliseconds exchange) {
  if (request.mode.kind != lock::Mode::Kind::slots) return "";
  const auto found = servers->inspect(request.name, Until{}.at_most(exchange));
  if (!found || found->queue.empty()) return "";
  const long long usable = request.mode.resources.empty() ? found->slots : std::min(found->slots, lock::kMostNumbers);
  const long long free = usable - found->taken, wanted = found->queue.front().taken;
  if (free < request.mode.taken || wanted <= free) return "";
  return "; " + std::to_string(free) + " of " + std::to_string(found->slots) +
         (free == 1 ? " slots is free" : " slots are free") + ", but a job that waits in front wants " +
         std::to_string(wanted);
}

// The option for a lock of that layout, for users who asked for another kind.
std::string advice_for(const std::optional<lock::Layout>& layout, bool by_set) {
  if (!layout) return "";
  if (layout == lock::Layout::string) return "; use --protocol set";
  const std::string redisson = by_set ? "; it is a Redisson lock: use --protocol redisson" : "; use";
  const std::string with = by_set ? " with " : " ";
  switch (*layout) {
    case lock::Layout::read_write: return redisson + with + "-s or -x";
    case lock::Layout::semaphore: return redisson + with + "--slots";
    default: return by_set ? redisson : redisson + " it without -s, -x or --slots";
  }
}

// How the name is in use and, if that is a lock, who holds it and which option to use.
Error other_kind(lock::Servers& servers, const lock::AcquireRequest& request, const lock::OtherKind& instead,
                 milliseconds exchange) {
  const lock::LockName& name = request.name;
  const auto found = servers->inspect(name, Until{}.at_most(exchange));
  const lock::HolderView* holder = found && found->state == lock::Status::State::held ? found->holder() : nullptr;
  // A string lock of rlock looks like one of another program.
  const bool known = holder && !holder->by_set;
  const std::string in_use = name.display() + ": in use, but not as a lock";
  if (instead.foreign && !(known && found->lock.layout == lock::Layout::string)) {
    const bool may_be_lock = instead.may_be_string_lock() && instead.expires_in;
    return {Error::Code::wrong_kind, in_use + ": " + instead.text() + "; rlock did not change it: use " +
                                         (may_be_lock ? "--protocol set if it is such a lock, otherwise another name"
                                                      : "another name for the lock")};
  }
  const auto layout = instead.foreign ? lock::Layout::string : instead.layout();
  const std::string what = instead.foreign ? "a " + std::string(noun(lock::Layout::string)) : instead.text();
  return {Error::Code::wrong_kind, in_use + " of this kind: " + what + (known ? ", " + held_by(*found) : "") +
                                       advice_for(layout, request.mode.kind == lock::Mode::Kind::set)};
}

// The epoch guard holds everybody back, so nobody does the work; or it waits for its own hold, which is a mistake.
bool is_trouble(const lock::Acquired& refusal) {
  const auto* held = std::get_if<lock::Held>(&refusal);
  return (held && held->back && !held->holder) || std::holds_alternative<lock::Endless>(refusal);
}

template <class... Each>
struct Overloaded : Each... {
  using Each::operator()...;
};

// Reports why a lock was not acquired, or returns it as an error. Has a branch for each outcome.
Result<void> refused(lock::Servers& servers, const LockingOptions& options, const lock::AcquireRequest& request,
                     const lock::Acquired& refusal, milliseconds waited) {
  const std::string name = request.name.display() + ": ";
  // -E 0 is for cron, which mails every line.
  const bool expected = options.conflict_status == 0 && !is_trouble(refusal);
  const bool silent = expected && !options.verbose && !isatty(STDERR_FILENO);
  const auto report = [&](const std::string& why) {
    const bool over = std::holds_alternative<lock::Held>(refusal) && options.wait.limit != 0ms;
    const std::string text = name + "not acquired" + (over ? " after " + rough_duration(waited) : "") + ": " + why;
    if (expected && !silent) log::notice(text);
    if (!expected) log::error(text, {"not-acquired", request.name.text()});
    return Result<void>{};
  };
  const auto refuse = [&](const std::string& why) { return fail(Error::Code::wrong_kind, name + why); };
  return std::visit<Result<void>>(
      Overloaded{
          [](const lock::Hold&) { return Result<void>{}; }, [](const lock::Succeeded&) { return Result<void>{}; },
          [&](const lock::Held& held) {
            return silent ? Result<void>{} : report(held_by(held) + kept_slots(servers, request, options.timeout));
          },
          [&](const lock::QueueFull& full) {
            return report(std::to_string(full.number) + " are already waiting, which is the limit of --max-queue");
          },
          [&](const lock::Replaced& replaced) { return report("replaced in the queue by " + replaced.text); },
          [&](const lock::Endless& endless) { return report(endless.text); },
          [&](const lock::AskedFor& asked) {
            return report("asked by " + asked.text + " to give it up while waiting for other locks");
          },
          [&](const lock::OtherKind& instead) {
            return std::unexpected(other_kind(servers, request, instead, options.timeout));
          },
          [&](const lock::Immortal& immortal) {
            return refuse(held_by(immortal) +
                          ", and never expires: its program may have died; wait for it with --wait DUR, or delete it "
                          "with rlock force-unlock --protocol set " +
                          escaped(shell_word(request.name.text())));
          },
          [&](const lock::OtherSlots& other) {
            return refuse("it has " + std::to_string(other.number) + " slots, not " +
                          std::to_string(request.mode.slots) + "; --resize changes that");
          },
          [&](const lock::OtherNames& other) {
            return refuse("its resources are " + other.text +
                          ", which --from must write in the same way while it is in use");
          },
          [&](const lock::NotHeld&) {
            return refuse("not held by owner " + request.heir->text() +
                          ": its lease has ended, it was released, or rlock did not grant it");
          },
          [&](const lock::InUse&) {
            return refuse("this hold is in use: a job runs under it, or rlock acquire --for-pid keeps it");
          },
          [&](const lock::NoUpgrade&) {
            const std::string why =
                request.conditions.once
                    ? "the lock already, so two of its processes could do this at once; give --once a lock of its own"
                : request.mode.kind == lock::Mode::Kind::slots
                    ? "fewer slots, so it would wait forever for more; let the outer one take them"
                    : "the lock for reading, so it would wait forever to write";
            return fail(Error::Code::usage, name + "this runs under an `rlock run` that holds " + why);
          }},
      refusal);
}

// Some options cannot work if each server decides alone.
Result<void> check_for_quorum(const lock::Mode& mode, const lock::WaitPolicy& policy) {
  const std::pair<bool, std::string_view> refused[] = {
      {mode.kind == lock::Mode::Kind::slots,
       "--slots or --from: majorities would let in more jobs than there are slots, and could not agree on their "
       "numbers"},
      {policy.replicas > 0, "--wait-replicas: the other servers of the quorum do what replicas would do"},
      {policy.queueing.most.has_value(), "--max-queue: there is no queue"},
      {policy.queueing.replace, "--replace-waiting: there is no queue"},
      {policy.queueing.priority != 0, "--priority: there is no queue"}};
  for (const auto& [given, why] : refused) {
    if (given) return unfit_for_quorum(why);
  }
  return {};
}

void count_skip(lock::Servers& servers, const lock::AcquireRequest& request, milliseconds exchange) {
  const lock::OwnerId nobody = lock::OwnerId::fresh();
  const lock::HistoryNote note{"skips", {}};
  const auto counted = servers->release(
      lock::ReleaseRequest{{request.name, request.mode.layout()}, nobody, nobody.first_hold(), {}, &note},
      Until{}.at_most(exchange));
  if (!counted) log::debug(request.name.display() + ": not counted as skipped: " + counted.error().message);
}

std::vector<lock::AcquireRequest> requests_for(const LockingOptions& options, const Wanted& wanted) {
  const lock::AncestorLocks held = held_by_ancestors();
  std::vector<lock::AcquireRequest> requests;
  for (const lock::LockName& name : options.names) {
    requests.push_back({.name = name,
                        .mode = options.mode,
                        .heir = wanted.owner ? wanted.owner : held.owner_of(name),
                        .only_heir = wanted.owner.has_value(),
                        .lease = wanted.lease,
                        .holder = wanted.holder,
                        .conditions = {.once = wanted.once}});
  }
  return requests;
}

void report_grant(const lock::Hold& hold, milliseconds waited) {
  const std::string name = hold.name().display();
  log::debug(name + ": granted after " + rough_duration(waited) + ", for " + format_duration(hold.lease) +
                 ", fencing token " + escaped(hold.token, 40),
             {"acquired", hold.name().text()});
  if (hold.lock.layout != lock::Layout::semaphore || !hold.slots.numbers.empty()) return;
  log::warning(name + ": RLOCK_SLOT is empty, because the user has no right to the key " +
               escaped(hold.name().pool_key()) +
               " (rlock doctor --acl prints the rights), or it has 10000 numbers already");
}

}  // namespace

std::unexpected<Error> unfit_for_quorum(std::string_view why) {
  return fail(Error::Code::usage, "with several servers you cannot use " + std::string(why));
}

int status_of(const lock::Acquired& refusal, int conflict_status) {
  return is_trouble(refusal) ? kNotAcquired : conflict_status;
}

Result<lock::Taken> acquire_and_report(lock::Servers& servers, const LockingOptions& options, const Wanted& wanted,
                                       const Events& events) {
  lock::WaitPolicy policy = options.wait;
  policy.exchange = options.timeout;
  policy.interrupt = wanted.interrupt;
  policy.renew_every = wanted.renew_every;
  policy.at_front = wanted.at_front;
  if (options.supersede) policy.longest_look = 500ms;  // to ask the holders again
  if (servers.size() > 1) RLOCK_TRY(check_for_quorum(options.mode, policy));
  const std::vector<lock::AcquireRequest> requests = requests_for(options, wanted);
  const TimePoint begun = BootClock::now();
  std::vector<AwaitedLock> waiting;
  for (const auto& request : requests) waiting.emplace_back(servers, options, request, policy, events);
  AwaitedLock* current = nullptr;
  policy.meanwhile = [&] { return current->say_what_is_due(); };
  auto acquired = lock::acquire_all(servers, requests, policy, [&](std::size_t index, const lock::Held& found) {
    current = &waiting[index];
    return current->look(found);
  });
  if (!acquired) return std::unexpected(std::move(acquired).error().in(names_of(requests)));
  const auto waited = std::chrono::duration_cast<milliseconds>(BootClock::now() - begun);
  for (const lock::Hold& hold : acquired->holds) report_grant(hold, waited);
  if (acquired->holds.empty() && !std::holds_alternative<lock::Succeeded>(acquired->refusal)) {
    const lock::AcquireRequest& request = requests[acquired->refused];
    if (wanted.once || (options.history && !wanted.owner)) count_skip(servers, request, options.timeout);
    RLOCK_TRY(refused(servers, options, request, acquired->refusal, waited));
  }
  return *std::move(acquired);
}

}  // namespace rlock::cli
