// A command as a page of the manual.
#ifndef EDGESHED_TOOLS_PAGES_MAN_PAGE_H_
#define EDGESHED_TOOLS_PAGES_MAN_PAGE_H_

#include <string>
#include <vector>

#include "tools/pages/command.h"

namespace edgeshed::pages {

struct ManPage {
  std::string name;  // "edgeshed-status"
  int section = 1;
  std::string version;
  std::vector<std::string> see_also;  // "edgeshedd(8)"
};

/// The page in the man macros. `words`: how the command is called, "edgeshed status".
std::string man_page(const ManPage& page, const Command& command, const std::string& words);

}  // namespace edgeshed::pages

#endif
