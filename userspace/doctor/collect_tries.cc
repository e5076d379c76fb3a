// What no file says for certain is tried: a program, an extension of one, a ring.
#include <linux/bpf.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <liburing.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "userspace/doctor/collect.h"
#include "userspace/kernel/fd.h"
#include "userspace/kernel/library_log.h"

namespace edgeshed::doctor {
namespace {

constexpr unsigned kRingEntries = 8;

constexpr bpf_insn instruction(__u8 code, __u8 source, __s32 immediate) {
  return {.code = code, .dst_reg = 0, .src_reg = source, .off = 0, .imm = immediate};
}
constexpr bpf_insn kPass = instruction(BPF_ALU64 | BPF_MOV | BPF_K, 0, XDP_PASS);
constexpr bpf_insn kReturn = instruction(BPF_JMP | BPF_EXIT, 0, 0);
constexpr bpf_insn kCallNext = instruction(BPF_JMP | BPF_CALL, BPF_PSEUDO_CALL, 1);

/// A refusal for want of privilege says nothing about the kernel.
Tried refused(int error) {
  if ((error == EPERM || error == EACCES) && geteuid() != 0) return {};
  return {true, error};
}

struct BtfCloser {
  void operator()(btf* types) const { btf__free(types); }
};

/// Types of `int main(struct xdp_md*)` and the global function `int other(struct xdp_md*)`.
struct Types {
  std::unique_ptr<btf, BtfCloser> all{btf__new_empty()};
  int main = 0;
  int other = 0;

  /// 0, or an errno.
  int build() {
    const int number = btf__add_int(all.get(), "int", 4, BTF_INT_SIGNED);
    const int context = btf__add_struct(all.get(), "xdp_md", sizeof(__u32));
    btf__add_field(all.get(), "data", number, 0, 0);
    const int pointer = btf__add_ptr(all.get(), context);
    const int proto = btf__add_func_proto(all.get(), number);
    btf__add_func_param(all.get(), "context", pointer);
    main = btf__add_func(all.get(), "main", BTF_FUNC_GLOBAL, proto);
    other = btf__add_func(all.get(), "other", BTF_FUNC_GLOBAL, proto);
    if (other < 0) return -other;
    return -btf__load_into_kernel(all.get());
  }
};

int load(bpf_prog_type type, const bpf_insn* code, std::size_t instructions,
         const bpf_func_info* functions, unsigned function_count, const Types& types,
         bpf_prog_load_opts& options) {
  options.prog_btf_fd = btf__fd(types.all.get());
  options.func_info = functions;
  options.func_info_cnt = function_count;
  options.func_info_rec_size = sizeof(bpf_func_info);
  return bpf_prog_load(type, "es_probe", "GPL", code, instructions, &options);
}

}  // namespace

Tried try_bpf(std::optional<bool>& jited) {
  const std::array<bpf_insn, 2> code = {kPass, kReturn};
  const kernel::LibraryLog log;
  const kernel::Fd program(
      bpf_prog_load(BPF_PROG_TYPE_XDP, "es_probe", "GPL", code.data(), code.size(), nullptr));
  if (!program) return refused(errno);
  bpf_prog_info info{};
  __u32 bytes = sizeof(info);
  if (bpf_obj_get_info_by_fd(program.get(), &info, &bytes) == 0) jited = info.jited_prog_len != 0;
  return {true, 0};
}

Tried try_freplace() {
  const kernel::LibraryLog log;
  Types types;
  if (const int error = types.build(); error != 0) return refused(error);

  const std::array<bpf_insn, 4> base_code = {kCallNext, kReturn, kPass, kReturn};
  const std::array<bpf_func_info, 2> base_functions = {
      bpf_func_info{0, static_cast<__u32>(types.main)},
      bpf_func_info{2, static_cast<__u32>(types.other)}};
  DECLARE_LIBBPF_OPTS(bpf_prog_load_opts, base_options);
  const kernel::Fd base(load(BPF_PROG_TYPE_XDP, base_code.data(), base_code.size(),
                             base_functions.data(), base_functions.size(), types, base_options));
  if (!base) return refused(errno);

  const std::array<bpf_insn, 2> code = {kPass, kReturn};
  const bpf_func_info function{0, static_cast<__u32>(types.other)};
  DECLARE_LIBBPF_OPTS(bpf_prog_load_opts, options);
  options.attach_prog_fd = static_cast<__u32>(base.get());
  options.attach_btf_id = static_cast<__u32>(types.other);
  const kernel::Fd extension(
      load(BPF_PROG_TYPE_EXT, code.data(), code.size(), &function, 1, types, options));
  if (!extension) return refused(errno);

  // Without a target: the one that it was loaded for.
  const kernel::Fd link(
      bpf_link_create(extension.get(), 0, static_cast<bpf_attach_type>(0), nullptr));
  if (!link) return refused(errno);
  return {true, 0};
}

Tried try_io_uring() {
  io_uring ring{};
  io_uring_params params{};
  params.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
  const int error = -io_uring_queue_init_params(kRingEntries, &ring, &params);
  if (error == 0) io_uring_queue_exit(&ring);
  return {true, error};
}

}  // namespace edgeshed::doctor
