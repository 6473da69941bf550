/* startup: an empty program.
 *
 * What an allocator costs before main and after it: loading, relocation, constructors, destructors. Plain
 * C over libc, no argument parsing, no look-up of extensions: the two events are all it does, and the
 * object that provides malloc is found without walking a symbol table, whose length would be charged to
 * the allocator. The figure is the whole process, so there is no region of interest.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kExitBroken = 1, kExitUsage = 2 };

static void say(int descriptor, const char* text) {
  size_t left = strlen(text);
  while (left != 0) {
    const ssize_t written = write(descriptor, text, left);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) _exit(kExitBroken);
    text += written;
    left -= (size_t)written;
  }
}

/* Descriptor to write events to: the first of TIDEMARK_CHECKPOINT_FDS, or standard output. */
static int event_descriptor(void) {
  const char* value = getenv("TIDEMARK_CHECKPOINT_FDS");
  if (value == NULL) return STDOUT_FILENO;
  char* end;
  const long descriptor = strtol(value, &end, 10);
  if (end == value || *end != ',' || descriptor < 0 || descriptor > 1 << 20) {
    say(STDERR_FILENO, "startup: TIDEMARK_CHECKPOINT_FDS must name two open descriptors as in \"3,4\".\n");
    _exit(kExitUsage);
  }
  return (int)descriptor;
}

/* The start event, built here so that it costs one write whatever the path's length. */
static char line[8192];
static size_t used;

static void add_byte(char byte) {
  if (used + 1 < sizeof line) line[used++] = byte;
}

static void add(const char* text) {
  while (*text != '\0') add_byte(*text++);
}

static void add_decimal(unsigned long value) {
  char digits[24];
  size_t count = 0;
  do {
    digits[count++] = (char)('0' + value % 10);
    value /= 10;
  } while (value != 0);
  while (count != 0) add_byte(digits[--count]);
}

/* Adds `text` escaped for JSON. */
static void add_escaped(const char* text) {
  for (; *text != '\0'; ++text) {
    if (*text == '"' || *text == '\\') add_byte('\\');
    add_byte(*text);
  }
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--help") == 0) {
    say(STDOUT_FILENO, "usage: startup\nAn empty program; it takes no arguments.\n");
    return 0;
  }
  if (argc != 1) {
    say(STDERR_FILENO, "startup: it takes no arguments; see startup --help.\n");
    return kExitUsage;
  }
  signal(SIGPIPE, SIG_IGN);
  const int events = event_descriptor();
  struct dl_find_object object;
  void* (*volatile allocate)(size_t) = malloc;
  if (_dl_find_object((void*)allocate, &object) != 0) {
    say(STDERR_FILENO, "startup: cannot tell which object provides malloc.\n");
    return kExitBroken;
  }
  add("{\"event\": \"start\", \"protocol\": 1, \"workload\": \"startup\", \"pid\": ");
  add_decimal((unsigned long)getpid());
  add(", \"malloc_object\": \"");
  add_escaped(object.dlfo_link_map->l_name);
  add("\", \"adapter\": \"none\", \"modes\": {\"heap\": \"unused\", \"collect\": \"unused\", "
      "\"park\": \"unused\"}}\n");
  add("{\"event\": \"end\", \"checksum\": \"0000000000000000\", \"operations\": 1, \"metrics\": {}}\n");
  say(events, line);
  return 0;
}
