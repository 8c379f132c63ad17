// SPDX-License-Identifier: MIT
#include "cli/options.h"

#include <fcntl.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "cli/settings.h"
#include "redis/endpoint.h"
#include "run/shared.h"

namespace rlock::cli {
namespace {

constexpr std::size_t kMostNames = run::kMostHolds;

std::unexpected<Error> usage(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// A mistake on the command line is one of usage; in a variable or a file it is one of configuration.
Error blame(Error error, const Setting& setting) {
  if (!setting.on_command_line) error.code = Error::Code::config;
  return std::move(error).in(setting.origin);
}

// Reads the options of one subcommand.
class Reader {
 public:
  Reader(const Parsed& parsed, const Settings& settings) : parsed_(parsed), settings_(settings) {}

  // What was said about an option. Variables and files speak only for those that the table calls settings:
  // the lease of `acquire`, for one, must be chosen each time.
  std::optional<Setting> find(std::string_view name) const {
    auto setting = settings_.find(name);
    for (const OptionSpec& option : parsed_.subcommand->options) {
      if (option.name() == name && !option.setting && setting && !setting->on_command_line) return {};
    }
    return setting;
  }

  std::optional<std::string> text(std::string_view name) const {
    const auto setting = find(name);
    return setting ? std::optional(setting->text) : std::nullopt;
  }

  Result<bool> flag(std::string_view name) const {
    const auto setting = find(name);
    if (!setting || setting->text == "false" || setting->text == "0") return false;
    if (setting->text == "true" || setting->text == "1") return true;
    return std::unexpected(
        blame({Error::Code::usage, in_quotes(setting->text) + " is neither true nor false"}, *setting));
  }

  Result<std::optional<milliseconds>> duration(std::string_view name) const {
    const auto setting = find(name);
    if (!setting) return std::nullopt;
    auto span = parse_duration(setting->text);
    if (!span) return std::unexpected(blame(std::move(span).error(), *setting));
    return *span;
  }

  Result<milliseconds> lease(const std::optional<milliseconds>& otherwise) const {
    const auto span = RLOCK_TRY(duration("lease"));
    if (!span && !otherwise) {
      return usage(
          "acquire wants --lease DUR: nobody renews this lock, so say how long it is to last, or --for-pid PID: "
          "a keeper renews it for as long as PID lives (as rlock run does for a command)");
    }
    const milliseconds lease = span.value_or(otherwise.value_or(0ms));
    if (lease >= lock::kShortestLease) return lease;
    return std::unexpected(blame(
        {Error::Code::usage, "a lease of " + format_duration(lease) + " is too short to be kept safely; at least " +
                                 format_duration(lock::kShortestLease)},
        *find("lease")));
  }

  // That of a lock which is renewed, or under which a command is stopped in time.
  Result<milliseconds> kept_lease(const lock::Mode& mode, bool renew = true) const {
    const milliseconds lease = RLOCK_TRY(this->lease(lock::kDefaultLease)), most = lock::kLongestReaderLease;
    if (mode.kind != lock::Mode::Kind::read || lease <= most) return lease;
    const std::string why = "a Java reader beside this one sets the time of the lock to " + format_duration(most);
    if (!renew) {
      return usage("--no-renew with --shared wants a lease of " + format_duration(most) + " at most: " + why);
    }
    log::warning("--lease " + format_duration(lease) + " counts as " + format_duration(most) +
                 " with --shared: " + why);
    return most;
  }

  Result<lock::LockName> name() const {
    const auto all = RLOCK_TRY(names());
    if (all.empty()) return usage(missing_name());
    if (all.size() > 1) return usage("unexpected argument " + in_quotes(all[1].text()) + ": one lock at a time");
    return all.front();
  }

  // Those of locks that are taken together: sorted, so that nobody waits for another in a circle.
  Result<std::vector<lock::LockName>> sorted_names() const {
    auto all = RLOCK_TRY(names());
    if (all.empty()) return usage(missing_name());
    if (all.size() > kMostNames) {
      return usage(std::to_string(all.size()) + " names; at most " + std::to_string(kMostNames) + " at a time");
    }
    std::ranges::sort(all);
    const auto twice = std::ranges::adjacent_find(all);
    if (twice != all.end()) return usage(in_quotes(twice->text()) + " is named twice");
    return all;
  }

  Result<lock::Mode> mode() const {
    const bool shared = RLOCK_TRY(flag("shared")), exclusive = RLOCK_TRY(flag("exclusive"));
    const auto slots = RLOCK_TRY(number("slots", 1, 1'000'000, "a number of slots, from 1 to 1000000"));
    if (shared && exclusive) return usage("--shared and --exclusive contradict each other; give one");
    if (slots && (shared || exclusive)) {
      return usage(std::string("--slots and ") + (shared ? "--shared" : "--exclusive") +
                   " contradict each other; give one");
    }
    const bool resize = RLOCK_TRY(flag("resize"));
    if (resize && !slots) return usage("--resize wants --slots N: the number that it is to be");
    using Kind = lock::Mode::Kind;
    const Kind kind = slots ? Kind::slots : shared ? Kind::read : exclusive ? Kind::write : Kind::plain;
    const bool java = RLOCK_TRY(flag("java-semaphore"));
    if (java && !slots) return usage("--java-semaphore wants --slots N: how many the Java program has made");
    return lock::Mode{kind, slots.value_or(0), resize, java};
  }

  // All positional arguments, before and after a --.
  Result<std::vector<lock::LockName>> names() const {
    std::vector<lock::LockName> all;
    for (const std::string& text : words()) all.push_back(RLOCK_TRY(lock::LockName::parse(text)));
    return all;
  }

  std::vector<std::string> words() const {
    std::vector<std::string> all = parsed_.names;
    if (parsed_.command && !parsed_.subcommand->takes_command) {
      all.insert(all.end(), parsed_.command->begin(), parsed_.command->end());
    }
    return all;
  }

  std::string missing_name() const {
    return "the NAME of a lock is missing: rlock " + std::string(parsed_.subcommand->name) + " [options] " +
           std::string(parsed_.subcommand->synopsis);
  }

  Result<lock::OwnerId> owner() const {
    if (const auto given = find("owner")) {
      auto owner = lock::OwnerId::parse(given->text);
      if (!owner) return std::unexpected(blame(std::move(owner).error(), *given));
      return owner;
    }
    const char* variable = std::getenv("RLOCK_OWNER");
    if (variable && *variable) return lock::OwnerId::parse(variable);
    return usage("whose lock? give --owner ID, as acquire printed it, or set RLOCK_OWNER");
  }

  Result<WaitOptions> wait() const {
    WaitOptions wait;
    const bool nonblock = RLOCK_TRY(flag("nonblock"));
    const auto setting = find("wait");
    if (nonblock && setting && setting->on_command_line)
      return usage("--nonblock and --wait contradict each other; give one");
    wait.limit = nonblock ? std::optional(milliseconds(0)) : RLOCK_TRY(duration("wait"));
    wait.conflict_status =
        RLOCK_TRY(number("conflict-exit-code", 0, 255, "an exit status from 0 to 255")).value_or(wait.conflict_status);
    wait.queueing.most = RLOCK_TRY(number("max-queue", 0, 1'000'000, "a number of waiters"));
    wait.queueing.priority = RLOCK_TRY(number("priority", -1000, 1000, "a number from -1000 to 1000")).value_or(0);
    wait.queueing.replace = RLOCK_TRY(flag("replace-waiting"));
    wait.supersede = RLOCK_TRY(flag("supersede"));
    if (wait.supersede && wait.limit == 0ms) {
      return usage("--supersede waits until the holder has released the lock, which --nonblock and --wait 0 forbid");
    }
    return wait;
  }

  // One of the numbers from `least` to `most`.
  Result<std::optional<int>> number(std::string_view name, int least, int most, const std::string& what) const {
    const auto given = find(name);
    if (!given) return std::nullopt;
    int value = 0;
    const char* end = given->text.data() + given->text.size();
    const auto [rest, error] = std::from_chars(given->text.data(), end, value);
    if (error == std::errc{} && rest == end && value >= least && value <= most) return value;
    return std::unexpected(blame({Error::Code::usage, in_quotes(given->text) + " is not " + what}, *given));
  }

  Result<run::Leftovers> leftovers() const {
    const auto given = find("leftovers");
    if (!given || given->text == "kill") return run::Leftovers::kill;
    if (given->text == "wait") return run::Leftovers::wait;
    if (given->text == "ignore") return run::Leftovers::ignore;
    return std::unexpected(
        blame({Error::Code::usage, in_quotes(given->text) + " is none of kill, wait and ignore"}, *given));
  }

  Result<run::Hooks> hooks() const {
    for (const char* option : {"on-acquire", "on-release", "on-lost"}) {
      const auto given = find(option);
      if (given && given->text.empty()) {
        return std::unexpected(blame({Error::Code::usage, "the text is empty"}, *given));
      }
    }
    run::Hooks hooks{.on_acquire = text("on-acquire").value_or(""),
                     .on_release = text("on-release").value_or(""),
                     .on_lost = text("on-lost").value_or(""),
                     .limit = RLOCK_TRY(duration("hook-timeout")).value_or(30s)};
    if (hooks.limit == 0ms) {
      return std::unexpected(blame({Error::Code::usage, "a hook needs some time"}, *find("hook-timeout")));
    }
    return hooks;
  }

  // -1: none.
  Result<int> status_fd() const {
    const auto fd = RLOCK_TRY(number("status-fd", 0, 1 << 20, "the number of a descriptor"));
    if (!fd) return -1;
    const int mode = fcntl(*fd, F_GETFL);
    if (mode < 0) return usage("--status-fd " + std::to_string(*fd) + ": " + errno_text(errno));
    if ((mode & O_ACCMODE) == O_RDONLY) return usage("--status-fd " + std::to_string(*fd) + ": not open for writing");
    return *fd;
  }

  Result<std::string> reason() const {
    const auto given = find("reason");
    if (given && given->text.size() > 512) {
      return std::unexpected(blame({Error::Code::usage, "a reason has at most 512 bytes"}, *given));
    }
    return given ? given->text : std::string();
  }

  // Where each option that counts here comes from. Texts, addresses and owner ids may be secrets.
  void report() const {
    for (const auto options : {common_options(), parsed_.subcommand->options}) {
      for (const OptionSpec& spec : options) {
        const auto setting = find(spec.name());
        if (!setting) continue;
        const bool secret = spec.value == "TEXT" || spec.value == "URL" || spec.value == "ID";
        const std::string value = secret ? "given" : escaped(setting->text, 200);
        log::debug("option " + std::string(spec.name()) + ": " + value + ", from " + setting->origin);
      }
    }
  }

  Result<CommonOptions> common() const {
    CommonOptions common;
    const auto url = find("url");
    common.url = Secret(url ? std::string_view(url->text) : "redis://127.0.0.1:6379");
    common.url_origin = url ? url->origin : "";
    common.url_on_command_line = url && url->on_command_line;
    common.password_file = text("password-file");
    if (const auto& address = settings_.address_with_password()) common.configured_url.emplace(*address);
    common.file_of_configured_url = settings_.file_of_address();
    common.timeout = RLOCK_TRY(duration("timeout")).value_or(common.timeout);
    if (common.timeout < 10ms) {
      return std::unexpected(blame({Error::Code::usage, "at least 10ms"}, *find("timeout")));
    }
    common.quiet = RLOCK_TRY(flag("quiet"));
    common.verbose = RLOCK_TRY(flag("verbose"));
    if (const auto format = find("log-format")) {
      common.json_log = format->text == "json";
      if (!common.json_log && format->text != "text") {
        return std::unexpected(
            blame({Error::Code::usage, in_quotes(format->text) + " is neither text nor json"}, *format));
      }
    }
    return common;
  }

 private:
  const Parsed& parsed_;
  const Settings& settings_;
};

// The command line with the -- that it lacks in front of its second word.
std::string corrected(const std::vector<std::string>& arguments, const Parsed& parsed) {
  std::string line = "rlock";
  // From the end: the command's first word may stand among the options as well, as an option's value.
  std::size_t rest = parsed.names.size() - 1, command = arguments.size();
  while (command > 0 && rest > 0) {
    if (arguments[--command] == parsed.names[rest]) --rest;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (i == command) line += " --";
    std::string word = arguments[i];
    const std::string_view password = redis::password_in(word);
    if (!password.empty())
      word.replace(static_cast<std::size_t>(password.data() - word.data()), password.size(), "***");
    line += " " + shell_word(word);
  }
  // To be pasted: a backslash stays what it is, unless there is something that a terminal would act on.
  return has_control(line) ? escaped(line) : line;
}

Result<std::vector<std::string>> command_of(const Reader& reader, const Parsed& parsed,
                                            const std::vector<std::string>& arguments) {
  const auto text = reader.text("command");
  if (parsed.names.empty()) return usage(reader.missing_name());
  if (parsed.names.size() > 1 && !parsed.command && !text) {
    return usage("a -- is missing in front of the command; write\n  " + corrected(arguments, parsed));
  }
  if (text) {
    if (parsed.command) return usage("--command and a command after -- contradict each other; give one");
    if (text->empty()) return usage("--command: the text is empty");
    const char* shell = std::getenv("SHELL");
    return std::vector<std::string>{shell && *shell ? shell : "/bin/sh", "-c", *text};
  }
  if (!parsed.command || parsed.command->empty()) {
    return usage("a command is missing: rlock run [options] " + escaped(shell_word(parsed.names[0])) +
                 " -- COMMAND [ARG...]");
  }
  if (parsed.command->front().empty()) return usage("the command is an empty word");
  return *parsed.command;
}

// What contradicts itself.
Result<void> check_holds(const RunOptions& options) {
  if (options.max_hold && *options.max_hold == 0ms) return usage("--max-hold 0s leaves no time for the command");
  if (options.max_hold && options.min_hold > *options.max_hold) {
    return usage("--min-hold " + format_duration(options.min_hold) + " is longer than --max-hold " +
                 format_duration(*options.max_hold));
  }
  if (!options.renew && options.max_hold && *options.max_hold > options.timing.lease) {
    return usage("--max-hold " + format_duration(*options.max_hold) + " is longer than the lease of " +
                 format_duration(options.timing.lease) + ", at the end of which --no-renew stops the command");
  }
  if (options.isolate && options.leftovers == run::Leftovers::ignore) {
    return usage("--isolate and --leftovers ignore contradict each other: nothing outlives its namespace");
  }
  return {};
}

Result<Invocation> read_run(const Reader& reader, const Parsed& parsed, const std::vector<std::string>& arguments) {
  auto command = RLOCK_TRY(command_of(reader, parsed, arguments));
  const bool renew = !RLOCK_TRY(reader.flag("no-renew"));
  const lock::Mode mode = RLOCK_TRY(reader.mode());
  const milliseconds lease = RLOCK_TRY(reader.kept_lease(mode, renew));
  const milliseconds grace = RLOCK_TRY(reader.duration("kill-after")).value_or(lock::LeaseTiming::default_grace(lease));
  const std::string shown = command.front();
  RunOptions options{.common = RLOCK_TRY(reader.common()),
                     .names = RLOCK_TRY(reader.sorted_names()),
                     .mode = mode,
                     .wait = RLOCK_TRY(reader.wait()),
                     .timing = RLOCK_TRY(lock::LeaseTiming::make(lease, grace, renew)),
                     .grace = grace,
                     .renew = renew,
                     .max_hold = RLOCK_TRY(reader.duration("max-hold")),
                     .min_hold = RLOCK_TRY(reader.duration("min-hold")).value_or(0ms),
                     .leftovers = RLOCK_TRY(reader.leftovers()),
                     .isolate = RLOCK_TRY(reader.flag("isolate")),
                     .hooks = RLOCK_TRY(reader.hooks()),
                     .status_fd = RLOCK_TRY(reader.status_fd()),
                     .reason = RLOCK_TRY(reader.reason()),
                     .command = std::move(command),
                     .shown_command = shown};
  RLOCK_TRY(check_holds(options));
  if (lease < lock::kFullMarginLease) {
    log::warning(
        "a lease of " + format_duration(lease) +
        " is short: the margins for clock steps and slow machines are scaled down; 5s and more have them in full");
  }
  return options;
}

Result<Invocation> read_acquire(const Reader& reader) {
  AcquireOptions options{.common = RLOCK_TRY(reader.common()),
                         .names = RLOCK_TRY(reader.sorted_names()),
                         .mode = RLOCK_TRY(reader.mode()),
                         .wait = RLOCK_TRY(reader.wait()),
                         .for_pid = RLOCK_TRY(reader.number("for-pid", 1, INT_MAX, "the number of a process")),
                         .reason = RLOCK_TRY(reader.reason())};
  options.lease = RLOCK_TRY(options.for_pid ? reader.kept_lease(options.mode) : reader.lease({}));
  const bool assignments = RLOCK_TRY(reader.flag("export")), json = RLOCK_TRY(reader.flag("json"));
  if (assignments && json) return usage("--export and --json contradict each other; give one");
  options.output = assignments ? AcquireOptions::Output::assignments
                   : json      ? AcquireOptions::Output::json
                               : AcquireOptions::Output::owner;
  return options;
}

Result<Invocation> read_renew(const Reader& reader) {
  RenewOptions options{.common = RLOCK_TRY(reader.common()),
                       .names = RLOCK_TRY(reader.sorted_names()),
                       .owner = RLOCK_TRY(reader.owner())};
  if (reader.text("lease")) options.lease = RLOCK_TRY(reader.lease({}));
  return options;
}

Result<Invocation> read_release(const Reader& reader) {
  return ReleaseOptions{.common = RLOCK_TRY(reader.common()),
                        .names = RLOCK_TRY(reader.sorted_names()),
                        .owner = RLOCK_TRY(reader.owner())};
}

Result<Invocation> read_status(const Reader& reader) {
  StatusOptions options{.common = RLOCK_TRY(reader.common()), .names = RLOCK_TRY(reader.names())};
  const bool json = RLOCK_TRY(reader.flag("json")), names = RLOCK_TRY(reader.flag("names")),
             is_held = RLOCK_TRY(reader.flag("is-held"));
  if (json + names + is_held > 1) return usage("--json, --names and --is-held contradict each other; give one");
  if (is_held && options.names.empty()) return usage("--is-held wants the NAME of a lock");
  options.watch = RLOCK_TRY(reader.flag("watch"));
  if (is_held && options.watch) return usage("--watch and --is-held contradict each other; give one");
  using Output = StatusOptions::Output;
  options.output = json ? Output::json : names ? Output::names : is_held ? Output::is_held : Output::people;
  return options;
}

Result<Invocation> read_force_unlock(const Reader& reader) {
  ForceUnlockOptions options{.common = RLOCK_TRY(reader.common()), .name = RLOCK_TRY(reader.name())};
  if (const auto owner = reader.text("owner")) options.owner = RLOCK_TRY(lock::OwnerId::parse(*owner));
  options.yes = RLOCK_TRY(reader.flag("yes"));
  options.now = RLOCK_TRY(reader.flag("now"));
  const auto wait = RLOCK_TRY(reader.duration("wait"));
  if (options.now && wait) return usage("--now and --wait contradict each other; give one");
  options.wait = wait.value_or(options.wait);
  return options;
}

Result<Invocation> read_local(const Reader& reader) {
  LocalOptions options{.common = RLOCK_TRY(reader.common())};
  options.yes = RLOCK_TRY(reader.flag("yes"));
  const auto words = reader.words();
  const std::string action = words.size() == 1 ? words[0] : "";
  if (action == "stop") {
    options.action = LocalOptions::Action::stop;
  } else if (action == "serve") {
    options.action = LocalOptions::Action::serve;
  } else if (action != "status") {
    return usage("local wants one of status, stop and serve");
  }
  return options;
}

}  // namespace

Result<Invocation> read_invocation(const std::vector<std::string>& arguments) {
  const Parsed parsed = RLOCK_TRY(parse(arguments));
  if (!parsed.subcommand) return PrintText{parsed.text};
  const Settings settings = RLOCK_TRY(Settings::load(parsed));
  const Reader reader(parsed, settings);

  const CommonOptions common = RLOCK_TRY(reader.common());
  const auto least = common.quiet ? log::Level::error : common.verbose ? log::Level::debug : log::Level::info;
  log::start(least, common.json_log ? json_log_line : log::text_format);
  warn_of_unknown_variables();
  reader.report();

  const std::string_view name = parsed.subcommand->name;
  if (name == "run") return read_run(reader, parsed, arguments);
  if (name == "acquire") return read_acquire(reader);
  if (name == "renew") return read_renew(reader);
  if (name == "release") return read_release(reader);
  if (name == "status") return read_status(reader);
  if (name == "force-unlock") return read_force_unlock(reader);
  return read_local(reader);
}

}  // namespace rlock::cli
