// SPDX-License-Identifier: MIT
#include "lock/listing.h"

#include "redis/server_info.h"

namespace rlock::lock {
namespace {

constexpr std::string_view kAskByName = "; ask for locks by their names";

// About how many bytes a string takes on the heap.
std::size_t heap_of(const std::string& text) { return text.capacity() + 2 * sizeof(void*); }

// In a set, with its node.
std::size_t size_of(const LockName& name) { return sizeof name + 6 * sizeof(void*) + heap_of(name.text()); }

// What the names of one team probably have in common: "ci:" for "ci:build:7". May be empty.
std::string prefix_of(const LockName& name) {
  const std::string& text = name.text();
  std::size_t end = text.find_first_of(":/");
  if (end == text.npos) end = text.find_first_of("-_.");
  return end == text.npos ? "" : text.substr(0, end + 1);
}

void leave_out(LeftOut& left_out, const std::string& prefix, std::size_t locks) {
  constexpr std::size_t kMostPrefixes = 100;
  const bool has_room = left_out.of_prefix.contains(prefix) || left_out.of_prefix.size() < kMostPrefixes;
  left_out.of_prefix[has_room ? prefix : ""] += locks;
  left_out.number += locks;
}

// The common prefix of their words, because a pattern cannot have alternatives.
std::string pattern_of(std::span<const Companion> companions) {
  std::string start = std::string(companions.front().word) + ":";
  for (const Companion& one : companions) {
    start.erase(std::ranges::mismatch(start, std::string(one.word) + ":").in1, start.end());
  }
  return start + "*";
}

Result<void> add_names(const Reading& on, redis::Client& client, std::span<const Companion> companions,
                       FewNames& names) {
  const std::string pattern = pattern_of(companions);
  std::string cursor = "0";
  do {
    const redis::Reply reply = RLOCK_TRY(client.insist({"SCAN", cursor, "MATCH", pattern, "COUNT", "1000"}, on.next()));
    cursor = reply.at(0).as_text();
    if (cursor.empty()) return client.unexpected_reply("SCAN");
    for (const redis::Reply& key : reply.at(1).elements) {
      for (const Companion& one : companions) {
        if (auto name = LockName::of_companion(one, key.as_text())) names.add(*std::move(name));
      }
    }
    RLOCK_TRY(within_list_limits(0, on.end));
  } while (cursor != "0");
  return {};
}

Result<void> find_names(const Reading& on, std::span<const Companion> companions, FewNames& names) {
  auto parts = RLOCK_TRY(on.client.parts(on.next()));
  for (redis::Client& part : parts) RLOCK_TRY(add_names(on, part, companions, names));
  if (parts.empty()) RLOCK_TRY(add_names(on, on.client, companions, names));
  return {};
}

std::size_t size_of(const HolderInfo& who) {
  std::size_t size = 0;
  for (const auto& [name, text] : lua::kSelfTexts) size += heap_of(who.*text);
  return size;
}

std::size_t size_of(const std::vector<std::string>& texts) {
  std::size_t size = 0;
  for (const std::string& text : texts) size += sizeof text + heap_of(text);
  return size;
}

std::size_t size_of(const Status& status) {
  std::size_t size = sizeof status + heap_of(status.name().text()) + heap_of(status.token);
  for (const HolderView& one : status.holders) {
    size += sizeof one + heap_of(one.owner) + heap_of(one.token) + size_of(one.who);
    size += one.slots.numbers.size() * sizeof(int) + size_of(one.slots.resources);
  }
  for (const WaiterView& one : status.queue) size += sizeof one + size_of(one.who);
  return size + size_of(status.fair_queue) + size_of(status.resources);
}

// Locks in one exchange: twice as many each time, as long as the answers are small. The first lock is asked for alone,
// so that the server then knows the script.
constexpr std::size_t kAtOnce = 100;
constexpr std::ptrdiff_t kSmallAnswers = 256 << 10;

// Looks again, by itself, at a lock that is not a plain one, or for which there was no answer.
Result<Status> of_any_kind(ByScripts& verbs, const LockName& name, Result<Status> plain, const Until& until) {
  const bool done = plain ? plain->state != Status::State::other_kind : is_of_others(plain.error());
  return done ? std::move(plain) : verbs.inspect(name, until, {});
}

// A holder's description may outlive its lock, and the key may hold another program's string by then. If there is a
// queue, a process of rlock waits for it, even if the lock is free and the epoch guard holds grants back.
bool is_ours(const Status& status) {
  if (status.waiting > 0) return status.state != Status::State::other_kind;
  return status.state == Status::State::held && (!status.holder() || !status.holder()->by_set);
}

// Adds these locks of one server to the list. `room`: the bytes that are left, less than 0 once one did not fit.
// Returns how many it has looked at, without that one.
Result<std::size_t> add_page(const Reading& on, std::span<const LockName> page, const std::set<LockName>& also,
                             std::ptrdiff_t& room, Listing& all) {
  ByScripts verbs(on.client);
  auto plain = verbs.inspect_plain(page, on.next());
  for (std::size_t i = 0; i < page.size(); ++i) {
    auto looked = of_any_kind(verbs, page[i], std::move(plain[i]), on.next());
    if (!looked && is_of_others(looked.error())) {
      all.refused.insert(page[i]);
      continue;
    }
    Status status = RLOCK_TRY(std::move(looked));
    if (is_ours(status) || also.contains(page[i])) {
      room -= static_cast<std::ptrdiff_t>(size_of(status));
      if (room < 0) return i;
      all.locks.push_back(std::move(status));
    }
    RLOCK_TRY(within_list_limits(0, on.end));
  }
  return page.size();
}

// What the servers of a quorum say of one lock; none: it may be one that a list has left out.
std::optional<Answers<Status>> answers_about(const LockName& name, const Answers<Listing>& lists) {
  Answers<Status> answers;
  for (const auto& list : lists) {
    if (!list) {
      answers.push_back(std::unexpected(list.error()));
      continue;
    }
    const auto found = std::ranges::lower_bound(list->locks, name, {}, &Status::name);
    const bool there = found != list->locks.end() && found->name() == name;
    if (!there && list->left_out.number > 0) return {};
    answers.push_back(there ? *found : Status{.lock = {name}});
  }
  return answers;
}

// True if the user lacks the right to one of the keys.
bool has_keys(redis::Client& client, const LockName& name, const Until& until) {
  std::vector<std::string> words = {"EXISTS", name.text(), name.due_key()};
  for (const Companion& one : lua::kCompanions) {
    if (is_key(one)) words.push_back(name.companion(one));
  }
  const redis::Words command(words.begin(), words.end());
  const auto reply = client.insist(command, until);
  return !reply || reply->as_number() != 0;
}

Result<Listing> inspect_quorum(Quorum& quorum, milliseconds exchange, const std::set<LockName>& also) {
  const auto look = [&](Member& member, const Until& end) {
    // The verdicts have the holders of each server once more.
    return inspect_one_server(member.client, std::min(exchange, rlock::until(end.deadline)), also,
                              kLongestList / (2 * quorum.size()));
  };
  const auto lists = quorum.look_at_each<Listing>(look, exchange, Until{});
  RLOCK_TRY(quorum.expect_majority(lists, true));
  std::set<LockName> names;
  Listing all;
  for (const Listing* list : given(lists)) {
    // A verdict on a lock that is free does not count waiters.
    for (const Status& status : list->locks) {
      if (status.state != Status::State::free || also.contains(status.name())) names.insert(status.name());
    }
    all.refused.insert(list->refused.begin(), list->refused.end());
    if (list->left_out.number > all.left_out.number) all.left_out = list->left_out;
  }
  for (const LockName& name : names) {
    all.refused.erase(name);
    if (const auto answers = answers_about(name, lists)) {
      all.locks.push_back(quorum.merged(name, *answers));
    } else {
      leave_out(all.left_out, prefix_of(name), 1);
    }
  }
  return all;
}

}  // namespace

void FewNames::add(LockName name) {
  const std::size_t size = size_of(name);
  if (!of_prefix_[prefix_of(name)].insert(std::move(name)).second) return;
  size_ += size;
  while (size_ > most_) drop_some();
}

void FewNames::drop_some() {
  const auto most = std::ranges::max_element(of_prefix_, {}, [](const auto& team) { return team.second.size(); });
  auto& [prefix, names] = *most;
  const std::size_t dropped = names.size() - names.size() / 2;
  for (std::size_t i = 0; i < dropped; ++i) {
    size_ -= size_of(*names.rbegin());
    names.erase(std::prev(names.end()));
  }
  leave_out(left_out_, prefix, dropped);
  if (names.empty()) of_prefix_.erase(most);
}

std::vector<LockName> FewNames::in_turns() const {
  std::vector<LockName> all;
  std::vector<std::pair<std::set<LockName>::const_iterator, std::set<LockName>::const_iterator>> teams;
  for (const auto& [prefix, names] : of_prefix_) teams.emplace_back(names.begin(), names.end());
  while (!teams.empty()) {
    for (auto& [next, end] : teams) all.push_back(*next++);
    std::erase_if(teams, [](const auto& team) { return team.first == team.second; });
  }
  return all;
}

std::set<LockName> FewNames::take() {
  std::set<LockName> all;
  for (auto& [prefix, names] : of_prefix_) all.merge(names);
  return all;
}

Result<milliseconds> clock_of(redis::Client& client, const Until& until) {
  const auto clock = RLOCK_TRY(redis::read_clock(client, until));
  return std::chrono::floor<milliseconds>(clock.server.value_or(clock.ours));
}

Result<std::set<LockName>> names_with(const Reading& on, std::span<const Companion> companions) {
  FewNames names(kLongestList);
  RLOCK_TRY(find_names(on, companions, names));
  return names.take();
}

Result<void> within_list_limits(std::size_t size, const Until& end) {
  if (size > kLongestList) {
    return fail(Error::Code::protocol, "the list of locks takes more than " + std::to_string(kLongestList >> 20) +
                                           " MiB" + std::string(kAskByName));
  }
  if (end.over()) {
    return fail(Error::Code::unavailable, "looking at all keys takes too long" + std::string(kAskByName));
  }
  return {};
}

// The messages of Redis 7.0 and of 7.4.
bool is_of_others(const Error& error) {
  return error.code == Error::Code::denied &&
         (error.message.contains("the keys used as arguments") || error.message.contains("to access a key"));
}

// Names and locks share the room.
Result<Listing> inspect_one_server(redis::Client& client, milliseconds exchange, const std::set<LockName>& also,
                                   std::size_t most) {
  const Reading on{client, exchange};
  constexpr Companion kFound[] = {lua::kHolder, lua::kQueue};
  Listing all;
  std::vector<LockName> names;
  {
    FewNames found(most / 4);
    RLOCK_TRY(find_names(on, kFound, found));
    for (const LockName& name : also) found.add(name);
    names = found.in_turns();
    all.left_out = found.left_out();
  }
  auto room = static_cast<std::ptrdiff_t>(most);
  for (const LockName& name : names) room -= static_cast<std::ptrdiff_t>(sizeof name + heap_of(name.text()));
  all.locks.reserve(std::min(names.size(), most / sizeof(Status)));
  std::size_t looked_at = 0;
  for (std::size_t wanted = 1; looked_at < names.size() && room >= 0;) {
    const std::size_t count = std::min(wanted, names.size() - looked_at);
    const std::ptrdiff_t before = room;
    looked_at += RLOCK_TRY(add_page(on, std::span(names).subspan(looked_at, count), also, room, all));
    wanted = before - room < kSmallAnswers ? std::min(2 * count, kAtOnce) : count / 2 + 1;
  }
  for (const LockName& name : std::span(names).subspan(looked_at)) leave_out(all.left_out, prefix_of(name), 1);
  std::ranges::sort(all.locks, {}, &Status::name);
  return all;
}

Result<Listing> inspect_all(Servers& servers, milliseconds exchange, const std::set<LockName>& also) {
  auto all = RLOCK_TRY(servers.quorum() ? inspect_quorum(*servers.quorum(), exchange, also)
                                        : inspect_one_server(servers.client(0), exchange, also));
  for (Status& status : all.locks) status.asked = servers.display();
  std::ranges::sort(all.locks, comes_before, [](const Status& one) -> const std::string& { return one.name().text(); });
  return all;
}

bool is_known(Servers& servers, const Status& status, const Until& until) {
  const bool shows = status.state != Status::State::free || !status.token.empty() || status.waiting > 0 ||
                     !status.fair_queue.empty() || status.listening > 0;
  if (shows) return true;
  const auto given = servers.ask_each<bool>(
      [&](redis::Client& client, const Until& end) -> Result<bool> { return has_keys(client, status.name(), end); },
      kLookLimit, until);
  return std::ranges::any_of(given, [](const auto& answer) { return answer.value_or(true); });
}

}  // namespace rlock::lock
