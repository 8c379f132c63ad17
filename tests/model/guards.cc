// SPDX-License-Identifier: MIT
// Visits every state that the guards of a job can reach (docs/architecture.md, Three processes), while any process of
// the job is killed with -9, stopped and continued at any step, and checks what then still runs.
//
//   model_guards         a line for each way to start a job, then "N states, V violations"; exits with 0 if there are
//                        none, else with 1, after a shortest way to each
//   model_guards --first NAME  only the search of that name, ending with the first violation; either may be omitted
//
// What decides is rlock's own code: Life, FrontendLife, FrontendTimer, Deadlines, Watchdog. The model is what they are
// told: the kernel (world.h), and the order in which each process takes its steps (guards.h).
#include "guards.h"
#include "report.h"

namespace rlock::model {
namespace {

std::string name_of(const Start& start) {
  return std::string(start.ahead ? "a waiter" : "a job that has the lock") + (start.isolate ? ", --isolate" : "") +
         (start.stops > 0 ? ", Ctrl-Z" : "") + (start.others > 1 ? ", a larger tree" : "");
}

}  // namespace
}  // namespace rlock::model

int main(int count, char** words) {
  using namespace rlock::model;
  const std::vector<Start> starts = {{.others = 2},     {.ahead = true},
                                     {.stops = 2},      {.ahead = true, .stops = 1},
                                     {.isolate = true}, {.ahead = true, .isolate = true}};
  return report_all(Wanted(count, words), starts, name_of, [](const Start& start) {
    GuardsModel model(start);
    return Search(model).run(20'000'000);
  });
}
