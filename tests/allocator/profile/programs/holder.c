// Holds 40 MiB in small blocks of hold_forty and 10 MiB in large ones of hold_ten, frees what pass_through allocates,
// and ends as its argument says: `exit`, `fork` (a child exits, then the parent) or `_exit`.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* held[60000];
static size_t count;

__attribute__((noinline, noclone)) void hold_forty(void) {
  for (int i = 0; i < 40960; ++i) held[count++] = malloc(1024);
}

__attribute__((noinline, noclone)) void hold_ten(void) {
  for (int i = 0; i < 40; ++i) held[count++] = malloc(256 << 10);
}

__attribute__((noinline, noclone)) void pass_through(void) {
  for (int i = 0; i < 40960; ++i) {
    held[count] = malloc(1024);
    free(held[count]);
  }
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  hold_forty();
  hold_ten();
  pass_through();
  if (strcmp(argv[1], "_exit") == 0) _exit(0);
  if (strcmp(argv[1], "fork") == 0) {
    pid_t child = fork();
    if (child == 0) {
      for (size_t i = 0; i < count; ++i) free(held[i]);
      exit(0);
    }
    if (child < 0 || waitpid(child, NULL, 0) != child) return 3;
  }
  return 0;
}
