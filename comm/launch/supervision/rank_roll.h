// The ranks of a job as their keepers report them: who is there, who ended, who failed first.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_RANK_ROLL_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_RANK_ROLL_H_

#include <map>
#include <optional>
#include <string>

#include "comm/launch/supervision/job_output.h"
#include "comm/launch/supervision/keeper_listener.h"
#include "comm/launch/supervision/keeper_message.h"

namespace plait::comm {

struct RankFailure {
  int rank = 0;
  std::string host;
  int pid = 0;
  ProcessEnd end;
  double seconds = 0;  // NowSeconds
};

class RankRoll {
 public:
  RankRoll(std::string token, JobOutput* output) : token_(std::move(token)), output_(output) {}
  RankRoll(const RankRoll&) = delete;
  RankRoll& operator=(const RankRoll&) = delete;
  ~RankRoll();

  void Add(int connection);
  // Reads what has come; drops the connection at its end.
  void Read(int connection);
  // False if no keeper is there to take it.
  bool Signal(int signal);

  const auto& connections() const { return connections_; }
  bool empty() const { return connections_.empty(); }
  bool started() const { return started_; }  // a keeper has said hello
  int ended() const { return ended_; }       // ranks whose keepers said how they ended
  const std::optional<RankFailure>& first_failure() const { return first_failure_; }

 private:
  struct Connection {
    KeeperMessageReader reader;
    std::optional<KeeperHello> hello = {};
    bool ended = false;
  };

  bool Handle(Connection& connection, const KeeperMessage& message);
  void Ended(const Connection& connection, const ProcessEnd& end);
  void Drop(int connection);

  std::string token_;
  JobOutput* output_;
  std::map<int, Connection> connections_;
  bool started_ = false;
  int ended_ = 0;
  std::optional<RankFailure> first_failure_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_RANK_ROLL_H_
