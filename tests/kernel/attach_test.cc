// Attaching to a veth pair in a namespace of the test's own.
#include "userspace/kernel/attach.h"

#include <linux/bpf.h>
#include <linux/capability.h>
#include <linux/if_link.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xdp/libxdp.h>

#include <array>
#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/kernel/kernel_fixture.h"
#include "userspace/kernel/link_stack.h"
#include "userspace/kernel/tc_hook.h"
#include "userspace/kernel/xdp_hook.h"

namespace edgeshed::kernel::test {
namespace {

class AttachTest : public NetnsTest {
 protected:
  void SetUp() override {
    NetnsTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pin_object(Object::load(small_object()), pin_dir_);
  }
  /// A program of somebody else that passes everything. Not by iproute2, which leaves folders in
  /// bpffs behind.
  static Fd foreign(bpf_prog_type type) {
    const std::array<bpf_insn, 2> pass = {
        bpf_insn{
            .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 2},
        bpf_insn{.code = BPF_JMP | BPF_EXIT, .dst_reg = 0, .src_reg = 0, .off = 0, .imm = 0}};
    return Fd(bpf_prog_load(type, "somebody", "GPL", pass.data(), pass.size(), nullptr));
  }
};

TEST_F(AttachTest, AttachesListsAndDetaches) {
  const Attachment done = attach(attach_options());
  EXPECT_TRUE(done.xdp == XdpState::kNative || done.xdp == XdpState::kDispatcher);
  EXPECT_FALSE(done.xdp_generic);
  EXPECT_NE(done.xdp_program, 0u);
  EXPECT_NE(done.tc_program, 0u);
  if (done.xdp == XdpState::kNative) {
    EXPECT_NE(done.fallback_reason.find("dispatcher"), std::string::npos) << done.fallback_reason;
  }
  RecordProperty("fallback_reason", done.fallback_reason);

  const auto found = attachments(pin_dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].dev, "es0");
  EXPECT_EQ(found[0].faces, Faces::kClients);
  EXPECT_EQ(found[0].xdp, done.xdp);
  EXPECT_EQ(found[0].xdp_program, done.xdp_program);
  EXPECT_EQ(found[0].tc_program, done.tc_program);
  EXPECT_TRUE(found[0].of_pins);

  EXPECT_TRUE(detach("es0", pin_dir_));
  EXPECT_FALSE(detach("es0", pin_dir_));
  EXPECT_TRUE(attachments(pin_dir_).empty());
  EXPECT_EQ(output("tc qdisc show dev es0 clsact"), "") << "nobody else used it";
}

TEST_F(AttachTest, AttachingAgainReplacesInPlaceAndTurnsFaces) {
  attach(attach_options());
  const Attachment turned = attach(attach_options(Faces::kServers));
  const auto found = attachments(pin_dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].faces, Faces::kServers);
  EXPECT_EQ(found[0].xdp_program, turned.xdp_program);
  EXPECT_EQ(found[0].tc_program, turned.tc_program);
  EXPECT_NE(output("tc filter show dev es0 egress").find("es_tc_srv"), std::string::npos);
}

TEST_F(AttachTest, NewPinsTakeOverAnAttachedDevice) {
  const Attachment first = attach(attach_options());
  pin_object(Object::load(small_object()), pin_dir_);
  auto found = attachments(pin_dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_FALSE(found[0].of_pins && found[0].xdp != XdpState::kDispatcher);
  const Attachment second = attach(attach_options());
  EXPECT_NE(second.xdp_program, first.xdp_program);
  found = attachments(pin_dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].of_pins);
}

