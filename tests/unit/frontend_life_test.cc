// SPDX-License-Identifier: MIT
#include "run/guard_state.h"

#include <gtest/gtest.h>

#include <csignal>

namespace rlock::run {
namespace {

using Rest = FrontendLife::Rest;
using Kind = JobEnd::Kind;

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
  EXPECT_EQ(life.rest(false, Kind::none, false), Rest::release);
}

TEST(FrontendLife, StopsWithTheSignalOfTheCommand) {
  FrontendLife life;
  EXPECT_EQ(life.stopped_by(), 0);
  life.take({Packet::Kind::stopped, SIGTTIN});
  EXPECT_EQ(life.stopped_by(), SIGTTIN);
  life.was_stopped();
  EXPECT_EQ(life.stopped_by(), 0);
}

TEST(FrontendLife, WhatRemainsDependsOnHowFarTheMonitorCame) {
  const FrontendLife before;
  EXPECT_EQ(before.rest(false, Kind::none, true), Rest::release);
  EXPECT_EQ(before.rest(true, Kind::none, true), Rest::take_over) << "the command had no gate";
  FrontendLife gone = ready_life();
  gone.went(Sent::yes);
  EXPECT_EQ(gone.rest(false, Kind::none, true), Rest::take_over) << "it may not have read `go`";
  EXPECT_EQ(gone.rest(true, Kind::none, true), Rest::take_over);
  EXPECT_EQ(gone.rest(true, Kind::exited, true), Rest::warn);
  EXPECT_EQ(gone.rest(true, Kind::exited, false), Rest::nothing);
  EXPECT_EQ(gone.rest(true, Kind::lost, false), Rest::nothing);
}

}  // namespace
}  // namespace rlock::run
