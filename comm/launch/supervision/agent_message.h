// The protocol between the supervisor of a job and the agents of its ranks.
//
// An agent (rank_agent.h) connects over TCP, sends a hello, then the rank's output as it comes, the steps of the rank's
// start (comm/step_watch.h), and at the end how the rank ended. The supervisor sends single bytes, each the number of a
// signal for the rank. If either side goes away, the other ends its part of the job.
//
// A message is its kind (1 byte), the length of its payload (4 bytes, big-endian) and the payload.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_MESSAGE_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_MESSAGE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::comm {

inline constexpr char kAgentVariable[] = "PLAIT_LAUNCH_AGENT";

// Set for ranks under an agent: "DESCRIPTOR INODE" of a pipe to which comm/step_watch.h writes the step of its start
// that the rank is in.
inline constexpr char kStartStepVariable[] = "PLAIT_LAUNCH_START_STEP";
inline constexpr char kStartOfMpi[] = "MPI_Init_thread";

enum class AgentMessageKind : char {
  kHello = 'h',
  kOutput = 'o',
  kError = 'e',
  kStartStep = 's',
  kEnded = 'x'
};

struct AgentMessage {
  AgentMessageKind kind = AgentMessageKind::kOutput;
  std::string payload;
};

std::string Encode(const AgentMessage& message);

// Decodes a byte stream into messages.
class AgentMessageReader {
 public:
  void Feed(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  std::optional<AgentMessage> Next();
  bool broken() const { return broken_; }  // the bytes are no valid message: close the connection

 private:
  std::string bytes_;
  bool broken_ = false;
};

// Where the supervisor listens; "TOKEN PORT HOST,HOST" in the environment variable kAgentVariable. The agent tries the
// hosts in turn and sends the token, so that no other user's process is taken for a rank.
struct SupervisorAddress {
  std::string token;
  int port = 0;
  std::vector<std::string> hosts;
};
std::string ToText(const SupervisorAddress& address);
std::optional<SupervisorAddress> ParseSupervisorAddress(absl::string_view text);

struct AgentHello {
  std::string token;
  int rank = 0;
  int pid = 0;  // the rank's
  std::string host;
};
std::string ToText(const AgentHello& hello);
std::optional<AgentHello> ParseAgentHello(absl::string_view text);

// How a process ended.
struct ProcessEnd {
  int exit_code = 0;
  int signal = 0;       // that killed it; 0: none
  std::string problem;  // why it could not be started, or that it was lost; empty otherwise

  bool failed() const { return exit_code != 0 || signal != 0 || !problem.empty(); }
  // As in a shell: the exit code, or 128 + signal.
  int code() const { return signal != 0 ? 128 + signal : exit_code; }
};
ProcessEnd EndOfWaitStatus(int status);
std::string Describe(const ProcessEnd& end);  // "exit code 3", "signal 9 (Killed)", or the problem
std::string ToText(const ProcessEnd& end);
std::optional<ProcessEnd> ParseProcessEnd(absl::string_view text);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_MESSAGE_H_