TEST_F(AttachTest, GenericOnRequestWithAReason) {
  AttachOptions options = attach_options();
  options.mode = XdpRequest::kGeneric;
  const Attachment done = attach(options);
  EXPECT_TRUE(done.xdp_generic);
  EXPECT_NE(done.fallback_reason, "");
  const auto found = attachments(pin_dir_);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_TRUE(found[0].xdp_generic);
  if (done.xdp == XdpState::kGeneric) {
    options.mode = XdpRequest::kNative;
    int exit_code = 0;
    EXPECT_NE(error_of([&] { attach(options); }, &exit_code), "");
    EXPECT_EQ(exit_code, kExitRefused);
  }
  EXPECT_TRUE(detach("es0", pin_dir_));
}

TEST_F(AttachTest, DeviceWithoutNativeModeFallsBackToGeneric) {
  ASSERT_EQ(run("ip link add esd type bridge && ip link set esd up"), 0);
  AttachOptions options = attach_options();
  options.dev = "esd";
  const Attachment done = attach(options);
  EXPECT_TRUE(done.xdp_generic);
  EXPECT_NE(done.fallback_reason.find("native"), std::string::npos) << done.fallback_reason;
  RecordProperty("fallback_reason", done.fallback_reason);
  EXPECT_TRUE(detach("esd", pin_dir_));
  options.mode = XdpRequest::kNative;
  EXPECT_NE(error_of([&] { attach(options); }), "");
  EXPECT_TRUE(attachments(pin_dir_).empty());
}

TEST_F(AttachTest, ForeignProgramIsRefusedAndUntouched) {
  const Fd program = foreign(BPF_PROG_TYPE_XDP);
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  ASSERT_EQ(bpf_xdp_attach(es0, program.get(), 0, nullptr), 0);
  const std::string before = output("ip -j link show dev es0");
  int exit_code = 0;
  const std::string line = error_of([&] { attach(attach_options()); }, &exit_code);
  EXPECT_NE(line.find("es0"), std::string::npos) << line;
  EXPECT_NE(line.find("somebody"), std::string::npos) << "it is named: " << line;
  EXPECT_EQ(exit_code, kExitRefused);
  EXPECT_EQ(output("ip -j link show dev es0"), before);
  EXPECT_EQ(output("tc qdisc show dev es0 clsact"), "");
  EXPECT_FALSE(detach("es0", pin_dir_));
  EXPECT_EQ(output("ip -j link show dev es0"), before);
}

TEST_F(AttachTest, FiltersOfOthersSurvive) {
  ASSERT_EQ(run("tc qdisc add dev es0 clsact"), 0);
  const Fd program = foreign(BPF_PROG_TYPE_SCHED_CLS);
  DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook);
  hook.ifindex = static_cast<int>(if_nametoindex("es0"));
  hook.attach_point = BPF_TC_INGRESS;
  DECLARE_LIBBPF_OPTS(bpf_tc_opts, place);
  place.prog_fd = program.get();
  ASSERT_EQ(bpf_tc_attach(&hook, &place), 0);
  attach(attach_options());
  EXPECT_TRUE(detach("es0", pin_dir_));
  EXPECT_NE(output("tc qdisc show dev es0 clsact"), "");
  EXPECT_NE(output("tc filter show dev es0 ingress"), "");
  EXPECT_EQ(output("tc filter show dev es0 egress"), "");
}

TEST_F(AttachTest, LoopbackAndMissingDevicesAreRefused) {
  AttachOptions options = attach_options();
  options.dev = "lo";
  int exit_code = 0;
  EXPECT_NE(error_of([&] { attach(options); }, &exit_code).find("loopback"), std::string::npos);
  EXPECT_EQ(exit_code, kExitRefused);
  options.dev = "nope0";
  EXPECT_NE(error_of([&] { attach(options); }).find("nope0"), std::string::npos);
  EXPECT_NE(error_of([&] { detach("nope0", pin_dir_); }), "");
}

TEST_F(AttachTest, WithoutPinsNothingHappens) {
  remove_pins(pin_dir_);
  EXPECT_NE(error_of([&] { attach(attach_options()); }).find("edgeshed attach"), std::string::npos);
  EXPECT_TRUE(attachments(pin_dir_).empty());
  EXPECT_EQ(output("tc qdisc show dev es0 clsact"), "");
}

