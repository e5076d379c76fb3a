// What a fuzz target is: one function on any bytes. A file <name>_target.cc defines what is below;
// the fuzzer (fuzzer.cc) and the quick test on its seeds (corpus_test.cc) are the same for all.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace edgeshed::test {

/// As in edgeshed_fuzz_target(<name> ...); the seeds are in <name>_corpus.
extern const char* const kTargetName;

/// Runs the target on `bytes`. "" if all that must hold held; otherwise one line that says what did
/// not. The same bytes have the same answer, whatever ran before.
std::string run_target(std::span<const uint8_t> bytes);

}  // namespace edgeshed::test
