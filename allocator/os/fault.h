// Refusals by the OS that tests make happen: a hook asked before each call that the kernel may refuse. Compiled in
// only with EBB_TEST_POINTS; otherwise it costs nothing.
#pragma once

#include <cstddef>

namespace ebb::os {

#if defined(EBB_TEST_POINTS)
// Called with the function's name in os.h and its range (null and 0 where there is none). True: the call is refused
// without the kernel being asked. Set by tests before threads start; must be safe from any thread and not allocate.
using FaultHook = bool (*)(const char* call, const void* start, size_t bytes);
extern FaultHook g_fault_hook;
inline bool is_refused_by_test(const char* call, const void* start, size_t bytes) {
  return g_fault_hook != nullptr && g_fault_hook(call, start, bytes);
}
#else
constexpr bool is_refused_by_test(const char*, const void*, size_t) { return false; }
#endif

}  // namespace ebb::os