TEST_F(AttachTest, FailureOfTcTakesTheNewXdpProgramOffAgain) {
  // Somebody else's filter at our handle and priority.
  ASSERT_EQ(run("tc qdisc add dev es0 clsact"), 0);
  const Fd program = foreign(BPF_PROG_TYPE_SCHED_CLS);
  DECLARE_LIBBPF_OPTS(bpf_tc_hook, hook);
  hook.ifindex = static_cast<int>(if_nametoindex("es0"));
  hook.attach_point = BPF_TC_EGRESS;
  DECLARE_LIBBPF_OPTS(bpf_tc_opts, place);
  place.prog_fd = program.get();
  place.handle = kTcHandle;
  place.priority = kTcPriority;
  ASSERT_EQ(bpf_tc_attach(&hook, &place), 0);
  int exit_code = 0;
  EXPECT_NE(error_of([&] { attach(attach_options()); }, &exit_code), "");
  EXPECT_EQ(exit_code, kExitRefused);
  EXPECT_TRUE(attachments(pin_dir_).empty());
  EXPECT_FALSE(detach("es0", pin_dir_));
  EXPECT_NE(output("tc filter show dev es0 egress"), "");
}

TEST_F(AttachTest, FilterOfAnotherEdgeShedIsRefusedAndUntouched) {
  attach(attach_options());
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  const ProgramNames own(pin_dir_);
  EXPECT_TRUE(query_tc(es0, own).ours);
  EXPECT_TRUE(query_tc(es0, own).other_pins.empty());
  EXPECT_TRUE(detach_xdp(es0, query_xdp(es0, own), own)) << "only the filter is left";

  AttachOptions other = attach_options();
  other.pin_dir += "_b";
  const ProgramNames others(other.pin_dir);
  const TcStanding standing = query_tc(es0, others);
  EXPECT_FALSE(standing.ours);
  EXPECT_EQ(standing.other_pins, pin_dir_);
  const std::string before = output("tc filter show dev es0 egress");
  int exit_code = 0;
  const std::string line = error_of([&] { attach(other); }, &exit_code);
  EXPECT_NE(line.find("`edgeshed --pin-dir " + pin_dir_.string() + " detach --dev es0`"),
            std::string::npos)
      << line;
  EXPECT_EQ(exit_code, kExitRefused);
  EXPECT_FALSE(detach("es0", other.pin_dir));
  EXPECT_EQ(output("tc filter show dev es0 egress"), before);
}

TEST_F(AttachTest, WhoMayNotLookProgramsUpIsTold) {
  attach(attach_options());
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  TcStanding tc;
  XdpStanding xdp;
  // Capabilities are a thread's own, and go with it.
  std::thread([&] {
    __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
    std::array<__user_cap_data_struct, 2> none{};
    ASSERT_EQ(syscall(SYS_capset, &header, none.data()), 0);
    const ProgramNames names(pin_dir_.string() + "_b");
    tc = query_tc(es0, names);
    xdp = query_xdp(es0, names);
  }).join();
  EXPECT_TRUE(tc.hidden);
  EXPECT_TRUE(xdp.hidden);
  EXPECT_FALSE(tc.ours);
  EXPECT_NE(tc.program, 0u);
  const ProgramNames own(pin_dir_);
  EXPECT_FALSE(query_tc(es0, own).hidden);
  EXPECT_FALSE(query_xdp(es0, own).hidden);
}

