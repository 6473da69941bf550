// Two kinds of checks.
//   EBB_ASSERT  proved by reasoning; compiled in debug builds only; never a safety net.
//   EBB_CHECK   always compiled; guards against corruption that a caller can cause.
// Both end the process through check_failed(), which prints without allocating.
#pragma once

#include "base/compiler.h"

namespace ebb {

[[noreturn]] EBB_COLD void check_failed(const char* expression, const char* file, int line);

}  // namespace ebb

#define EBB_CHECK(cond) \
  do {                  \
    if (EBB_UNLIKELY(!(cond))) ::ebb::check_failed(#cond, __FILE_NAME__, __LINE__); \
  } while (0)

#if defined(EBB_DEBUG)
#define EBB_ASSERT(cond) EBB_CHECK(cond)
#else
#define EBB_ASSERT(cond) ((void)0)
#endif
