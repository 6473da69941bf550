// ebb_profile_*: argument checks around diagnostics/profile.h and the hooks of heap/sample_list.h. Any thread.
#include <errno.h>
#include <stddef.h>

#include "base/compiler.h"
#include "diagnostics/profile.h"
#include "ebb/ebb.h"
#include "heap/sample_list.h"
#include "heap/sampling.h"

using namespace ebb;

#define EBB_SAME_PLACE(theirs, ours) \
  static_assert(offsetof(ebb_sample_t, theirs) == offsetof(SampleFacts, ours), "hooks get the list's own facts")
EBB_SAME_PLACE(id, id);
EBB_SAME_PLACE(block, block);
EBB_SAME_PLACE(size_bytes, size_bytes);
EBB_SAME_PLACE(weight_bytes, weight_bytes);
EBB_SAME_PLACE(time_ns, time_ns);
EBB_SAME_PLACE(thread, thread);
EBB_SAME_PLACE(depth, depth);
EBB_SAME_PLACE(stack, stack);
static_assert(sizeof(ebb_sample_t) == sizeof(SampleFacts));

extern "C" {

EBB_EXPORT bool ebb_profile_start(size_t mean_bytes) {
  if (mean_bytes == 0 || mean_bytes > kMostSamplingMean) {
    errno = EINVAL;
    return false;
  }
  if (profile_start(mean_bytes)) return true;
  errno = ENOMEM;
  return false;
}

EBB_EXPORT void ebb_profile_stop(void) { sampling_stop(); }

EBB_EXPORT bool ebb_profile_write(int fd) {
  int error = profile_write(fd);
  if (error != 0) errno = error;
  return error == 0;
}

EBB_EXPORT void ebb_profile_hooks_set(ebb_sample_hook* on_alloc, ebb_sample_hook* on_free, void* arg) {
  sample_hooks_set({reinterpret_cast<SampleHook>(on_alloc), reinterpret_cast<SampleHook>(on_free), arg});
}

}  // extern "C"
