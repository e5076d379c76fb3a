// libFuzzer's way in, of every target. Says what did not hold, and stops.
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string fault = edgeshed::test::run_target({data, size});
  if (fault.empty()) return 0;
  std::fprintf(stderr, "%s: %s\n", edgeshed::test::kTargetName, fault.c_str());
  std::abort();
}
