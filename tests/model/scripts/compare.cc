// SPDX-License-Identifier: MIT
// model_compare [--commands N] [--seed S] [--server PATH]: sends random commands to a real server and to the small
// Redis of the search, through EVAL on both, and compares the replies: wrong types, negative indexes, ranges of scores,
// times, errors.
//
// The server is started for this, on a Unix socket. Prints the first differences, and last "N commands, D differences"
// with the seed. Exit status: 0 no difference, 1 a difference, 2 no server.
#include <hiredis/hiredis.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <random>

#include "base/text.h"
#include "interpreter.h"

namespace {

using namespace rlock::model;
using Words = std::vector<std::string>;

// ARGV: for each command the number of its words, and the words. Shows each reply as a text. Fields of a hash come in
// any order, and a real server's time goes on, so a TTL counts in hundreds of seconds. Of an error only its code
// counts, because each version has its own words.
constexpr const char* kScript = R"LUA(
local function show(reply)
  if type(reply) ~= 'table' then
    return type(reply) .. ' ' .. tostring(reply)
  end
  if reply.err then
    return 'error ' .. (string.match(reply.err, '^%u+') or 'ERR')  -- 6.2 has no code if a number of words is wrong
  end
  if reply.ok then
    return 'status ' .. reply.ok
  end
  local shown = {}
  for i, element in ipairs(reply) do
    shown[i] = show(element)
  end
  return '[' .. table.concat(shown, ', ') .. ']'
end
local function sorted(fields)
  local pairs_of_it, flat = {}, {}
  for i = 1, #fields, 2 do
    pairs_of_it[#pairs_of_it + 1] = {fields[i], fields[i + 1]}
  end
  table.sort(pairs_of_it, function(a, b) return a[1] < b[1] end)
  for _, pair in ipairs(pairs_of_it) do
    flat[#flat + 1], flat[#flat + 2] = pair[1], pair[2]
  end
  return flat
end
local shown, i = {}, 1
while i <= #ARGV do
  local words = tonumber(ARGV[i])
  local name, reply = ARGV[i + 1], redis.pcall(unpack(ARGV, i + 1, i + words))
  if name == 'pttl' and type(reply) == 'number' and reply > 0 then
    reply = math.ceil(reply / 100000)
  elseif name == 'hgetall' and not reply.err then
    reply = sorted(reply)
  elseif name == 'hscan' and not reply.err then
    reply = {reply[1], sorted(reply[2])}
  end
  shown[#shown + 1] = show(reply)
  i = i + words + 1
end
return shown
)LUA";

// One command, whose reply is converted for the client; and a list and maps, packed. The fields of a map come in any
// order.
constexpr const char* kReply = "return redis.pcall(unpack(ARGV))";
constexpr const char* kPack =
    "local one = cmsgpack.pack({tonumber(ARGV[1]), ARGV[2], {ARGV[3], ''}, true, false, tonumber(ARGV[4])})\n"
    "local map = cmsgpack.pack({number = tonumber(ARGV[1])})\n"
    "local nested = cmsgpack.pack({map = {text = ARGV[2], is = true, list = {ARGV[3], {}}}, number = "
    "tonumber(ARGV[4])})\n"
    "local known = cmsgpack.unpack(nested)\n"
    "return {one, cmsgpack.unpack(one), map, cmsgpack.unpack(map).number, cmsgpack.pack({map = {}}), #nested,\n"
    "  known.number, known.map.text, known.map.is, known.map.list, known.absent or ''}";

// The arguments of each command: k key, f field or member, v value, i index, n whole number, s score, b bound of
// scores, t time. An optional part comes as one of several forms.
constexpr std::string_view kForms =
    "get k,getrange kii,set kv,set kvN,set kvP,incrby kn,exists kk,del k,type k,pexpire kt,"
    "persist k,pttl k,hset kfvfv,hset kfn,hget kf,hmget kff,hexists kf,hdel kff,hlen k,"
    "hgetall k,hscan kZ,hincrby kfn,zadd ksf,zadd ksfsf,zadd kXsf,zrem kff,zscore kf,zrank kf,"
    "zcard k,zcount kbb,zrange kii,zrange kiiW,zrange kbbB,zrange kbbBLiiW,zrevrange kiiW,"
    "zrangebyscore kbbWLii,zrangebyscore kbb,"
    "zremrangebyscore kbb,rpush kff,lrange kii,lrem kif,publish kv,hset kf,zadd kff,get";

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}

  Words command() {
    static const Words kAll = rlock::split(kForms, ',');
    const Words form = rlock::split(one_of(kAll), ' ');
    Words words{form.front()};
    for (const char kind : form.size() > 1 ? form[1] : "") add(words, kind);
    return words;
  }

  std::string one_of(const Words& all) { return all[below(all.size())]; }
  std::size_t below(std::size_t end) { return engine_() % end; }

 private:
  void add(Words& words, char kind) {
    static const Words kIndexes = {"0", "1", "-1", "2", "-2", "3", "-7", "9", "x"};
    static const Words kNumbers = {"0",  "1",   "-1", "41", "9223372036854775807", "-9223372036854775808",
                                   "07", "1.5", ""};
    static const Words kScores = {"0",    "1",    "2", "-3", "2.5", "1700000000000", "-4398046511104",
                                  "+inf", "-inf", "x", "nan"};
    static const Words kBounds = {"0", "1", "(1", "2.5", "(2.5", "-inf", "+inf", "(1700000000000", "-4", "(x"};
    static const Words kValues = {"", "a", "12", "-5", "abcdefgh", std::string("\0\xff", 2), "3.0"};
    switch (kind) {
      case 'k': words.push_back("key" + std::to_string(below(5))); break;
      case 'f': words.push_back("f" + std::to_string(below(5))); break;
      case 'v': words.push_back(one_of(kValues)); break;
      case 'i': words.push_back(one_of(kIndexes)); break;
      case 'n': words.push_back(one_of(kNumbers)); break;
      case 's': words.push_back(one_of(kScores)); break;
      case 'b': words.push_back(one_of(kBounds)); break;
      case 't': words.push_back(one_of({"0", "-5", "100000", "300000", "x", "9223372036854775807"})); break;
      case 'N': words.emplace_back("nx"); break;
      case 'P': words.insert(words.end(), {"px", one_of({"200000", "0", "-1", "x", "500000"})}); break;
      case 'Z': words.insert(words.end(), {"0", "count", "100"}); break;
      case 'X': words.emplace_back("xx"); break;
      case 'W': words.emplace_back("withscores"); break;
      case 'B': words.emplace_back("byscore"); break;
      default: words.emplace_back("limit");
    }
  }

  std::mt19937 engine_;
};

std::string shown(const rlock::redis::Reply& reply) {
  using Kind = rlock::redis::Reply::Kind;
  if (!reply.is(Kind::array)) {
    std::string text = reply.is(Kind::error) ? reply.text.substr(0, reply.text.find(' ')) : reply.as_text();
    if (text == "@user_script:") text = "ERR";  // as in kScript
    return std::to_string(static_cast<int>(reply.kind)) + " " + text;
  }
  std::string text = "[";
  for (const auto& element : reply.elements) text += shown(element) + "\n";
  return text + "]";
}

// In the order of redis::Reply::Kind.
rlock::redis::Reply converted(const redisReply& reply) {
  using Kind = rlock::redis::Reply::Kind;
  switch (reply.type) {
    case REDIS_REPLY_INTEGER: return {.kind = Kind::integer, .integer = reply.integer, .text = {}, .elements = {}};
    case REDIS_REPLY_STRING: return {Kind::string, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_STATUS: return {Kind::status, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_ERROR: return {Kind::error, 0, {reply.str, reply.len}, {}};
    case REDIS_REPLY_ARRAY: {
      rlock::redis::Reply list{Kind::array, 0, {}, {}};
      for (std::size_t i = 0; i < reply.elements; ++i) list.elements.push_back(converted(*reply.element[i]));
      return list;
    }
    default: return {};
  }
}

class RealServer {
 public:
  explicit RealServer(const std::string& program) {
    std::string folder = "/tmp/compare.XXXXXX";
    if (!mkdtemp(folder.data())) std::exit(2);
    folder_ = folder;
    const std::string socket = folder + "/socket";
    pid_ = fork();
    if (pid_ == 0) {
      execlp(program.c_str(), program.c_str(), "--port", "0", "--unixsocket", socket.c_str(), "--save", "", "--dir",
             folder.c_str(), "--logfile", "log", nullptr);
      _exit(127);
    }
    for (int i = 0; i < 300 && !connection_; ++i) {
      usleep(100'000);
      connection_ = redisConnectUnix(socket.c_str());
      if (connection_ && connection_->err) {
        redisFree(connection_);
        connection_ = nullptr;
      }
    }
  }

  ~RealServer() {
    if (connection_) redisFree(connection_);
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove_all(folder_);
  }

  bool runs() const { return connection_ != nullptr; }

  rlock::redis::Reply send(const Words& words) {
    std::vector<const char*> texts;
    std::vector<std::size_t> sizes;
    for (const std::string& word : words) texts.push_back(word.data()), sizes.push_back(word.size());
    auto* reply = static_cast<redisReply*>(
        redisCommandArgv(connection_, static_cast<int>(words.size()), texts.data(), sizes.data()));
    if (!reply) return {rlock::redis::Reply::Kind::error, 0, "no reply", {}};
    rlock::redis::Reply result = converted(*reply);
    freeReplyObject(reply);
    return result;
  }

 private:
  std::string folder_;
  pid_t pid_ = 0;
  redisContext* connection_ = nullptr;
};

class Nobody : public Listeners {
  int number_of(const std::string&) override { return 0; }
  void tell(const std::string&, const std::string&) override {}
};

class Comparison {
 public:
  Comparison(RealServer& server, unsigned seed) : server_(server), random_(seed) {
    for (const char* text : {kScript, kReply, kPack}) scripts_.push_back({text, interpreter_.load("compare", text)});
  }

  // Returns how many commands were compared.
  int round() {
    if (rounds_++ % 50 == 0) {
      database_.entries.clear();
      server_.send({"FLUSHALL"});
    }
    constexpr int kCommands = 100;
    Words words;
    for (int i = 0; i < kCommands; ++i) {
      const Words command = random_.command();
      words.push_back(std::to_string(command.size()));
      words.insert(words.end(), command.begin(), command.end());
    }
    compare(0, words);
    Words one = random_.command();
    while (one[0] == "pttl" || one[0] == "hgetall" || one[0] == "hscan") one = random_.command();
    compare(1, one);
    static const Words kValues = {
        "0", "1", "-1", "127", "128", "-33", "70000", "1700000012500", "0.5", "-1700000000000"};
    compare(2, {random_.one_of(kValues), std::string(random_.below(300), 'x'), "y", random_.one_of(kValues)});
    return kCommands + 2;
  }

  int differences() const { return differences_; }

 private:
  void compare(std::size_t script, const Words& arguments) {
    Words words{"EVAL", scripts_[script].first, "0"};
    words.insert(words.end(), arguments.begin(), arguments.end());
    const auto theirs = server_.send(words);
    Session session(database_, nobody_, false);
    const auto ours = interpreter_.run(scripts_[script].second, {}, arguments, session);
    if (shown(theirs) == shown(ours)) return;
    std::size_t at = 0;
    for (std::size_t i = 0; script == 0 && i < theirs.elements.size(); ++i) {
      const std::size_t size = std::stoul(arguments[at]);
      if (shown(theirs.at(i)) != shown(ours.at(i)))
        show(Words(arguments.begin() + static_cast<std::ptrdiff_t>(at) + 1,
                   arguments.begin() + static_cast<std::ptrdiff_t>(at + 1 + size)),
             theirs.at(i), ours.at(i));
      at += size + 1;
    }
    if (script != 0) show(arguments, theirs, ours);
    if (script == 0 && theirs.elements.empty()) show({"the script"}, theirs, ours);
  }

  void show(const Words& words, const rlock::redis::Reply& theirs, const rlock::redis::Reply& ours) {
    if (++differences_ > 20) return;
    for (const std::string& word : words) std::printf("%s ", word.c_str());
    std::printf("\n  the server: %s\n  here:       %s\n", shown(theirs).c_str(), shown(ours).c_str());
  }

  RealServer& server_;
  Random random_;
  Interpreter interpreter_;
  Nobody nobody_;
  Database database_{.now = 1'700'000'000'000};
  std::vector<std::pair<std::string, int>> scripts_;
  int rounds_ = 0, differences_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  int commands = 100'000;
  unsigned seed = std::random_device()();
  std::string program = "redis-server";
  CLI::App app("Compares the small Redis of the search with a real one.", "model_compare");
  app.add_option("--commands", commands, "How many")->capture_default_str();
  app.add_option("--seed", seed, "That of an earlier run, to repeat it");
  app.add_option("--server", program, "The server's program")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  RealServer server(program);
  if (!server.runs()) {
    std::fprintf(stderr, "model_compare: %s does not start\n", program.c_str());
    return 2;
  }
  Comparison comparison(server, seed);
  int done = 0;
  while (done < commands) done += comparison.round();
  std::printf("%d commands, %d differences (%s, --seed %u)\n", done, comparison.differences(), program.c_str(), seed);
  return comparison.differences() > 0;
}
