// 41: Global objects of the program and of two libraries free containers in static destructors and atexit
// handlers, after the allocator may have shut down, while detached threads still allocate.
#include "case.h"
#include <string>
#include <vector>

extern "C" void use_first();
extern "C" void use_second();

namespace {

std::vector<std::string> global_strings;
char* global_block;

void free_block() {
  free(global_block);
  global_block = static_cast<char*>(malloc(100));
  free(global_block);
}

void* churn(void*) {
  for (unsigned seed = 1;; seed = seed * 1103515245 + 12345) free(opaque(malloc(seed >> 8 & 8191)));
  return nullptr;
}

}  // namespace

int main() {
  arm_watchdog(60);
  for (int i = 0; i < 1000; ++i) global_strings.emplace_back(static_cast<size_t>(i % 300), 'g');
  global_block = static_cast<char*>(malloc(123456));
  atexit(free_block);
  use_first();
  use_second();
  for (int i = 0; i < 2; ++i) {
    pthread_t thread;
    pthread_create(&thread, nullptr, churn, nullptr);
    pthread_detach(thread);
  }
  return 0;
}
