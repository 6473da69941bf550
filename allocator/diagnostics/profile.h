// The heap profile: starting and stopping it, and its text in the format that pprof and google-pprof read.
//
// Called by api/profile_api.cc and, at load and at exit, by api/start.cc. Any thread, nothing held. Writing allocates
// nothing by malloc: the samples are copied under their lock into memory of its own, and written outside of it.
#pragma once

#include <cstddef>

namespace ebb {

// Begins a profile with samples at a mean distance of `mean_bytes` (heap/sampling.h). False: out of memory.
bool profile_start(size_t mean_bytes);

// Writes the live samples of the last profile, and what is mapped where. 0, or an errno value: ENOMEM, or what write(2)
// or reading /proc/self/maps failed with; part of it may be written then.
int profile_write(int fd);

// As the options ask for, when the process starts: begins a profile, and notes where to write it at exit.
void profile_start_from_options();

// Whether profile_write_at_exit has anything to do.
extern bool g_profile_at_exit;
void profile_write_at_exit();

}  // namespace ebb
