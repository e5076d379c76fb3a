// Bytes as a message on the control socket. Nothing may come out as an exception, refusals are one
// line, and what is accepted is read back from what to_message() writes of it.
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

std::string request_fault(const Request& request) {
  const std::string message = to_message(request);
  if (message.size() > kMessageBytesMax) return "longer than a message: " + message;
  const auto again = parse_request(message);
  if (const auto* refusal = std::get_if<Refusal>(&again)) {
    return "not read back: " + message + ": " + refusal->error;
  }
  const std::string repeated = to_message(std::get<Request>(again));
  return repeated == message ? "" : "read back as another: " + message + " " + repeated;
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
