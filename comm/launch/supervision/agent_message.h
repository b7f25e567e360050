// What the supervisor of a job and the agents of its ranks tell each other.
//
// An agent (rank_agent.h) connects over TCP, says hello, sends what its rank writes as it comes, that it has
// begun to start MPI, and at the end how the rank ended. The supervisor sends signals: bytes, each the number of a signal for the rank. When
// either side goes away, the other ends its part of the job.
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

// Of ranks under an agent, "descriptor inode" of a pipe: comm/step_watch.h writes there which step of its
// start a rank is in.
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

// Takes bytes as they come, gives messages when they are whole.
class AgentMessageReader {
 public:
  void Feed(absl::string_view bytes) { bytes_.append(bytes.data(), bytes.size()); }
  std::optional<AgentMessage> Next();
  bool broken() const { return broken_; }  // what came is no such message: hang up

 private:
  std::string bytes_;
  bool broken_ = false;
};

// Where the supervisor listens. In the environment as "token port host,host": the agent tries the hosts in
// turn and shows the token, so that no other user's process is taken for a rank.
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
  int signal = 0;       // if not 0
  std::string problem;  // it could not be started, or was lost; empty otherwise

  bool failed() const { return exit_code != 0 || signal != 0 || !problem.empty(); }
  // As shells do: 128 + signal.
  int code() const { return signal != 0 ? 128 + signal : exit_code; }
};
ProcessEnd EndOfWaitStatus(int status);
std::string Describe(const ProcessEnd& end);  // "exit code 3", "signal 9 (Killed)", or the problem
std::string ToText(const ProcessEnd& end);
std::optional<ProcessEnd> ParseProcessEnd(absl::string_view text);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_MESSAGE_H_
