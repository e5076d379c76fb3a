// Bytes as a message on the control socket. Nothing may come out as an exception, refusals are one
// line, and what is accepted is read back from what to_message() writes of it.
#include <algorithm>
#include <boost/json.hpp>
#include <cmath>
#include <exception>

#include "tests/fuzz/target.h"
#include "userspace/daemon/protocol.h"

namespace edgeshed::test {
namespace {

using namespace daemon;

std::string refusal_fault(const Refusal& refusal) {
  if (refusal.error.empty()) return "a refusal without a word";
  // Whatever the sender's bytes were: the answer is one message on one line.
  const std::string answer = error_answer(refusal.error);
  if (answer.find('\n') != std::string::npos) return "an answer of several lines: " + answer;
  if (answer.size() > kMessageBytesMax) return "an answer longer than a message";
  return "";
}

/// Numbers with a fraction may differ in their last places: Boost.JSON 1.81 rounds what it reads of
/// 16 digits and more several times, and has no other way yet (later ones do).
bool same_number(double one, double other) {
  constexpr double kLastPlaces = 1e-15, kSubnormal = 1e-300;
  const double larger = std::max(std::abs(one), std::abs(other));
  return std::abs(one - other) <= kLastPlaces * larger + kSubnormal;
}

bool same_members(const boost::json::object& one, const boost::json::object& other) {
  return one.size() == other.size() && std::ranges::all_of(one, [&](const auto& member) {
           const boost::json::value* found = other.if_contains(member.key());
           if (found == nullptr) return false;
           if (!member.value().is_double() || !found->is_double()) return member.value() == *found;
           return same_number(member.value().get_double(), found->get_double());
         });
}

std::string request_fault(const Request& request) {
  const std::string message = to_message(request);
  if (message.size() > kMessageBytesMax) return "longer than a message: " + message;
  const auto again = parse_request(message);
  if (const auto* refusal = std::get_if<Refusal>(&again)) {
    return "not read back: " + message + ": " + refusal->error;
  }
  const Request& repeated = std::get<Request>(again);
  if (same_members(to_object(request), to_object(repeated))) return "";
  return "read back as another: " + message + " " + to_message(repeated);
}

}  // namespace

const char* const kTargetName = "protocol";

std::string run_target(std::span<const uint8_t> bytes) {
  try {
    const auto parsed = parse_request({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto* refusal = std::get_if<Refusal>(&parsed);
    return refusal != nullptr ? refusal_fault(*refusal) : request_fault(std::get<Request>(parsed));
  } catch (const std::exception& thrown) {
    return std::string("thrown: ") + thrown.what();
  }
}

}  // namespace edgeshed::test
