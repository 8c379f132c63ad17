// SPDX-License-Identifier: MIT
// Requests to the script of lua/, and its replies. Only this file knows them; the heads of the verbs there describe
// them.
//
// EVALSHA names the script by its SHA1. EVAL sends its whole text, to a server that does not know it, and for a user
// without the right to EVALSHA. A script that the server does not know has not run, so sending it again adds no doubt.
#pragma once

#include "redis/client.h"
#include "redis/msgpack.h"
#include "verbs/answers.h"
#include "verbs/epoch.h"

namespace rlock::lock {

// Whether a request without a reply is sent again until the deadline.
enum class Attempts { one, until_deadline };

class Call {
 public:
  // With the keys and fields that every request has (lua/01_request.lua). `verb`: "rlock acquire" …. `owner`: whose
  // keys the script may touch; "" for none. `until`: as in Client::sharded().
  Call(redis::Client& client, std::string_view verb, const Lock& lock, const std::string& owner, const Until& until);

  // One of the verb's own keys.
  Call& key(std::string key);
  // The keys that only this owner of a shared lock has.
  void keys_of(const Lock& lock, const std::string& owner);
  // With the epoch guard, if that is wanted. A renewal does not declare its key: a user who has lost the right to that
  // keeps the lock. REQUIRES: it has all other keys.
  Call& guarded(const GuardRequest& asked, bool declared);

  // The command; valid as long as this object, and as nothing is added.
  redis::Words by_sha1() const;
  redis::Words as_a_whole() const;

  redis::PackedMap request;

 private:
  redis::Words words(std::string_view command, std::string_view script) const;

  std::string_view verb_;
  std::vector<std::string> keys_;
  std::string number_of_keys_;
};

// The first 512 bytes, so that a long text does not burden the server.
std::string shortened(const std::string& text);

// The requests. `guard`: what newcomer_guard() returns. `votes`: the server is one of a quorum. `until` limits asking
// the server whether messages are to be published by slot.
Call acquire_call(redis::Client& client, const AcquireRequest& request, const GuardRequest& guard, bool votes,
                  const Until& until);
std::vector<Call> renew_calls(redis::Client& client, std::span<const Hold> holds, milliseconds lease, Guard guard,
                              const Until& until);
// `id`: of the request. `remember`: how long it may be sent again; 0: it is sent only once.
Call release_call(redis::Client& client, const ReleaseRequest& request, const std::string& id, milliseconds remember,
                  const Until& until);
Call force_unlock_call(redis::Client& client, const Lock& lock, const HolderView& shown, const std::string& by,
                       const HistoryNote* note, bool votes, const Until& until);
Call raise_call(redis::Client& client, const Hold& hold, const Until& until);
Call inspect_call(redis::Client& client, const Lock& lock, const Until& until, const OwnerId* owner = nullptr);

// One reply. Errors: those of redis::Client::call and insist, with maybe_executed also if only a sending before the
// last one may have been executed.
Result<redis::Reply> send(redis::Client& client, const Call& call, Attempts attempts, const Until& until);

// A result for each, in one exchange, or three where the script is unknown. Errors: those of redis::Client::call_all.
std::vector<Result<redis::Reply>> send_all(redis::Client& client, std::span<const Call> calls, const Until& until);

// The replies. Everything in them is untrusted. Errors of all: protocol if a reply does not have the shape that the
// script promises.

// Returns nothing if the server must be asked again at once. `sent`: when the first of the requests was sent. Errors:
// also wrong_kind if the key of the fencing token contains something else.
Result<std::optional<Acquired>> read_acquire(const redis::Reply& reply, const AcquireRequest& request, TimePoint sent);

// Never other_kind: inspect tells that from other_owner.
Result<Renewed> read_renewal(const redis::Reply& reply);

// The reply to release and to force_unlock.
Result<Released> read_release(const redis::Reply& reply);

// The spans in what lua/features/08_history.lua has written, at most 20. Untrusted; anything else in it is ignored.
std::vector<milliseconds> read_spans(std::string_view text);

// A record as lua/features/08_once.lua describes it. Returns nothing if it is malformed.
std::optional<PastSuccess> read_success(const std::string& key, std::string_view record);

// False: the owner does not hold the lock.
Result<bool> read_raise(const redis::Reply& reply, const Lock& lock);

// State::other_kind: it is not a lock of the layout of `lock`.
Result<Status> read_inspection(const redis::Reply& reply, const Lock& lock);

}  // namespace rlock::lock
