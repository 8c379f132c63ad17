// SPDX-License-Identifier: MIT
// Giving the locks of a job back.
#pragma once

#include "redis/client.h"
#include "run/job.h"

namespace rlock::run {

// Gives all its locks back, of a job that was not started; what fails is reported.
void release_all(redis::Client& client, const Job& job);

}  // namespace rlock::run
