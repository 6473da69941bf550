// ebb_option_get, ebb_option_set, ebb_version. Any thread. An option that is asked for before the first
// allocation has been read from the environment all the same.
#include "config/options.h"

#include "base/compiler.h"
#include "ebb/ebb.h"
#include "heap/process.h"
#include "scavenger/scavenger.h"

using namespace ebb;

extern "C" {

EBB_EXPORT bool ebb_option_get(const char* name, int64_t* value) {
  process_start();
  int index = name == nullptr ? -1 : option_find(name);
  if (index < 0) return false;
  *value = option(static_cast<Option>(index));
  return true;
}

EBB_EXPORT bool ebb_option_set(const char* name, int64_t value) {
  process_start();  // else the environment, read later, would win
  int index = name == nullptr ? -1 : option_find(name);
  if (index < 0 || !option_set(static_cast<size_t>(index), value)) return false;
  scavenger_reconfigure();
  return true;
}

EBB_EXPORT const char* ebb_version(void) { return EBB_VERSION; }

}  // extern "C"
