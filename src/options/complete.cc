// SPDX-License-Identifier: MIT
// What the words of a line mean, and which options do not fit together.
#include <fcntl.h>

#include <cstdlib>

#include "base/log.h"
#include "lock/rights.h"
#include "options/option_values.h"
#include "options/parse.h"

namespace rlock::cli {
namespace {

std::unexpected<Error> usage(std::string message) { return fail(Error::Code::usage, std::move(message)); }

// All positional arguments, before and after --. Error: more than `most`, with the explanation `why`.
Result<std::vector<std::string>> words_of(const Parsed& parsed, std::size_t most = SIZE_MAX, const char* why = "") {
  std::vector<std::string> all = parsed.names;
  if (parsed.command && !parsed.subcommand->command) {
    all.insert(all.end(), parsed.command->begin(), parsed.command->end());
  }
  if (all.size() > most) return usage("unexpected argument " + in_quotes(all[most]) + ": " + why);
  return all;
}

Result<std::vector<lock::LockName>> names_in(const Parsed& parsed, std::size_t most = SIZE_MAX, const char* why = "") {
  std::vector<lock::LockName> all;
  for (const std::string& text : RLOCK_TRY(words_of(parsed, most, why))) {
    all.push_back(RLOCK_TRY(lock::LockName::parse(text)));
  }
  return all;
}

std::unexpected<Error> name_is_missing(const Parsed& parsed) {
  return usage("the NAME of a lock is missing: rlock " + std::string(parsed.subcommand->name) + " [options] " +
               std::string(parsed.subcommand->synopsis));
}

// Sorted, so that jobs that take several locks never wait for each other.
Result<std::vector<lock::LockName>> sorted_names(const Parsed& parsed) {
  auto all = RLOCK_TRY(names_in(parsed));
  if (all.empty()) return name_is_missing(parsed);
  if (all.size() > run::kMostHolds) {
    return usage(std::to_string(all.size()) + " names; the limit is " + std::to_string(run::kMostHolds));
  }
  std::ranges::sort(all);
  const auto twice = std::ranges::adjacent_find(all);
  if (twice != all.end()) return usage(in_quotes(twice->text()) + " is given twice");
  return all;
}

// With `x sh -c TEXT`, -c is an option of sh.
bool lacks_dashes(const Parsed& parsed) {
  if (parsed.names.size() < 2 || parsed.command) return false;
  if (!parsed.text_of(*parsed.subcommand->command)) return true;
  constexpr std::string_view kShells[] = {"sh", "bash", "dash", "ash", "ksh", "zsh", "/bin/sh", "/bin/bash"};
  return parsed.names_before_command > 1 &&
         std::ranges::find(kShells, parsed.names[parsed.names_before_command - 1]) != std::end(kShells);
}

// Whether a word looks like a whole command for a shell, and is not the path of a program.
bool is_shell_text(const std::string& word) {
  return word.find_first_of(" \t\n;|&<>()$`") != word.npos && access(word.c_str(), F_OK) != 0;
}

Result<std::vector<std::string>> shell_command(const std::string& text, const Parsed& parsed) {
  // Users of `sh -c` would expect these words to be the command's arguments, not names to lock.
  if (parsed.names.size() > parsed.names_before_command) {
    return usage(in_quotes(parsed.names[parsed.names_before_command]) +
                 " follows -c TEXT: put names before -c, and arguments of the command into TEXT");
  }
  if (parsed.command) return contradiction("--command", "a command after --");
  if (text.empty()) return usage("--command: the text is empty");
  const char* shell = std::getenv("SHELL");
  return std::vector<std::string>{shell && *shell ? shell : "/bin/sh", "-c", text};
}

Result<std::vector<std::string>> command_in(const Parsed& parsed) {
  if (parsed.names.empty()) return name_is_missing(parsed);
  const std::string line = "rlock run [options] " + escaped(shell_word(parsed.names[0]));
  if (lacks_dashes(parsed)) {
    const bool shell = parsed.names.size() == 2 && is_shell_text(parsed.names[1]);
    return usage(shell ? "-c is missing before the command; write " + line + " -c TEXT"
                       : "-- is missing before the command; write " + line + " -- COMMAND [ARG...]");
  }
  if (const std::string* text = parsed.text_of(*parsed.subcommand->command)) return shell_command(*text, parsed);
  if (!parsed.command || parsed.command->empty()) {
    return usage("a command is missing: " + line + " -- COMMAND [ARG...]");
  }
  if (parsed.command->front().empty()) return usage("the command is empty");
  return *parsed.command;
}

Result<void> read_words_of(PrintText&, const Parsed& parsed) {
  RLOCK_TRY(words_of(parsed, 0, "config takes only options"));
  return {};
}

Result<void> read_words_of(RunOptions& options, const Parsed& parsed) {
  options.command = RLOCK_TRY(command_in(parsed));
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

// A command behind -- would be names to lock, and would not run.
Result<void> read_words_of(AcquireOptions& options, const Parsed& parsed) {
  const auto& command = parsed.command;
  if (!parsed.names.empty() && command && !command->empty() && !command->front().starts_with('-')) {
    return usage("acquire takes no command; use rlock run");
  }
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

Result<void> read_words_of(NamingOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(sorted_names(parsed));
  return {};
}

// With --forget, NAME KEY.
Result<void> read_words_of(ReleaseOptions& options, const Parsed& parsed) {
  const auto forget = parsed.options.find("forget");
  if (forget == parsed.options.end() || !flag(forget->second.text).value_or(true))
    return read_words_of(static_cast<NamingOptions&>(options), parsed);
  const auto words = RLOCK_TRY(words_of(parsed, 2, "release --forget takes one NAME and one KEY"));
  if (words.size() != 2) return usage("the NAME of a lock, or the KEY, is missing: rlock release --forget NAME KEY");
  options.names = {RLOCK_TRY(lock::LockName::parse(words[0]))};
  options.forget = RLOCK_TRY(forgotten_key(words[1]));
  return {};
}

template <class Options>
  requires std::same_as<Options, StatusOptions> || std::same_as<Options, HistoryOptions>
Result<void> read_words_of(Options& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed));
  return {};
}

Result<void> read_words_of(ForceUnlockOptions& options, const Parsed& parsed) {
  options.names = RLOCK_TRY(names_in(parsed, 1, "force-unlock takes one NAME"));
  return options.names.empty() ? name_is_missing(parsed) : Result<void>();
}

Result<void> read_words_of(DoctorOptions& options, const Parsed& parsed) {
  const auto words = RLOCK_TRY(words_of(parsed, 1, "doctor takes one PREFIX"));
  if (!words.empty()) options.prefix = RLOCK_TRY(lock::parse_prefix(words[0]));
  return {};
}

Result<void> read_words_of(LocalOptions& options, const Parsed& parsed) {
  const auto words = RLOCK_TRY(words_of(parsed));
  const auto action = choice_of(words.size() == 1 ? words[0] : "", "status|stop");
  if (!action) return usage("local: say status or stop");
  options.stop = action->place == 1;
  return {};
}

// Options that do not fit together, and what to say about it.
struct Mistake {
  bool made;
  std::string text;
};

// Errors: the first mistake.
Result<void> expect_none(const std::vector<Mistake>& mistakes) {
  const auto first = std::ranges::find(mistakes, true, &Mistake::made);
  return first == mistakes.end() ? Result<void>() : usage(first->text);
}

// Named resources are slots.
Result<void> complete_slots(LockingOptions& options) {
  lock::Mode& mode = options.mode;
  const int named = static_cast<int>(lock::names_in(mode.resources));
  if (named > 0 && mode.slots != 0) return contradiction("--from", "--slots");
  if (named > 0) mode.slots = named;
  const bool several = named > 0 || mode.taken > 1;
  return expect_none(
      {{several && options.names.size() > 1, "--from and --take choose slots of one lock, so give one NAME"},
       {mode.slots == 0 && mode.taken > 1, "--take needs --slots N or --from LIST, of which it takes some"},
       {mode.slots != 0 && mode.taken > mode.slots,
        "--take " + std::to_string(mode.taken) + ": there are only " + std::to_string(mode.slots) + " slots"}});
}

// --protocol set.
Result<void> complete_set(LockingOptions& options) {
  lock::Mode& mode = options.mode;
  const bool alone = mode.kind == lock::Mode::Kind::plain && mode.slots == 0;
  mode.kind = lock::Mode::Kind::set;
  if (alone) return {};
  return usage(
      "--protocol set: its locks have one holder at a time; do not give --shared, --exclusive, --slots or --from with "
      "it, or give --protocol redisson");
}

// Its branches are the pairs of options that exclude each other.
Result<void> complete_mode(LockingOptions& options) {
  using Kind = lock::Mode::Kind;
  lock::Mode& mode = options.mode;
  RLOCK_TRY(complete_slots(options));
  if (options.shared && options.exclusive) return contradiction("--shared", "--exclusive");
  if (options.shared) mode.kind = Kind::read;
  if (options.exclusive) mode.kind = Kind::write;
  if (options.by_set) RLOCK_TRY(complete_set(options));
  if (mode.slots == 0) {
    return expect_none({{mode.resize, "--resize needs --slots N, the new number of slots"},
                        {mode.java, "--java-semaphore needs --slots N, the number of permits of the Java program"}});
  }
  if (mode.kind != Kind::plain)
    return contradiction(mode.resources.empty() ? "--slots" : "--from", options.shared ? "--shared" : "--exclusive");
  mode.kind = Kind::slots;
  return {};
}

Result<void> complete_wait(LockingOptions& options, const Parsed& parsed) {
  if (options.nonblock && parsed.has("wait")) return contradiction("--nonblock", "--wait");
  if (options.nonblock) options.wait.limit = 0ms;
  if (options.wait.limit == 0ms && !parsed.has("supersede")) options.supersede = false;  // a host's setting
  if (options.supersede && options.wait.limit == 0ms) {
    return usage("--supersede waits for the holder, so it cannot be used together with --nonblock or --wait 0");
  }
  return {};
}

// The lease of a lock that is renewed, or whose command is stopped in time.
Result<milliseconds> kept_lease(milliseconds lease, const lock::Mode& mode, bool renew) {
  constexpr milliseconds most = lock::kLongestReaderLease;
  if (mode.kind != lock::Mode::Kind::read || lease <= most) return lease;
  const std::string why = "another reader in Java sets the lease to " + format_duration(most);
  if (!renew) return usage("--no-renew with --shared allows a lease of at most " + format_duration(most) + ": " + why);
  log::warning("with --shared, rlock uses a lease of " + format_duration(most) + " instead of " +
               format_duration(lease) + ": " + why);
  return most;
}

Result<void> check_holds(const RunOptions& options) {
  if (!options.max_hold) return {};
  const milliseconds most = *options.max_hold;
  const std::string option = "--max-hold " + format_duration(most);
  return expect_none(
      {{most == 0ms, option + " leaves no time for the command"},
       {options.min_hold > most, "--min-hold " + format_duration(options.min_hold) + " is longer than " + option},
       {!options.renew && most > options.lease, option + " is longer than the lease of " +
                                                    format_duration(options.lease) +
                                                    ", and --no-renew stops the command when that ends"}});
}

// `rlock run --owner` acquires nothing, so it neither waits nor keeps the lock. Settings of a host for jobs that do are
// ignored.
Result<void> check_owner(const RunOptions& options, const Parsed& parsed) {
  const lock::WaitPolicy& wait = options.wait;
  if (!options.owner) {
    return expect_none(
        {{options.keep.has_value(), "--keep needs --owner ID"}, {options.release, "--release needs --owner ID"}});
  }
  if (options.keep && options.release) return contradiction("--keep", "--release");
  const std::string why = "--owner uses a lock that is already held, so do not give ";
  const auto given = [&](const char* name, bool matters) {
    return Mistake{matters && parsed.has(name), why + "--" + name};
  };
  return expect_none({{options.once || options.once_per, why + "--once"},
                      given("wait", wait.limit.value_or(0ms) > 0ms),
                      given("supersede", options.supersede),
                      given("wait-replicas", wait.replicas > 0),
                      given("min-hold", options.min_hold > 0ms),
                      {options.mode.resize, why + "--resize"},
                      given("priority", wait.queueing.priority != 0),
                      given("priority-aging", wait.queueing.aging > 0ms),
                      given("replace-waiting", wait.queueing.replace),
                      given("max-queue", wait.queueing.most.has_value())});
}

Result<void> check_status_fd(int fd) {
  if (fd < 0) return {};
  const int mode = fcntl(fd, F_GETFL);
  if (mode < 0) return usage("--status-fd " + std::to_string(fd) + ": " + errno_text(errno));
  if ((mode & O_ACCMODE) == O_RDONLY) return usage("--status-fd " + std::to_string(fd) + ": not open for writing");
  return {};
}

// A success belongs to one lock, whose holder is alone: otherwise two could succeed at the same time.
Result<void> check_once(const RunOptions& options, const Parsed& parsed) {
  const bool once = options.once || options.once_per;
  const std::string option = options.once ? "--once" : "--once-per";
  using Kind = lock::Mode::Kind;
  const bool several = options.mode.kind == Kind::read || options.mode.kind == Kind::slots;
  return expect_none(
      {{options.once && options.once_per, contradiction("--once", "--once-per").error().message},
       {options.remember && !options.once, "--remember needs --once KEY"},
       {parsed.has("timezone") && !options.once_per, "--timezone needs --once-per PERIOD"},
       {parsed.has("once-status") && !once, "--once-status needs --once KEY or --once-per PERIOD"},
       {once && options.names.size() > 1,
        option + " works with one NAME, because its release records the success in the same step"},
       {once && several, option + " needs a lock with one holder: do not give --shared or --slots with it"}});
}

Result<void> complete_all(CommonOptions&, const Parsed&) { return {}; }

Result<void> complete_all(RunOptions& options, const Parsed& parsed) {
  RLOCK_TRY(complete_mode(options));
  RLOCK_TRY(check_once(options, parsed));
  options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, options.renew));
  RLOCK_TRY(complete_wait(options, parsed));
  const milliseconds grace = options.kill_after.value_or(lock::LeaseTiming::default_grace(options.lease));
  auto timing = lock::LeaseTiming::make(options.lease, grace, options.renew);
  if (!timing) return usage((options.kill_after ? "--kill-after: " : "") + timing.error().message);
  options.timing = *timing;
  RLOCK_TRY(check_status_fd(options.status_fd));
  RLOCK_TRY(check_owner(options, parsed));
  if (options.owner) options.wait.limit = options.min_hold = 0ms;
  RLOCK_TRY(check_holds(options));
  if (options.isolate && options.leftovers == run::Leftovers::ignore) {
    return usage("--isolate and --leftovers ignore cannot be used together: no process outlives its namespace");
  }
  if (options.lease < lock::kFullMarginLease) {
    log::warning("a lease of " + format_duration(options.lease) +
                 " is short, which leaves smaller margins for clock steps and slow machines; leases from 5s on have "
                 "full margins");
  }
  return {};
}

