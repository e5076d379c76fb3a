/* The public header, compiled as C99: nothing beyond it may be needed. */
#include "userspace/client/edgeshed.h"

int edgeshed_header_c99(void);
int edgeshed_header_c99(void) {
  const edgeshed_options options = {.shard = "arena"};
  return options.peers_max == 0 && EDGESHED_LANE_COSMETIC == 7;
}
