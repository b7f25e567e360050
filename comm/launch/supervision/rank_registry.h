// The ranks of a job as reported by their agents: started, ended, first to fail.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RANK_REGISTRY_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RANK_REGISTRY_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch/supervision/agent_listener.h"
#include "comm/launch/supervision/agent_message.h"
#include "comm/launch/supervision/job_output.h"

namespace plait::comm {

struct RankFailure {
  int rank = 0;
  std::string host;
  int pid = 0;
  ProcessEnd end;
  double seconds = 0;  // time of the report, on NowSeconds()'s clock
};

class RankRegistry {
 public:
  RankRegistry(std::string token, JobOutput* output) : token_(std::move(token)), output_(output) {}
  RankRegistry(const RankRegistry&) = delete;
  RankRegistry& operator=(const RankRegistry&) = delete;
  ~RankRegistry();

  // Takes ownership of an accepted connection; ignores -1.
  void Add(int connection);
  // Handles the messages that have arrived; closes the connection at its end or on invalid messages.
  void Read(int connection);
  // Sends a signal to all running ranks. False if no agent received it.
  bool Signal(int signal);

  const auto& connections() const { return connections_; }
  bool empty() const { return connections_.empty(); }
  bool started() const { return started_; }  // an agent has said hello
  int ended() const { return ended_; }       // number of ranks whose agents reported their end
  // Ranks that had not called MPI_Init, if the first rank to fail was waiting in it; else empty.
  std::vector<AgentHello> NotInMpi() const;
  const std::optional<RankFailure>& first_failure() const { return first_failure_; }

 private:
  struct Connection {
    AgentMessageReader reader;
    std::optional<AgentHello> hello = {};
    bool ended = false;
  };

  bool Handle(Connection& connection, const AgentMessage& message);
  void Ended(const Connection& connection, const ProcessEnd& end);
  void Drop(int connection);

  std::string token_;
  JobOutput* output_;
  std::map<int, Connection> connections_;
  std::map<int, AgentHello> ranks_;         // all that have connected
  std::map<int, std::string> start_steps_;  // the latest, by rank
  bool started_ = false;
  int ended_ = 0;
  std::optional<RankFailure> first_failure_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RANK_REGISTRY_H_
