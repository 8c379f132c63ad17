// SPDX-License-Identifier: MIT
#include "lock/rights.h"

#include "redis/server_error.h"
#include "verbs/verbs.h"

namespace rlock::lock {
namespace {

constexpr std::string_view kCommands =
    "-@all +eval +evalsha +time +get +set +hget +hset +hexists +hdel +hmget +hgetall +hlen +exists +type +pttl "
    "+pexpire +zadd +zcard +zrange +zrank +zrem +zscore +pubsub|numsub "
    "+incrby +zcount +zrangebyscore +zremrangebyscore +zrevrange "
    "+lrange +rpush +lrem +persist +xadd +xrevrange +zrevrangebyscore +hincrby "
    "+del +publish +subscribe +unsubscribe +select +scan +hscan +getrange +info +client|setname";

// Redis 7 and later, because of the last three.
constexpr std::string_view kClusterCommands =
    " +cluster|slots +asking +ssubscribe +sunsubscribe +spublish +pubsub|shardnumsub";

// Names that contain a brace have no braces around them in their companions, but a prefix cannot contain one.
std::string patterns(const std::string& prefix) {
  std::string keys = prefix.empty() ? "~*" : "~" + prefix + "* ~{" + prefix + "* ~" + std::string(lua::kEpoch),
              channels;
  for (const Companion& one : lua::kCompanions) {
    const std::string pattern = std::string(one.word) + ":" + (prefix.empty() ? "" : "{" + prefix) + "*";
    if (is_channel(one)) {
      channels += " &" + pattern;
    } else if (is_key(one) && !prefix.empty()) {
      keys += " ~" + pattern;
    }
  }
  return keys + channels;
}

constexpr milliseconds kTrialLease = 10s;  // short, in case this process dies

// The commands that need separate rights in a script. Replies for each why it failed, or "".
constexpr std::string_view kCommandsInScripts = R"(
local function try(...)
  local reply = redis.pcall(...)
  return type(reply) == 'table' and reply.err or ''
end
local said, count = unpack(ARGV)
local publish = ''
for i = 3, #ARGV do
  if publish == '' then publish = try(said, ARGV[i], '') end
end
return {try('time'), try('pubsub', count, ARGV[3]), publish}
)";
// No script has this SHA1.
constexpr std::string_view kUnknownScript = "0000000000000000000000000000000000000000";

class Trial {
 public:
  Trial(redis::Client& client, LockName name, const HolderInfo& who, milliseconds exchange)
      : client_(client), name_(std::move(name)), who_(who), exchange_(exchange) {}

  Result<std::vector<Tried>> run() && {
    try_evalsha();
    try_eval();
    try_lock();
    try_kind("shared", "there are no read-write locks", {.kind = Mode::Kind::read});
    try_kind("slots", "there are no semaphores", {.kind = Mode::Kind::slots, .slots = 1});
    try_listening();
    try_listing();
    tidy_up();
    if (gone_) return std::unexpected(*std::move(gone_));
    return std::move(all_);
  }

 private:
  Until soon() const { return Until{}.at_most(exchange_); }

  template <class T>
  bool note(std::string_view what, std::string_view without, const Result<T>& result) {
    all_.push_back({what, without, {}});
    if (!result) all_.back().failure = result.error();
    return result.has_value();
  }

  // Notices if the server does not answer; then nothing else is tried.
  template <class T>
  Result<T> heard(Result<T> result) {
    if (!result && !client_.answered()) gone_ = result.error();
    return result;
  }

  // What the server answers about a lock that nobody else knows must be `expected`.
  template <class T, class Expected>
  Result<void> expect(Result<T> result, const Expected& expected, std::string_view instead) {
    const T answer = RLOCK_TRY(heard(std::move(result)));
    if (expected(answer)) return {};
    return fail(Error::Code::protocol, "the server answered that the lock is " + std::string(instead));
  }

  Result<Hold> acquire(const Mode& mode = {}) {
    const Acquired acquired = RLOCK_TRY(heard(verbs_.acquire(request(mode), BootClock::now(), soon())));
    if (const Hold* hold = std::get_if<Hold>(&acquired)) return *hold;
    return fail(Error::Code::protocol, "the server answered that the lock is held by another");
  }

  Result<void> release(const Hold& hold) {
    const auto is_released = [](const Released& one) { return one.outcome == ReleaseOutcome::released; };
    return expect(verbs_.release(hold, soon()), is_released, "not ours");
  }

  Result<void> wait() {
    AcquireRequest request = this->request();
    request.queueing.emplace();
    const auto is_held = [](const Acquired& one) { return std::holds_alternative<Held>(one); };
    RLOCK_TRY(expect(verbs_.acquire(request, BootClock::now(), soon()), is_held, "free"));
    RLOCK_TRY(heard(verbs_.release(ReleaseRequest{{name_}, request.owner, request.hold()}, soon())));
    return {};
  }

  AcquireRequest request(const Mode& mode = {}) const {
    return {.name = name_, .mode = mode, .lease = kTrialLease, .holder = who_};
  }

  std::vector<std::string> channels() const {
    return {name_.grant_channel_prefix() + name_.text(), name_.control_channel(), name_.wanted_channel(),
            Lock{name_}.channel()};
  }

