// SPDX-License-Identifier: MIT
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>

#include "search.h"

namespace {

using namespace rlock::model;

int run(const Configuration& configuration, const std::string& scripts, std::uint64_t most) {
  const auto began = std::chrono::steady_clock::now();
  Model model(configuration, scripts);
  const Found found = search(model, most);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  std::printf("%s: %llu states, depth %d, %llu steps, %llu executions, %zu databases, %.1f s\n",
              configuration.name.c_str(), static_cast<unsigned long long>(found.states), found.depth,
              static_cast<unsigned long long>(found.steps),
              static_cast<unsigned long long>(model.server().executions()), model.server().databases(), took.count());
  if (!found.complaint.empty()) {
    std::printf("  %s\n", found.complaint.c_str());
    for (const std::string& step : found.trace) std::printf("    %s\n", step.c_str());
    return 1;
  }
  return found.complete ? 0 : 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Searches every state of the clients of a lock and of their server.");
  std::string scripts;
  std::vector<std::string> names;
  std::uint64_t most = 20'000'000;
  app.add_option("--scripts", scripts);
  app.add_option("--most", most);
  int ticks = -1, faults = -1, attempts = -1;
  app.add_option("--ticks", ticks);
  app.add_option("--faults", faults);
  app.add_option("--attempts", attempts);
  app.add_option("names", names);
  CLI11_PARSE(app, argc, argv);
  int status = 0;
  for (Configuration one : configurations()) {
    if (!names.empty() && std::ranges::find(names, one.name) == names.end()) continue;
    if (ticks >= 0) one.ticks = ticks;
    if (faults >= 0) one.faults = faults;
    if (attempts >= 0) one.attempts = attempts;
    status = std::max(status, run(one, scripts, most));
  }
  return status;
}
