// The one error that reaches a person: a single clear line and the exit code of the program.
// Header-only, so that every folder can throw it. Must not translate errno (userspace/kernel does).
#pragma once

#include <stdexcept>
#include <string>

namespace edgeshed {

/// Exit codes of every program of the project: the one list.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailure = 1,      ///< it was tried and failed
  kExitUsage = 2,        ///< the command line or the configuration is wrong
  kExitRefused = 3,      ///< something of somebody else is in the way; everything is as it was
  kExitEnvironment = 4,  ///< kernel feature, privilege or library is missing
};

/// what() is one line: what is wrong, where (file:line:column), what is allowed, what to do.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& line, int exit_code = kExitFailure)
      : std::runtime_error(line), exit_code_(exit_code) {}

  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

}  // namespace edgeshed
