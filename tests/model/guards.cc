// SPDX-License-Identifier: MIT
// Visits every state that the guards of a job can reach (docs/architecture.md, section 3), while any process of the job
// is killed with -9, stopped and continued at any step, and checks what then still runs.
//
//   model_guards         a line for each way to start a job, then "N states, V violations"; exits with 0 if there are
//                        none, else with 1, after a shortest way to each
//
// What decides is rlock's own code: Life, FrontendLife, FrontendTimer, Deadlines, Watchdog. The model is what they are
// told: the kernel (world.h), and the order in which each process takes its steps (guards.h).
#include "guards.h"
#include "report.h"

int main() {
  using namespace rlock::model;
  const std::vector<Start> starts = {
      {}, {.ahead = true}, {.stops = true}, {.stops = true, .others = 0}, {.ahead = true, .stops = true, .others = 0}};
  return report_all(
      starts,
      [](const Start& start) {
        return std::string(start.ahead ? "a waiter" : "a job that has the lock") +
               (start.isolate ? ", --isolate" : "") + (start.stops ? ", stopped" : "") + ", others " +
               std::to_string(start.others);
      },
      [](const Start& start) {
        GuardsModel model(start);
        return Search(model).run(4000000);
      });
}
