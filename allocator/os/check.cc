#include "base/check.h"

#include "base/test_point.h"
#include "os/message.h"

namespace ebb {

void check_failed(const char* expression, const char* file, int line) {
  Message message;
  message.text("ebb: internal check failed: ").text(expression).text(" at ").text(file).text(":");
  message.number(static_cast<uint64_t>(line)).text("; memory is corrupt or Ebb has a bug, the process stops").print();
  os::abort_process();
}

#if defined(EBB_TEST_POINTS)
constinit std::atomic<TestPointHook> g_test_point_hook{nullptr};
#endif

}  // namespace ebb
