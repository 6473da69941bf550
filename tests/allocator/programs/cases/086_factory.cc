// Makes and destroys over-aligned objects for 086_aligned_new_across_libraries; linked once plainly and
// once with libstdc++ inside. FACTORY is the prefix of its two functions.
#include "086_objects.h"

#define JOIN_AGAIN(a, b) a##b
#define JOIN(a, b) JOIN_AGAIN(a, b)

extern "C" void* JOIN(FACTORY, _make)(int kind) { return make_object(kind); }
extern "C" void JOIN(FACTORY, _destroy)(void* object, int kind) { destroy_object(object, kind); }