TEST_F(AttachTest, XdpAboveIsFound) {
  if (run("ip link add link es0 name es_mv type macvlan && ip link set es_mv up") != 0) {
    GTEST_SKIP() << "this kernel has no macvlan";
  }
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  const ProgramNames names(pin_dir_);
  EXPECT_EQ(link_stack(es0).above, std::vector<std::string>{"es_mv"});
  EXPECT_EQ(xdp_above({"es_mv"}, names), "");
  const Fd program = foreign(BPF_PROG_TYPE_XDP);
  const int above = static_cast<int>(if_nametoindex("es_mv"));
  ASSERT_EQ(bpf_xdp_attach(above, program.get(), XDP_FLAGS_SKB_MODE, nullptr), 0);
  EXPECT_EQ(xdp_above({"es1", "es_mv"}, names), "es_mv");
  int exit_code = 0;
  EXPECT_NE(error_of([&] { attach(attach_options()); }, &exit_code).find("es_mv"),
            std::string::npos);
  EXPECT_EQ(exit_code, kExitRefused);
}

TEST_F(AttachTest, ReplacingNeverLeavesTheDeviceBare) {
  attach(attach_options());
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  std::atomic<bool> stop{false};
  std::atomic<int> bare{0}, looked{0};
  // A thread shares the namespace, so it sees the same device.
  std::thread watcher([&] {
    while (!stop) {
      __u32 id = 0;
      bpf_xdp_query_id(es0, 0, &id);
      bare += id == 0;
      ++looked;
    }
  });
  for (int i = 0; i < 20; ++i)
    attach(attach_options(i % 2 == 0 ? Faces::kServers : Faces::kClients));
  stop = true;
  watcher.join();
  EXPECT_EQ(bare, 0) << "of " << looked;
}

/// Programs of somebody else in the dispatcher of a device; -1: there is no dispatcher.
int others_in_dispatcher(int ifindex) {
  xdp_multiprog* programs = xdp_multiprog__get_from_ifindex(ifindex);
  if (libxdp_get_error(programs) != 0) return -1;
  int others = xdp_multiprog__is_legacy(programs) ? -1 : 0;
  xdp_program* program = nullptr;
  while (others >= 0 && (program = xdp_multiprog__next_prog(program, programs)) != nullptr) {
    others += std::string_view(xdp_program__name(program)) == "somebody_xdp";
  }
  xdp_multiprog__close(programs);
  return others;
}

TEST_F(AttachTest, SharesTheDispatcherWithOthers) {
  if (attach(attach_options()).xdp != XdpState::kDispatcher) {
    GTEST_SKIP() << "this kernel has no freplace";
  }
  detach("es0", pin_dir_);
  const int es0 = static_cast<int>(if_nametoindex("es0"));
  xdp_program* somebody = xdp_program__open_file(EDGESHED_SOMEBODY_PATH, "xdp.frags", nullptr);
  ASSERT_EQ(libxdp_get_error(somebody), 0);
  ASSERT_EQ(xdp_program__attach(somebody, es0, XDP_MODE_NATIVE, 0), 0);

  for (const Faces faces : {Faces::kClients, Faces::kServers, Faces::kServers}) {
    EXPECT_EQ(attach(attach_options(faces)).xdp, XdpState::kDispatcher);
    EXPECT_EQ(others_in_dispatcher(es0), 1);
    const auto found = attachments(pin_dir_);
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].faces, faces);
  }
  EXPECT_TRUE(detach("es0", pin_dir_));
  EXPECT_EQ(others_in_dispatcher(es0), 1);
  EXPECT_TRUE(attachments(pin_dir_).empty());
  EXPECT_EQ(xdp_program__detach(somebody, es0, XDP_MODE_NATIVE, 0), 0);
  xdp_program__close(somebody);
}

TEST_F(AttachTest, DetachAllTakesEveryDevice) {
  attach(attach_options());
  AttachOptions other = attach_options(Faces::kServers);
  other.dev = "es1";
  attach(other);
  EXPECT_EQ(attachments(pin_dir_).size(), 2u);
  EXPECT_EQ(detach_all(pin_dir_).size(), 2u);
  EXPECT_TRUE(attachments(pin_dir_).empty());
}

}  // namespace
}  // namespace edgeshed::kernel::test
