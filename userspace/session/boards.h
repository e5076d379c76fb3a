// The two boards of a session: memfds, sealed and mapped. Must not read or judge what is on them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "userspace/kernel/fd.h"
#include "userspace/session/wire.h"

namespace edgeshed::session {

/// Both boards of one session. Unmapped when it goes; a server that still has its mapping keeps
/// its own copy alive and hurts nobody.
class Boards {
 public:
  /// rows: connections, 1 to ES_SESSION_ROWS_MAX; rooms: rows of the plan board.
  /// Throws Error: no memory, no descriptors.
  Boards(std::uint32_t rows, std::uint32_t rooms);
  ~Boards();
  Boards(const Boards&) = delete;
  Boards& operator=(const Boards&) = delete;

  [[nodiscard]] es_report_board* report() const { return report_; }
  [[nodiscard]] es_plan_board* plan() const { return plan_; }
  [[nodiscard]] int report_fd() const { return report_fd_.get(); }
  [[nodiscard]] int plan_fd() const { return plan_fd_.get(); }
  [[nodiscard]] std::uint32_t rows() const { return rows_; }
  /// Once the server has its own: a mapping needs no descriptor.
  void close_descriptors();

 private:
  std::uint32_t rows_;
  std::size_t report_bytes_;
  std::size_t plan_bytes_;
  kernel::Fd report_fd_;
  kernel::Fd plan_fd_;
  es_report_board* report_ = nullptr;
  es_plan_board* plan_ = nullptr;
};

}  // namespace edgeshed::session
