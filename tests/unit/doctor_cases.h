// Hosts that never were, and what the doctor has to say of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "userspace/doctor/facts.h"
#include "userspace/doctor/findings.h"

namespace edgeshed::doctor {

/// A host and a card on which all is well.
Facts good_facts();
/// A veth whose other end is in the same namespace.
DeviceFacts veth();

struct Case {
  std::string check;
  Level level;
  std::string found;  // a part of it
  std::string fix;    // the whole command, or "~" and a part of the advice; empty only under kOk
  std::function<void(Facts&)> change;
};

/// A case about the one device of the facts.
Case of_device(std::string check, Level level, std::string found, std::string fix,
               std::function<void(DeviceFacts&)> change);

/// The first one of the check; empty: it is not about these devices.
Finding finding_of(const Facts& facts, const std::string& check);

/// A finding that is not ok has either a command that a shell takes as it is, of programs that are
/// known here and of edgeshed as its command line parses, or advice; one that is ok has neither.
void expect_remedy(const Finding& finding);
/// Of all findings, whoever asks and however much is known.
void expect_remedies(Facts facts);

/// Of root, or of somebody else where a check is to be skipped.
void expect(const std::vector<Case>& cases);

}  // namespace edgeshed::doctor
