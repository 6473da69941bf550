// 38: A C++ thread_local object allocates in its constructor and frees in its destructor; short threads
// that each do so must leave no memory behind, resident or mapped.
#include "case.h"

namespace {

struct Owner {
  char* block = static_cast<char*>(malloc(1024));
  Owner() { memset(block, 7, 1024); }
  ~Owner() {
    EXPECT(block[0] == 7 && block[1023] == 7, "a thread_local's block was overwritten");
    free(block);
  }
};

thread_local Owner owner;

void* touch(void*) { return opaque(owner.block); }

void run_threads(int count) {
  for (int i = 0; i < count; ++i) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, nullptr, touch, nullptr) == 0, "no thread after %d", i);
    pthread_join(thread, nullptr);
  }
}

}  // namespace

int main() {
  arm_watchdog(60);
  run_threads(1000);
  size_t resident = resident_bytes(), mapped = status_bytes("VmSize");
  run_threads(10000);
  EXPECT(resident_bytes() < resident + MIB, "10000 threads left %zu KiB", (resident_bytes() - resident) / KIB);
  EXPECT(status_bytes("VmSize") <= mapped + MIB, "10000 threads left %zu KiB mapped",
         (status_bytes("VmSize") - mapped) / KIB);
  return 0;
}
