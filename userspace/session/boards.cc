// Memfds of a session: see boards.h.
#include "userspace/session/boards.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "userspace/kernel/error.h"

namespace edgeshed::session {
namespace {

kernel::Fd make_memfd(const char* name, std::size_t bytes) {
  kernel::Fd fd(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    kernel::fail_errno(errno, "make the memory of a session's board", name);
  }
  return fd;
}

void* map_memfd(const kernel::Fd& fd, const char* name, std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) kernel::fail_errno(errno, "map a session's board", name);
  return memory;
}

void seal(const kernel::Fd& fd, const char* name, int seals) {
  if (fcntl(fd.get(), F_ADD_SEALS, seals) == 0) return;
  kernel::fail_errno(errno, "seal a session's board", name);
}

// A board of another size would fault whoever reads beyond its end.
constexpr int kFixedSize = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

}  // namespace

Boards::Boards(std::uint32_t rows, std::uint32_t rooms)
    : rows_(rows),
      report_bytes_(sizeof(es_report_board) + std::size_t{rows} * sizeof(es_board_connection)),
      plan_bytes_(sizeof(es_plan_board) + std::size_t{rooms} * sizeof(es_board_room)),
      report_fd_(make_memfd("edgeshed-report", report_bytes_)),
      plan_fd_(make_memfd("edgeshed-plan", plan_bytes_)) {
  report_ = static_cast<es_report_board*>(map_memfd(report_fd_, "report board", report_bytes_));
  try {
    plan_ = static_cast<es_plan_board*>(map_memfd(plan_fd_, "plan board", plan_bytes_));
    seal(report_fd_, "report board", kFixedSize);
    // Our mapping was there before and stays writable; no other one will be.
    seal(plan_fd_, "plan board", kFixedSize | F_SEAL_FUTURE_WRITE);
  } catch (...) {
    munmap(report_, report_bytes_);
    if (plan_ != nullptr) munmap(plan_, plan_bytes_);
    throw;
  }
  report_->magic = ES_SESSION_MAGIC;
  report_->version = ES_SESSION_VERSION;
  report_->rows = rows;
  plan_->magic = ES_SESSION_MAGIC;
  plan_->version = ES_SESSION_VERSION;
  plan_->rooms = rooms;
}

void Boards::close_descriptors() {
  report_fd_ = kernel::Fd();
  plan_fd_ = kernel::Fd();
}

Boards::~Boards() {
  munmap(report_, report_bytes_);
  munmap(plan_, plan_bytes_);
}

}  // namespace edgeshed::session
