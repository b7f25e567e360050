#include "comm/launch/supervision/agent_message.h"

#include <sys/wait.h>

#include <cstdint>
#include <cstring>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace plait::comm {
namespace {

constexpr std::size_t kHeaderBytes = 5;
constexpr std::uint32_t kLongestPayload = 1 << 20;

}  // namespace

std::string Encode(const AgentMessage& message) {
  std::string bytes(1, static_cast<char>(message.kind));
  const auto length = static_cast<std::uint32_t>(message.payload.size());
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>((length >> shift) & 0xff);
  return bytes + message.payload;
}

std::optional<AgentMessage> AgentMessageReader::Next() {
  if (broken_ || bytes_.size() < kHeaderBytes) return std::nullopt;
  std::uint32_t length = 0;
  for (std::size_t i = 1; i < kHeaderBytes; ++i) length = length << 8 | static_cast<unsigned char>(bytes_[i]);
  broken_ = length > kLongestPayload || std::strchr("hoesx", bytes_[0]) == nullptr || bytes_[0] == '\0';
  if (broken_ || bytes_.size() < kHeaderBytes + length) return std::nullopt;
  AgentMessage message{.kind = static_cast<AgentMessageKind>(bytes_[0]),
                       .payload = bytes_.substr(kHeaderBytes, length)};
  bytes_.erase(0, kHeaderBytes + length);
  return message;
}

std::string ToText(const SupervisorAddress& address) {
  return absl::StrCat(address.token, " ", address.port, " ", absl::StrJoin(address.hosts, ","));
}

std::optional<SupervisorAddress> ParseSupervisorAddress(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ', absl::SkipEmpty());
  SupervisorAddress address;
  if (words.size() != 3 || !absl::SimpleAtoi(words[1], &address.port)) return std::nullopt;
  address.token = std::string(words[0]);
  address.hosts = absl::StrSplit(words[2], ',', absl::SkipEmpty());
  return address;
}

std::string ToText(const AgentHello& hello) {
  return absl::StrCat(hello.token, " ", hello.rank, " ", hello.pid, " ", hello.host);
}

std::optional<AgentHello> ParseAgentHello(absl::string_view text) {
  const std::vector<absl::string_view> words = absl::StrSplit(text, ' ');
  AgentHello hello;
  if (words.size() != 4 || !absl::SimpleAtoi(words[1], &hello.rank)) return std::nullopt;
  if (hello.rank < 0 || !absl::SimpleAtoi(words[2], &hello.pid)) return std::nullopt;
  hello.token = std::string(words[0]);
  hello.host = std::string(words[3]);
  return hello;
}

ProcessEnd EndOfWaitStatus(int status) {
  if (WIFSIGNALED(status)) return {.exit_code = 0, .signal = WTERMSIG(status), .problem = ""};
  return {.exit_code = WEXITSTATUS(status), .signal = 0, .problem = ""};
}

std::string Describe(const ProcessEnd& end) {
  if (!end.problem.empty()) return end.problem;
  if (end.signal != 0) return absl::StrCat("signal ", end.signal, " (", strsignal(end.signal), ")");
  return absl::StrCat("exit code ", end.exit_code);
}

std::string ToText(const ProcessEnd& end) {
  return absl::StrCat(end.exit_code, " ", end.signal, " ", end.problem);
}

std::optional<ProcessEnd> ParseProcessEnd(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, absl::MaxSplits(' ', 2));
  ProcessEnd end;
  if (words.size() != 3 || !absl::SimpleAtoi(words[0], &end.exit_code)) return std::nullopt;
  if (!absl::SimpleAtoi(words[1], &end.signal)) return std::nullopt;
  end.problem = words[2];
  return end;
}

}  // namespace plait::comm