Result<void> complete_all(AcquireOptions& options, const Parsed& parsed) {
  RLOCK_TRY(complete_mode(options));
  RLOCK_TRY(complete_wait(options, parsed));
  if (options.lease == 0ms && !options.for_pid) {
    return usage(
        "acquire needs --lease DUR, because nothing renews this lock, or --for-pid PID, with which a keeper renews it "
        "as long as PID lives");
  }
  if (options.lease == 0ms) options.lease = lock::kDefaultLease;
  if (options.for_pid) options.lease = RLOCK_TRY(kept_lease(options.lease, options.mode, /*renew=*/true));
  return {};
}

Result<void> complete_all(OwnedOptions& options, const Parsed&) {
  if (options.owner) return {};
  const char* variable = std::getenv("RLOCK_OWNER");
  if (!variable || !*variable) {
    return usage("the owner of the lock is missing: give --owner ID, which acquire printed, or set RLOCK_OWNER");
  }
  options.owner = RLOCK_TRY(lock::OwnerId::parse(without_newline(variable)));
  return {};
}

Result<void> complete_all(ReleaseOptions& options, const Parsed& parsed) {
  if (!options.forgets) return complete_all(static_cast<OwnedOptions&>(options), parsed);
  if (options.owner) return contradiction("--forget", "--owner");
  return {};
}

