// A file that is there whole or not at all: written beside its place, then renamed.
#pragma once

#include <string>

namespace edgeshed::sim {

class OutputFile {
 public:
  /// Finds out now whether `path` can be written; throws an Error that says why not. Leaves
  /// nothing.
  explicit OutputFile(const std::string& path);
  /// Takes away what was begun and not put in place.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Makes the file beside the place, empty; its path. For a program that writes it itself.
  const std::string& begin();
  /// Puts what is written into place.
  void commit();
  /// All three.
  void write(const std::string& text);

 private:
  std::string path_;  // symbolic links followed, so that a link stays one
  std::string beside_;
};

}  // namespace edgeshed::sim
