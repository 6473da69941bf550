// Named points at which a test can hold or steer a thread, so that an interleaving is forced instead of
// hoped for. Compiled in only with EBB_TEST_POINTS; otherwise a point costs nothing.
#pragma once

#if defined(EBB_TEST_POINTS)
#include <atomic>
#endif

namespace ebb {

#if defined(EBB_TEST_POINTS)
using TestPointHook = void (*)(const char* name);
// Called at each point with the point's name; may block. Atomic, as the scavenger may be at a point when a test
// sets it.
extern std::atomic<TestPointHook> g_test_point_hook;
#define EBB_TEST_POINT(name)                                                            \
  do {                                                                                  \
    ::ebb::TestPointHook hook = ::ebb::g_test_point_hook.load(std::memory_order_acquire); \
    if (hook != nullptr) hook(name);                                                    \
  } while (0)
#else
#define EBB_TEST_POINT(name) ((void)0)
#endif

}  // namespace ebb