Result<void> complete_all(StatusOptions& options, const Parsed&) {
  using enum StatusOptions::Output;
  // For each output that cannot be watched.
  std::map<StatusOptions::Output, const char*> once{
      {is_held, "--is-held"}, {prometheus, "--prometheus"}, {html, "--html"}};
  const char* const option = options.succeeded_within ? "--succeeded-within" : once[options.output];
  const bool asks = options.output == is_held || options.succeeded_within;
  if (options.succeeded_within && options.output != people) {
    return usage(std::string(StatusOptions::kOutputs) + " cannot be used together");
  }
  if (options.null && options.output != names) return usage("--null needs --names");
  if (asks && options.names.empty()) return usage(std::string(option) + " needs the NAME of a lock");
  return options.watch && option ? contradiction("--watch", option) : Result<void>();
}

Result<void> complete_all(HistoryOptions& options, const Parsed&) {
  const bool page = options.output == HistoryOptions::Output::html;
  if (page && options.report) return contradiction("--report", "--html");
  options.limit = options.limit.value_or(page ? 1000 : options.report ? 10'000 : HistoryOptions::kDefaultLimit);
  return {};
}

Result<void> complete_all(ForceUnlockOptions& options, const Parsed& parsed) {
  if (options.now && parsed.has("wait")) return contradiction("--now", "--wait");
  if (options.owner && !options.slot.empty()) return contradiction("--slot", "--owner");
  return {};
}

Result<void> complete_all(DoctorOptions& options, const Parsed&) {
  if (options.acl && options.json) return contradiction("--acl", "--json");
  if (!options.accept_epoch || (!options.acl && !options.json)) return {};
  return contradiction("--accept-epoch", options.acl ? "--acl" : "--json");
}

}  // namespace

Result<void> read_words(Invocation& invocation, const Parsed& parsed) {
  return std::visit([&](auto& options) { return read_words_of(options, parsed); }, invocation);
}

Result<void> complete(Invocation& invocation, const Parsed& parsed) {
  return std::visit([&](auto& options) { return complete_all(options, parsed); }, invocation);
}

}  // namespace rlock::cli
