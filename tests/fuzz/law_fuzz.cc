// libFuzzer's way in. Says what did not hold, and stops.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/law_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = edgeshed::test::run_law({data, size});
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s\n", fault.c_str());
  std::abort();
}
