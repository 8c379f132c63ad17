// SPDX-License-Identifier: MIT
#pragma once

// glibc 2.36 (Debian 12) declares these for C only.
extern "C" {
#include <sys/pidfd.h>
}
