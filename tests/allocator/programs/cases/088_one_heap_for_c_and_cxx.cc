// 88: Programs delete what C functions made and free what new made; formally undefined, common in the
// wild, and fine when one allocator serves both.
#include "case.h"

int main() {
  for (int i = 0; i < 1000; ++i) {
    delete static_cast<char*>(opaque(strdup("made by strdup")));
    char* text = nullptr;
    EXPECT(asprintf(&text, "%d", i) > 0, "no text");
    operator delete(opaque(text));
    FILE* file = fmemopen(const_cast<char*>("one line\n"), 9, "r");
    char* line = nullptr;
    size_t capacity = 0;
    EXPECT(getline(&line, &capacity, file) > 0, "no line");
    fclose(file);
    delete[] static_cast<char*>(opaque(line));
    free(opaque(new long(i)));
    free(opaque(new char[300]));
    char* grown = static_cast<char*>(realloc(opaque(new char[40]), 4000));
    EXPECT(malloc_usable_size(grown) >= 4000, "realloc of a new'd block fails");
    delete[] grown;
  }
  return 0;
}
