// The public header, compiled as C++11: its functions have C linkage and its enums are usable.
#include "userspace/client/edgeshed.h"

int edgeshed_header_cxx();
int edgeshed_header_cxx() {
  edgeshed_options options{};
  options.shard = "arena";
  int (*ask)(edgeshed_session*, int, edgeshed_lane) = edgeshed_may_send;
  return ask != nullptr && options.peers_max == 0;
}
