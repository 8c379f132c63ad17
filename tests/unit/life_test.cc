// SPDX-License-Identifier: MIT
#include "run/life.h"

#include <gtest/gtest.h>

#include <csignal>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "run/guard_state.h"

namespace rlock::run {
namespace {

using Kind = LifeEvent::Kind;

constexpr const char* kStages[] = {"waiting",   "deserted",   "preparing", "running", "clearing_up",
                                   "finishing", "winding_up", "releasing", "over"};
constexpr const char* kForces[] = {"calm", "ending", "killing"};
constexpr const char* kEnds[] = {"none",        "exited",         "signalled", "lost",          "timed_out",
                                 "hook_failed", "not_executable", "not_found", "system_refused"};
constexpr const char* kActions[] = {"run_on_acquire", "open_gate",    "shut_gate", "report_killed",
                                    "pass_on",        "terminate",    "kill",      "kill_hook",
                                    "run_on_release", "last_packets", "release"};

const TimePoint kStart{100s};
const LifePlan kPlan{.on_acquire = true, .on_release = true, .hook_limit = 10s, .grace = 5s, .max_hold = 1h};

std::string text(const Life::Actions& actions) {
  std::string all;
  for (const LifeAction& action : actions) all += std::string(" ") + kActions[static_cast<int>(action.kind)];
  return all;
}

// "preparing calm none"
std::string text(const Life& life) {
  return std::string(kStages[static_cast<int>(life.stage())]) + " " + kForces[static_cast<int>(life.force())] + " " +
         kEnds[static_cast<int>(life.verdict().kind)];
}

LifeEvent event(Kind kind, TimePoint now = kStart) {
  return {.kind = kind, .now = now, .end = {JobEnd::Kind::exited, 3}, .signal = SIGTERM};
}

// A life to which these events have happened.
Life life_after(std::initializer_list<Kind> kinds, const LifePlan& plan = kPlan) {
  Life life(plan);
  for (const Kind kind : kinds) life.take(event(kind));
  return life;
}

// The result of one more event.
std::string then(Life& life, Kind kind, TimePoint now = kStart + 1min) {
  const auto actions = life.take(event(kind, now));
  return text(life) + ":" + text(actions);
}

// The shortest way to each stage. What each event does there is checked by tests/model/life.cc.
const std::initializer_list<Kind> kWays[] = {
    {},
    {Kind::command_ended, Kind::empty},
    {Kind::go},
    {Kind::go, Kind::looked, Kind::hook_ended, Kind::looked},
    {Kind::go, Kind::looked, Kind::hook_ended, Kind::looked, Kind::command_ended},
    {Kind::go, Kind::looked, Kind::hook_ended, Kind::looked, Kind::command_ended, Kind::empty},
    {Kind::command_ended, Kind::go, Kind::looked},
    {Kind::command_ended, Kind::go, Kind::looked, Kind::empty},
    {Kind::command_ended, Kind::go, Kind::looked, Kind::empty, Kind::released},
};

Life life_in(Stage stage, const LifePlan& plan = kPlan) { return life_after(kWays[static_cast<int>(stage)], plan); }

TEST(Life, HasAWayToEachStage) {
  for (std::size_t stage = 0; stage < std::size(kWays); ++stage) {
    EXPECT_EQ(life_in(static_cast<Stage>(stage)).stage(), static_cast<Stage>(stage)) << kStages[stage];
  }
}

// Each of these events, one after the other, has this result.
void expect_story(Life life, std::initializer_list<std::pair<Kind, const char*>> story) {
  for (const auto& [kind, result] : story) EXPECT_EQ(then(life, kind), result);
}

TEST(Life, TheGateOpensOnlyAfterTheHookAndALook) {
  expect_story(life_after({Kind::go, Kind::looked}), {{Kind::looked, "preparing calm none:"},  // it runs
                                                      {Kind::hook_ended, "preparing calm none:"},
                                                      {Kind::looked, "running calm none: open_gate"}});
  expect_story(life_after({Kind::go}, {}), {{Kind::looked, "running calm none: open_gate"},
                                            {Kind::command_ended, "clearing_up calm exited:"},
                                            {Kind::empty, "releasing calm exited: release"},
                                            {Kind::released, "over calm exited:"}});
  EXPECT_EQ(life_in(Stage::clearing_up).verdict().value, 3);
}

TEST(Life, AFirstHookThatFailsStartsNothingAndALastOneChangesNothing) {
  Life life = life_after({Kind::go, Kind::looked});
  LifeEvent failed = event(Kind::hook_ended);
  failed.failed = true;
  EXPECT_EQ(text(life.take(failed)), " shut_gate");
  EXPECT_EQ(text(life), "winding_up calm hook_failed");
  expect_story(life, {{Kind::command_ended, "winding_up calm hook_failed:"},
                      {Kind::empty, "releasing calm hook_failed: release"}});
  life = life_in(Stage::finishing);
  life.take(failed);
  EXPECT_EQ(text(life), "winding_up ending exited");
}

TEST(Life, WhatSpeaksAgainstTheStartKeepsTheGateShutAndTheCommandMayStillHearThatTheLockIsOurs) {
  const struct {
    std::initializer_list<Kind> happened;
    const char* outcome;
    Kind last = Kind::looked;
  } kCases[] = {
      {{Kind::asked_to_end, Kind::go}, "winding_up ending signalled: shut_gate"},
      {{Kind::frontend_died, Kind::go}, "winding_up killing system_refused: shut_gate"},
      {{Kind::command_ended, Kind::go}, "winding_up calm system_refused: report_killed shut_gate"},
      {{Kind::go, Kind::lost}, "winding_up ending lost: shut_gate"},
      {{Kind::go, Kind::hold_over}, "winding_up ending timed_out: shut_gate"},
      {{Kind::go, Kind::looked, Kind::lost, Kind::command_ended, Kind::hook_ended},
       "winding_up ending lost: shut_gate"},
      {{Kind::command_ended, Kind::empty, Kind::go},
       "releasing calm system_refused: report_killed shut_gate release",
       Kind::empty},
  };
  for (const auto& one : kCases) expect_story(life_after(one.happened), {{one.last, one.outcome}});
}

TEST(Life, LeftoversAreEndedWaitedForOrIgnored) {
  LifePlan plan = kPlan;
  plan.leftovers = Leftovers::wait;
  Life life = life_after({Kind::command_ended, Kind::go, Kind::looked}, plan);
  EXPECT_EQ(then(life, Kind::left_behind), "winding_up calm system_refused:");
  plan.leftovers = Leftovers::ignore;
  life = life_in(Stage::running, plan);
  life.take(event(Kind::command_ended));
  EXPECT_TRUE(life.minds_leftovers());
  expect_story(life, {{Kind::left_behind, "finishing calm exited: run_on_release"},
                      {Kind::hook_late, "finishing calm exited: kill_hook"},  // nothing but the hook
                      {Kind::hook_ended, "releasing calm exited: release"}});
  life = life_after({Kind::command_ended, Kind::go, Kind::looked}, plan);
  EXPECT_EQ(then(life, Kind::left_behind), "releasing calm system_refused: release");
  life = life_after({Kind::command_ended}, plan);
  EXPECT_EQ(then(life, Kind::left_behind), "deserted calm none: last_packets");
}

TEST(Life, LeftoversThatAreToBeEndedCountOnceTheyHadTimeToEndByThemselves) {
  EXPECT_FALSE(life_after({Kind::go, Kind::looked, Kind::command_ended}).minds_leftovers());
  EXPECT_FALSE(life_after({Kind::command_ended, Kind::asked_to_end}).minds_leftovers());
  EXPECT_FALSE(life_after({Kind::go}).minds_leftovers());
  EXPECT_TRUE(life_after({Kind::command_ended}).minds_leftovers());
  EXPECT_GT(life_after({Kind::command_ended}).leftovers_count_at(), kStart);
  for (const Leftovers leftovers : {Leftovers::wait, Leftovers::ignore}) {
    LifePlan plan = kPlan;
    plan.leftovers = leftovers;
    EXPECT_EQ(life_after({Kind::command_ended}, plan).leftovers_count_at(), kStart);
  }
  Life life = life_in(Stage::running);
  LifeEvent killed = event(Kind::command_ended);
  killed.end = {JobEnd::Kind::signalled, SIGKILL};
  life.take(killed);
  EXPECT_EQ(life.leftovers_count_at(), kStart);
  EXPECT_EQ(then(life, Kind::left_behind), "clearing_up killing signalled: terminate kill");
}

TEST(Life, NoHookRunsOnReleaseWhereTheLockIsLostOrTheFrontendDead) {
  for (const Kind kind : {Kind::lost, Kind::frontend_died}) {
    Life life = life_in(Stage::clearing_up);
    life.take(event(kind));
    EXPECT_TRUE(then(life, Kind::empty).ends_with(": release"));
  }
  Life life = life_in(Stage::clearing_up);
  life.take(event(Kind::deadline));
  EXPECT_EQ(then(life, Kind::empty), "finishing calm exited: run_on_release") << "the tree is empty: calm again";
}

TEST(Life, TheVerdictGivesWayOnlyToAGraverOne) {
  Life life = life_in(Stage::clearing_up);
  life.take(event(Kind::hold_over));
  EXPECT_EQ(life.verdict().kind, JobEnd::Kind::timed_out);
  life.take(event(Kind::asked_to_end, kStart + 1s));
  EXPECT_EQ(life.verdict(), (JobEnd{JobEnd::Kind::signalled, SIGTERM}));
  LifeEvent other = event(Kind::asked_to_end, kStart + 2s);
  other.signal = SIGINT;
  life.take(other);
  EXPECT_EQ(life.verdict().value, SIGTERM) << "the first one";
  life.take(event(Kind::lost));
  EXPECT_EQ(life.verdict().kind, JobEnd::Kind::lost);
  life.take(event(Kind::asked_to_end, kStart + 3s));
  EXPECT_EQ(life.verdict().kind, JobEnd::Kind::lost);
}

TEST(LifeSignals, AreHeldBackUntilTheGateOpensButNotAFlood) {
  Life life(LifePlan{});
  EXPECT_TRUE(life.take_signal(SIGUSR1, false, false, kStart).empty());
  EXPECT_TRUE(life.take_signal(SIGTSTP, false, true, kStart).empty()) << "Ctrl-Z: the command has not had it";
  EXPECT_TRUE(life.take_signal(SIGWINCH, false, true, kStart).empty());
  life.take(event(Kind::go));
  life.take_signal(SIGTSTP, false, true, kStart);
  life.take_signal(SIGUSR2, false, false, kStart);
  const Life::Actions expected = {{LifeAction::Kind::open_gate},
                                  {LifeAction::Kind::pass_on, SIGUSR1},
                                  {LifeAction::Kind::pass_on, SIGTSTP},
                                  {LifeAction::Kind::pass_on, SIGUSR2}};
  EXPECT_EQ(life.take(event(Kind::looked)), expected);
  life = Life(LifePlan{});
  for (int i = 0; i < 5000; ++i) life.take_signal(SIGUSR1, false, false, kStart);
  life.take(event(Kind::go));
  EXPECT_EQ(life.take(event(Kind::looked)).size(), 1001u);
}

TEST(LifeSignals, ArePassedOnToTheCommandUnlessItHasThemAndEndWhatHasNotBegun) {
  Life life = life_after({Kind::go, Kind::looked}, {});
  const Life::Actions passed_on = {{LifeAction::Kind::pass_on, SIGTERM}};
  EXPECT_EQ(life.take_signal(SIGTERM, true, false, kStart), passed_on);
  EXPECT_TRUE(life.take_signal(SIGINT, true, true, kStart).empty());
  EXPECT_EQ(text(life), "running calm none");
  life = life_after({Kind::go});
  EXPECT_EQ(text(life.take_signal(SIGINT, true, true, kStart)), " terminate");
  EXPECT_EQ(life.verdict(), (JobEnd{JobEnd::Kind::signalled, SIGINT}));
  life = life_after({Kind::go});
  life.take_signal(SIGTERM, true, false, kStart);
  EXPECT_TRUE(life.take_signal(SIGTERM, true, false, kStart + 40ms).empty()) << "timeout(1) sends it twice";
  EXPECT_EQ(text(life.take_signal(SIGTERM, true, false, kStart + 100ms)), " kill");
}

TEST(LifeSignals, OneOfTheMomentInWhichTheCommandEndedIsNotForUsNorIsOneWhenAllIsOver) {
  for (const auto& [after, verdict] :
       {std::pair{40ms, "clearing_up ending exited"}, {60ms, "clearing_up ending signalled"}}) {
    Life life = life_in(Stage::clearing_up);
    EXPECT_EQ(text(life.take_signal(SIGTERM, true, false, kStart + after)), " terminate");
    EXPECT_EQ(text(life), verdict);
  }
  for (const Stage stage : {Stage::releasing, Stage::over}) {
    Life life = life_in(stage);
    const std::string before = text(life);
    EXPECT_TRUE(life.take_signal(SIGTERM, true, false, kStart + 1s).empty());
    EXPECT_EQ(text(life), before);
  }
}

class LifeTimes : public testing::Test {
 protected:
  const Deadlines deadlines{*lock::LeaseTiming::make(30s, 5s, true), {kStart, 0ms}};
};

TEST_F(LifeTimes, NothingIsDueBeforeTheLockIsOursAndTheLeaseEndsWhatIsNotRenewed) {
  Life life(kPlan);
  EXPECT_EQ(life.next(Deadlines({}, {})), TimePoint::max());
  EXPECT_FALSE(life.due(kStart + 10h, deadlines));
  life = life_after({Kind::go, Kind::looked}, {});
  EXPECT_EQ(life.next(deadlines), deadlines.terminate_at());
  EXPECT_FALSE(life.due(deadlines.terminate_at() - 1ms, deadlines));
  EXPECT_EQ(life.due(deadlines.terminate_at(), deadlines), Kind::lost);
  life = life_after({Kind::go, Kind::looked, Kind::lost}, {.grace = 1h});
  EXPECT_EQ(life.next(deadlines), deadlines.kill_at());
  EXPECT_EQ(life.due(deadlines.kill_at(), deadlines), Kind::deadline);
  life.take(event(Kind::deadline));
  EXPECT_EQ(life.next(deadlines), TimePoint::max());
}

TEST_F(LifeTimes, MaxHoldCountsFromTheGrantUntilNothingOfTheCommandIsLeft) {
  LifePlan plan = kPlan;
  plan.max_hold = 2s;
  Life life = life_after({Kind::go}, plan);
  EXPECT_EQ(life.next(deadlines), kStart + 2s);
  EXPECT_EQ(life.due(kStart + 2s, deadlines), Kind::hold_over);
  life.take(event(Kind::hold_over, kStart + 2s));
  EXPECT_EQ(life.due(kStart + 6999ms, deadlines), std::nullopt);
  EXPECT_EQ(life.due(kStart + 7s, deadlines), Kind::grace_over);
  life = life_in(Stage::finishing, plan);
  EXPECT_EQ(life.due(kStart + 9s, deadlines), std::nullopt);
}

TEST_F(LifeTimes, AHookHasItsTimeOnce) {
  Life life = life_after({Kind::go, Kind::looked});
  EXPECT_EQ(life.next(deadlines), kStart + 10s);
  EXPECT_EQ(life.due(kStart + 10s, deadlines), Kind::hook_late);
  life.take(event(Kind::hook_late, kStart + 10s));
  EXPECT_TRUE(life.hook_is_late());
  EXPECT_EQ(life.next(deadlines), kStart + 15s) << "the end of the grace";
}

const TimePoint kSent{100s};

lock::LeaseTiming timing(milliseconds lease = 30s) { return *lock::LeaseTiming::make(lease, 5s, true); }

TEST(Deadlines, AllCountFromTheSendingOfTheLastRequestAndNothingIsDueBeforeTheLockIsOurs) {
  const Deadlines deadlines(timing(), {kSent, 0ms});
  EXPECT_EQ(deadlines.terminate_at(), kSent + 23200ms);
  EXPECT_EQ(deadlines.kill_at(), kSent + 28200ms);
  EXPECT_EQ(deadlines.ends_at(), kSent + 29200ms);
  EXPECT_EQ(deadlines.runs_out_at(0ms), kSent + 30s);
  EXPECT_EQ(deadlines.runs_out_at(2min), kSent + 2min) << "--min-hold";
  const Deadlines before(timing(), {});
  for (const TimePoint due : {before.terminate_at(), before.kill_at(), before.ends_at(), before.runs_out_at(0ms),
                              before.frontend_acts_at(TimePoint{})}) {
    EXPECT_EQ(due, TimePoint::max());
  }
}

TEST(Deadlines, AFastServerClockBringsNearerWhatWeMayDoButNotTheLatestEnd) {
  const Deadlines exact(timing(), {kSent, 0ms}), nearer(timing(), {kSent, 500ms});
  for (const auto due : {&Deadlines::terminate_at, &Deadlines::kill_at, &Deadlines::ends_at}) {
    EXPECT_EQ((nearer.*due)(), (exact.*due)() - 500ms);
  }
  EXPECT_EQ(nearer.runs_out_at(0ms), kSent + 30s);
}

TEST(Deadlines, TheFrontendGivesTheMonitorAQuarterOfASecondAndHasTimeItself) {
  const Deadlines deadlines(timing(), {kSent, 0ms});
  EXPECT_EQ(deadlines.frontend_acts_at(TimePoint{}), deadlines.kill_at() + 250ms);
  EXPECT_EQ(deadlines.frontend_acts_at(deadlines.kill_at() + 1s), deadlines.kill_at() + 1450ms) << "it is killing";
  for (const milliseconds lease : {1s, 2s, 5s, 30s}) {
    const Deadlines of_lease(*lock::LeaseTiming::make(lease, 0ms), {kSent, 0ms});
    EXPECT_LT(of_lease.frontend_acts_at(of_lease.kill_at()), of_lease.ends_at()) << lease.count() << " ms";
  }
}

TEST(GuardState, ThePromiseIsTheLastOneAndDeadlinesOfOneThatIsBeingWrittenAreOfOneOfTheTwo) {
  GuardState* const shared = *GuardState::map();
  EXPECT_EQ(shared->promise(), Promise());
  for (int i = 1; i < 5; ++i) {
    const Promise promise{kSent + i * 10s, milliseconds(i)};
    shared->set_promise(promise);
    EXPECT_EQ(shared->promise(), promise);
  }
  shared->set_promise({kSent, 0ms});
  const std::jthread writer([&](const std::stop_token& end) {
    for (milliseconds i{}; !end.stop_requested(); ++i) shared->set_promise({kSent + 2 * i, i});
  });
  TimePoint last = kSent;
  for (int i = 0; i < 100'000; ++i) {
    const Promise promise = shared->promise();
    const TimePoint counts_from = promise.sent - promise.shortened_by;
    ASSERT_GE(counts_from, std::exchange(last, counts_from));
    if (i % 100 == 0) std::this_thread::yield();  // to the writer, if there is one processor
  }
}

using Rest = FrontendLife::Rest;
using End = JobEnd::Kind;

FrontendLife ready_life() {
  FrontendLife life;
  life.take({Packet::Kind::ready});
  return life;
}

TEST(FrontendLife, GoIsSentAgainOnlyWhileItFindsNoRoomAndAMonitorThatHearsNothingMoreDoesNotGetTheLock) {
  FrontendLife life = ready_life();
  life.went(Sent::no_room);
  EXPECT_TRUE(life.ready() && !life.gone() && !life.closed());
  life.went(Sent::yes);
  EXPECT_TRUE(!life.ready() && life.gone() && !life.closed());
  life = ready_life();
  life.went(Sent::nobody_there);
  EXPECT_TRUE(!life.ready() && !life.gone() && life.closed());
  EXPECT_EQ(life.rest(false, End::none, false), Rest::release);
}

TEST(FrontendLife, StopsWithTheSignalOfTheCommandAndWhatRemainsDependsOnHowFarTheMonitorCame) {
  FrontendLife stopped;
  EXPECT_EQ(stopped.stopped_by(), 0);
  stopped.take({Packet::Kind::stopped, SIGTTIN});
  EXPECT_EQ(stopped.stopped_by(), SIGTTIN);
  stopped.was_stopped();
  EXPECT_EQ(stopped.stopped_by(), 0);

  const FrontendLife before;
  EXPECT_EQ(before.rest(false, End::none, true), Rest::release);
  EXPECT_EQ(before.rest(true, End::none, true), Rest::take_over) << "the command had no gate";
  FrontendLife gone = ready_life();
  gone.went(Sent::yes);
  EXPECT_EQ(gone.rest(false, End::none, true), Rest::take_over) << "it may not have read `go`";
  EXPECT_EQ(gone.rest(true, End::none, true), Rest::take_over);
  EXPECT_EQ(gone.rest(true, End::exited, true), Rest::warn);
  EXPECT_EQ(gone.rest(true, End::exited, false), Rest::nothing);
  EXPECT_EQ(gone.rest(true, End::lost, false), Rest::nothing);
}

}  // namespace
}  // namespace rlock::run
