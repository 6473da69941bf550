// Named points at which a test can hold or steer a thread, so that an interleaving is forced instead of
// hoped for. Compiled in only with EBB_TEST_POINTS; otherwise a point costs nothing.
#pragma once

namespace ebb {

#if defined(EBB_TEST_POINTS)
using TestPointHook = void (*)(const char* name);
// Set by tests before threads start; called at each point with the point's name. May block.
extern TestPointHook g_test_point_hook;
#define EBB_TEST_POINT(name) \
  do { if (::ebb::g_test_point_hook != nullptr) ::ebb::g_test_point_hook(name); } while (0)
#else
#define EBB_TEST_POINT(name) ((void)0)
#endif

}  // namespace ebb
