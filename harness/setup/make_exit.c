/* A function for GNU make, $(exit-with CODE): ends make at once with that exit code; 0 and nothing go on.
 * make itself reports 2 for every failed command, but a gate's callers tell a regression (1) from what could not
 * be measured (2). Loaded by the Makefile; built by it at first use. */
#include <gnumake.h>
#include <stdlib.h>

int plugin_is_GPL_compatible;

static char* exit_with(const char* name, unsigned int count, char** arguments) {
  (void)name;
  (void)count;
  int code = atoi(arguments[0]);
  if (code != 0) exit(code);
  return NULL;
}

int make_exit_gmk_setup(void);
int make_exit_gmk_setup(void) {
  gmk_add_function("exit-with", exit_with, 1, 1, GMK_FUNC_DEFAULT);
  return 1;
}
