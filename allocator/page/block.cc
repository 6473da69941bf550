#include "page/block.h"

#if defined(EBB_SECURE)

#include "os/os.h"

namespace ebb {

constinit LinkKeys g_link_keys{0, 0, 1};

void choose_link_keys() { g_link_keys = {os::entropy(), os::entropy(), os::entropy() | 1}; }

}  // namespace ebb

#endif
