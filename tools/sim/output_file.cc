#include "tools/sim/output_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "userspace/core/error_type.h"

namespace edgeshed::sim {
namespace {

[[noreturn]] void cannot_write(const std::string& path, const char* why) {
  throw Error(fmt::format("{}: cannot be written: {}", path, why), kExitUsage);
}

mode_t usual_mode() {
  const mode_t mask = umask(0);
  umask(mask);
  return 0666 & ~mask;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) cannot_write(path, "it is a folder; name a file");
  // A rename would take the place of a device or a pipe.
  if (fs::exists(status) && !fs::is_regular_file(status)) cannot_write(path, "it is no plain file");
  if (fs::exists(status)) path_ = fs::canonical(path);
  begin();
  unlink(beside_.c_str());
  beside_.clear();
}

OutputFile::~OutputFile() {
  if (!beside_.empty()) unlink(beside_.c_str());
}

const std::string& OutputFile::begin() {
  std::string name = path_ + ".XXXXXX";
  const int file = mkstemp(name.data());
  if (file < 0) cannot_write(path_, std::strerror(errno));
  beside_ = name;
  fchmod(file, usual_mode());
  close(file);
  return beside_;
}

void OutputFile::commit() {
  if (std::rename(beside_.c_str(), path_.c_str()) != 0) cannot_write(path_, std::strerror(errno));
  beside_.clear();
}

void OutputFile::write(const std::string& text) {
  const std::string name = begin();
  FILE* file = std::fopen(name.c_str(), "w");
  if (file == nullptr) cannot_write(path_, std::strerror(errno));
  const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !whole) cannot_write(path_, std::strerror(errno));
  commit();
}

}  // namespace edgeshed::sim
