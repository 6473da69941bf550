// Each form of new and delete of over-aligned and plain objects, by number (case 86).
#ifndef OBJECTS_H
#define OBJECTS_H

#include <cstdint>
#include <new>

struct alignas(64) CacheLine {
  char bytes[64];
};
struct alignas(4096) Page {
  char bytes[4096];
};

enum { kKinds = 8 };

inline std::uintptr_t alignment_of(int kind) {
  switch (kind) {
    case 0:
    case 2:
    case 4: return 64;
    case 6:
    case 7: return 16;
    default: return 4096;
  }
}

inline void* make_object(int kind) {
  switch (kind) {
    case 0: return new CacheLine;
    case 1: return new Page;
    case 2: return new CacheLine[10];
    case 3: return new Page[3];
    case 4: return new (std::nothrow) CacheLine;
    case 5: return new (std::nothrow) Page[2];
    case 6: return new char[5000];
    default: return operator new(48);
  }
}

inline void destroy_object(void* object, int kind) {
  switch (kind) {
    case 0:
    case 4: delete static_cast<CacheLine*>(object); return;
    case 1: delete static_cast<Page*>(object); return;
    case 2: delete[] static_cast<CacheLine*>(object); return;
    case 3:
    case 5: delete[] static_cast<Page*>(object); return;
    case 6: delete[] static_cast<char*>(object); return;
    default: operator delete(object, 48); return;
  }
}

#endif
