// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <csignal>

#include <memory>
#include <thread>

#include "run/guard_state.h"

namespace rlock::run {
namespace {

const TimePoint kSent{100s};

lock::LeaseTiming timing(milliseconds lease = 30s) { return *lock::LeaseTiming::make(lease, 5s, true); }

TEST(Deadlines, AllCountFromTheSendingOfTheLastRequest) {
  const Deadlines deadlines(timing(), {kSent, 0ms});
  EXPECT_EQ(deadlines.terminate_at(), kSent + 23200ms);
  EXPECT_EQ(deadlines.kill_at(), kSent + 28200ms);
  EXPECT_EQ(deadlines.ends_at(), kSent + 29200ms);
  EXPECT_EQ(deadlines.runs_out_at(0ms), kSent + 30s);
  EXPECT_EQ(deadlines.runs_out_at(2min), kSent + 2min) << "--min-hold";
}

TEST(Deadlines, AFastServerClockBringsNearerWhatWeMayDoButNotTheLatestEnd) {
  const Deadlines exact(timing(), {kSent, 0ms}), nearer(timing(), {kSent, 500ms});
  for (const auto due : {&Deadlines::terminate_at, &Deadlines::kill_at, &Deadlines::ends_at}) {
    EXPECT_EQ((nearer.*due)(), (exact.*due)() - 500ms);
  }
  EXPECT_EQ(nearer.runs_out_at(0ms), kSent + 30s);
}

TEST(Deadlines, NothingIsDueBeforeTheLockIsOurs) {
  const Deadlines deadlines(timing(), {});
  for (const TimePoint due : {deadlines.terminate_at(), deadlines.kill_at(), deadlines.ends_at(),
                              deadlines.runs_out_at(0ms), deadlines.frontend_acts_at(TimePoint{})}) {
    EXPECT_EQ(due, TimePoint::max());
  }
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

TEST(GuardState, ThePromiseIsTheLastOneAndOneThatIsBeingWrittenIsNotRead) {
  GuardState* const shared = *GuardState::map();
  EXPECT_EQ(shared->promise(), Promise());
  for (int i = 1; i < 5; ++i) {
    const Promise promise{kSent + i * 10s, milliseconds(i)};
    shared->set_promise(promise);
    EXPECT_EQ(shared->promise(), promise);
  }
  shared->set_promise({kSent, 0ms});
  const std::jthread writer([&](const std::stop_token& end) {
    for (milliseconds i{}; !end.stop_requested(); ++i) shared->set_promise({kSent + i, i});
  });
  for (int i = 0; i < 100'000; ++i) {
    const Promise promise = shared->promise();
    ASSERT_EQ(promise.sent - kSent, promise.shortened_by);
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
