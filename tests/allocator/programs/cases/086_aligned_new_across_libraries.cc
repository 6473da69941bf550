// 86: Objects made by any form of new in the program or in one of two libraries, of which one has
// libstdc++ linked into it, are destroyed in another; the aligned forms are replaced as a set.
#include "case.h"
#include "086_objects.h"

extern "C" {
void* shared_make(int);
void shared_destroy(void*, int);
void* embedded_make(int);
void embedded_destroy(void*, int);
}

int main() {
  void* (*const makers[])(int) = {make_object, shared_make, embedded_make};
  void (*const destroyers[])(void*, int) = {destroy_object, shared_destroy, embedded_destroy};
  for (int round = 0; round < 200; ++round)
    for (int from = 0; from < 3; ++from)
      for (int to = 0; to < 3; ++to)
        for (int kind = 0; kind < kKinds; ++kind) {
          void* object = opaque(makers[from](kind));
          EXPECT(object, "no object of kind %d", kind);
          EXPECT(reinterpret_cast<uintptr_t>(object) % alignment_of(kind) == 0, "kind %d is not aligned", kind);
          EXPECT(malloc_usable_size(object) >= 48, "kind %d is not the allocator's", kind);
          destroyers[to](object, kind);
        }
  return 0;
}
