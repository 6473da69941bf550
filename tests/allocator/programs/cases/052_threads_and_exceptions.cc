// 52: dlsym and dlerror allocate while dl_iterate_phdr and pthread_create are interposed; the program must
// reach main, start threads, throw exceptions, and see freed memory purged by a thread of the allocator's.
#include "case.h"
#include <stdexcept>
#include <vector>

namespace {

void* throw_some(void*) {
  for (int i = 0; i < 100; ++i) {
    try {
      throw std::runtime_error("an exception that unwinds through dl_iterate_phdr");
    } catch (const std::exception& error) {
      EXPECT(error.what()[0] == 'a', "the exception's text is wrong");
    }
  }
  return nullptr;
}

}  // namespace

int main() {
  arm_watchdog(30);
  pthread_t threads[4];
  for (auto& thread : threads) EXPECT(pthread_create(&thread, nullptr, throw_some, nullptr) == 0, "no thread");
  for (auto& thread : threads) pthread_join(thread, nullptr);
  { std::vector<char> large(32 * MIB, 'x'); }
  EXPECT(falls_below(24 * MIB), "%zu MiB stay resident", resident_bytes() / MIB);
  return 0;
}
