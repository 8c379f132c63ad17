// SPDX-License-Identifier: MIT
// model_scripts [OPTION...] [CONFIGURATION...]: searches every order of events of the clients of a lock and of their
// server, which executes the script that rlock ships. Each configuration has a process of its own, and two run at a
// time.
//
// Prints a line for each configuration; for a violation also its shortest trace. The last line is "N states, V
// violations". Exit status: 0 complete, without a violation; 1 a violation; 2 not complete. tests/model/README.md tells
// how to read a trace, and what is searched.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <deque>

#include "search.h"

namespace {

using namespace rlock::model;

struct Options {
  std::string scripts;
  std::vector<std::string> names;
  int ticks = -1, faults = -1, attempts = -1;
  std::uint64_t most = 30'000'000;
  int jobs = 2;
};

// What one configuration has shown.
struct Result {
  std::uint64_t states = 0;
  int violations = 0, status = 0;
};

std::string bounds_of(const Configuration& configuration) {
  std::string text = std::to_string(configuration.clients.size()) + " clients, " + std::to_string(configuration.ticks) +
                     " ticks, " + std::to_string(configuration.faults) + " faults";
  if (configuration.attempts > 1) text += ", " + std::to_string(configuration.attempts) + " jobs of each client";
  if (configuration.losses > 0) text += ", data lost once";
  return text;
}

// A violation that is expected counts as one only if it is not found.
Result judge(const Configuration& configuration, const Found& found) {
  const std::string expected = configuration.expected ? configuration.expected : "";
  if (found.complaint != expected) {
    std::printf("  VIOLATION: %s\n",
                found.complaint.empty() ? ("none, but expected: " + expected).c_str() : found.complaint.c_str());
  } else if (!expected.empty()) {
    std::printf("  found, as expected: %s\n", expected.c_str());
  }
  for (const std::string& step : found.trace) std::printf("    %s\n", step.c_str());
  if (found.complaint != expected) return {found.states, 1, 1};
  const bool complete = found.complete || !expected.empty();
  if (!complete)
    std::printf("  not complete: more than %llu states\n", static_cast<unsigned long long>(found.states - 1));
  return {found.states, 0, complete ? 0 : 2};
}

Result run(const Configuration& configuration, const Options& options) {
  const auto began = std::chrono::steady_clock::now();
  Model model(configuration, options.scripts);
  const Found found = search(model, options.most);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%s (%s): %llu states, %llu steps, depth %d, %llu executions of scripts, %.1f s\n",
              configuration.name.c_str(), bounds_of(configuration).c_str(),
              static_cast<unsigned long long>(found.states), static_cast<unsigned long long>(found.steps), found.depth,
              static_cast<unsigned long long>(model.server().executions()), took.count());
  return judge(configuration, found);
}

// A process that runs one configuration, and tells its result through a pipe.
struct Child {
  pid_t pid;
  int result;
};

Child start(const Configuration& configuration, const Options& options) {
  int ends[2];
  if (pipe(ends) != 0) std::exit(2);
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    const Result result = run(configuration, options);
    std::fflush(stdout);
    const bool told = write(ends[1], &result, sizeof result) == sizeof result;
    _exit(told ? 0 : 2);
  }
  close(ends[1]);
  return {pid, ends[0]};
}

// Waits for the one that ends first. One that crashes is not complete.
Result finish_one(std::vector<Child>& children) {
  std::vector<pollfd> ends;
  for (const Child& child : children) ends.push_back({child.result, POLLIN, 0});
  poll(ends.data(), ends.size(), -1);
  const auto ready = std::ranges::find_if(ends, [](const pollfd& end) { return end.revents != 0; });
  const auto child = children.begin() + (ready - ends.begin());
  Result result;
  if (read(child->result, &result, sizeof result) != sizeof result) result = {0, 0, 2};
  close(child->result);
  waitpid(child->pid, nullptr, 0);
  children.erase(child);
  return result;
}

// Those named on the command line, with its bounds.
std::vector<Configuration> chosen(const Options& options) {
  std::vector<Configuration> all;
  for (Configuration one : configurations()) {
    if (!options.names.empty() && std::ranges::find(options.names, one.name) == options.names.end()) continue;
    if (options.ticks >= 0) one.ticks = options.ticks;
    if (options.faults >= 0) one.faults = options.faults;
    if (options.attempts > 0) one.attempts = options.attempts;
    all.push_back(one);
  }
  return all;
}

int run_all(const std::vector<Configuration>& all, const Options& options) {
  Result sum;
  std::vector<Child> children;
  const auto finish = [&] {
    const Result one = finish_one(children);
    sum.states += one.states;
    sum.violations += one.violations;
    sum.status = sum.status == 1 || one.status == 1 ? 1 : std::max(sum.status, one.status);
  };
  std::setvbuf(stdout, nullptr, _IOFBF, 1 << 20);  // a configuration's lines stay together
  for (const Configuration& one : all) {
    if (static_cast<int>(children.size()) >= options.jobs) finish();
    children.push_back(start(one, options));
  }
  while (!children.empty()) finish();
  std::printf("%llu states, %d violations\n", static_cast<unsigned long long>(sum.states), sum.violations);
  return sum.status;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Searches every order of events of the clients of a lock and of their server.", "model_scripts");
  app.add_option("configuration", options.names, "What to search; by default everything");
  app.add_option("--scripts", options.scripts, "A folder with script.lua, in place of the script that was built in");
  app.add_option("--ticks", options.ticks, "How often time advances");
  app.add_option("--faults", options.faults, "How many faults there are in one run");
  app.add_option("--attempts", options.attempts, "How many jobs each client runs, one after the other");
  app.add_option("--most", options.most, "Stop at this many states of a configuration")->capture_default_str();
  app.add_option("--jobs", options.jobs, "How many configurations run at a time")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  const auto all = chosen(options);
  if (all.empty() || (!options.names.empty() && all.size() != options.names.size())) {
    std::fprintf(stderr, "model_scripts: no such configuration; there are:");
    for (const Configuration& one : configurations()) std::fprintf(stderr, " %s", one.name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  return run_all(all, options);
}
