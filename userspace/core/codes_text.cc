// One table per list, in the order of the lists.
#include "userspace/core/codes_text.h"

#include "userspace/core/codes.h"

namespace edgeshed::core {
namespace {

constexpr const char* kCategoryTexts[] = {
#define X(name, text) text,
    EDGESHED_CODE_CATEGORY_LIST(X)
#undef X
};
constexpr const char* kHintTexts[] = {
#define X(name, text) text,
    EDGESHED_CODE_HINT_LIST(X)
#undef X
};

std::string quoted(const char* name) { return "`" + std::string(name) + "`"; }

std::string retry_text(const CodeInfo& info) {
  if (!info.retry) return "no";
  return "after " + std::to_string(info.retry_after_ms / 1000) + " s";
}

std::string code_row(const CodeInfo& info) {
  std::string row = "| " + quoted(info.name) + " | " + info.category + " | " + info.scope + " | ";
  row += retry_text(info) + " | ";
  row += info.close_code == 0 ? "" : std::to_string(info.close_code) + " ";
  row += "| ";
  row += info.hint == CodeHint::none ? "" : quoted(hint_name(info.hint)) + " ";
  return row + "| " + info.sentence + " |\n";
}

}  // namespace

std::string codes_markdown() {
  std::string page =
      "# Codes\n\n"
      "What EdgeShed tells a game server, a player or an operator: every rung, state, refusal,\n"
      "rejection and eviction has a code. Made by `edgeshed codes --markdown` from\n"
      "`userspace/core/codes.h`; a test compares them. Why a single packet passed or was dropped\n"
      "is another list: `edgeshed reasons`.\n\n"
      "A retry time is before jitter: what a peer is told is longer by a random part, so that\n"
      "those who were refused do not return all at once.\n\n"
      "| code | category | scope | retry | close code | hint | what a player may read |\n"
      "|---|---|---|---|---|---|---|\n";
  for (const CodeInfo& info : kCodes) page += code_row(info);
  page += "\n## Categories\n\n| category | meaning |\n|---|---|\n";
  for (uint32_t i = 0; i < std::size(kCategoryTexts); ++i) {
    page += "| " + std::string(kCodeCategoryNames[i]) + " | " + kCategoryTexts[i] + " |\n";
  }
  page += "\n## Hints\n\n| hint | what the sender should do |\n|---|---|\n";
  for (uint32_t i = 1; i < std::size(kHintTexts); ++i) {
    page += "| " + quoted(kCodeHintNames[i]) + " | " + kHintTexts[i] + " |\n";
  }
  return page;
}

const char* hint_text(CodeHint hint) { return kHintTexts[static_cast<uint8_t>(hint)]; }

}  // namespace edgeshed::core