  void try_evalsha() {
    const auto named = heard(client_.call({"EVALSHA", kUnknownScript, "0"}, soon()));
    const bool known = named || named.error().code == Error::Code::no_script;
    note("EVALSHA", "each request sends its whole script", known ? Result<redis::Reply>() : named);
  }

  // And the commands that need separate rights in a script.
  void try_eval() {
    if (gone_) return;
    const auto channel = channels();
    const bool sharded = client_.sharded(name_.text(), soon());
    redis::Words words = {"EVAL", kCommandsInScripts, "1", name_.text()};
    words.insert(words.end(), {sharded ? "spublish" : "publish", sharded ? "shardnumsub" : "numsub"});
    words.insert(words.end(), channel.begin(), channel.end());
    const auto replies = heard(client_.call(words, soon()));
    if (!note("EVAL", "", replies)) return;
    const std::string_view commands[] = {"TIME", sharded ? "PUBSUB SHARDNUMSUB" : "PUBSUB NUMSUB",
                                         sharded ? "SPUBLISH" : "PUBLISH"};
    for (std::size_t i = 0; i < std::size(commands); ++i) {
      const std::string why = replies->at(i).as_text();
      // Redis 6.2 omits the first word.
      const std::string text = why.starts_with('@') ? "ERR " + why : why;
      note(commands[i], "", why.empty() ? Result<void>() : std::unexpected(redis::server_error(text)));
    }
  }

  void try_lock() {
    if (gone_) return;
    const auto hold = acquire();
    locks_work_ = note("acquire", "", hold);
    if (!locks_work_) return;
    const auto then = [&](std::string_view what, auto step) {
      if (!gone_) note(what, "", step());
    };
    const auto is_shown = [](const Status& one) { return one.state == Status::State::held; };
    const auto is_renewed = [](const Renewed& one) { return one.outcome == RenewOutcome::renewed; };
    then("wait", [&] { return wait(); });
    then("inspect", [&] { return expect(verbs_.inspect(name_, soon(), {}), is_shown, "free"); });
    then("renew",
         [&] { return expect(verbs_.renew(hold->lock, hold->owner, kTrialLease, soon()), is_renewed, "not ours"); });
    then("release", [&] { return release(*hold); });
  }

  void try_kind(std::string_view what, std::string_view without, const Mode& mode) {
    if (gone_ || !locks_work_) return;
    const auto hold = acquire(mode);
    note(what, without, hold ? release(*hold) : std::unexpected(hold.error()));
  }

  void try_listening() {
    if (gone_) return;
    Result<void> listened;
    for (const std::string& channel : channels()) {
      const auto subscriber = redis::Subscriber::open(client_.address(), {&channel, 1}, soon());
      if (!subscriber && listened) listened = std::unexpected(subscriber.error());
    }
    note("SUBSCRIBE", "waiters only look every five seconds, and holders cannot be asked to stop", listened);
  }

  void try_listing() {
    if (gone_) return;
    note("SCAN", "nobody can list all locks; rlock status needs their names",
         heard(client_.call({"SCAN", "0", "MATCH", name_.holder_key(), "COUNT", "1"}, soon())));
  }

  // The name is never used again, so nothing need stay. If DEL is refused, the other kinds have shown that.
  void tidy_up() {
    if (gone_) return;
    const std::string token = name_.token_key(), holder = name_.holder_key(), permits = name_.permits_key();
    static_cast<void>(heard(client_.call({"DEL", name_.text(), token, holder, permits}, soon())));
  }

  redis::Client& client_;
  ByScripts verbs_{client_};
  LockName name_;
  const HolderInfo& who_;
  milliseconds exchange_;
  std::vector<Tried> all_;
  bool locks_work_ = false;
  std::optional<Error> gone_;  // the server no longer answers
};

}  // namespace

Result<std::string> parse_prefix(std::string_view text) {
  if (text.find_first_of(" \"'{}*?[]\\") != text.npos) {
    return fail(Error::Code::usage, "PREFIX " + in_quotes(text) +
                                        ": a rule cannot contain a blank, a quote, a brace, or a character with a "
                                        "meaning in patterns; give only the beginning of the names, as in p:");
  }
  for (const Companion& one : lua::kCompanions) {
    if (text.empty() || !one.word.starts_with(text)) continue;
    return fail(Error::Code::usage, "PREFIX " + in_quotes(text) + ": keys of all locks begin with it, such as " +
                                        std::string(one.word) + ":{NAME}; give a longer one");
  }
  // The rules for names, apart from the end.
  auto name = LockName::parse(std::string(text) + "x");
  if (!name) return std::unexpected(std::move(name).error().in("PREFIX"));
  return std::string(text);
}

std::string acl_rule(std::string_view prefix, bool cluster) {
  const std::string start(prefix);
  // Redis 6.2 needs resetchannels before the channels.
  return "ACL SETUSER rlock reset resetchannels on >PASSWORD " + patterns(start) + " " + std::string(kCommands) +
         (cluster ? std::string(kClusterCommands) : "");
}

Result<std::vector<Tried>> try_rights(redis::Client& client, const std::string& prefix, const HolderInfo& who,
                                      milliseconds exchange) {
  auto name = RLOCK_TRY(LockName::parse(prefix + "rlock-doctor-" + random_uuid()));
  return Trial(client, std::move(name), who, exchange).run();
}

}  // namespace rlock::lock
