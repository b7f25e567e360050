// The supervisor's side of the agents' connections.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_

#include "absl/status/statusor.h"
#include "comm/launch/supervision/agent_message.h"

namespace plait::comm {

// Listens on a free port: of the loopback where all ranks are on this host, else of all its networks. Closes
// what it holds when it goes.
class AgentListener {
 public:
  static absl::StatusOr<AgentListener> Open(bool this_host_only);
  AgentListener(AgentListener&& other) noexcept;
  AgentListener& operator=(AgentListener&&) = delete;
  ~AgentListener();

  const SupervisorAddress& address() const { return address_; }
  int socket() const { return socket_; }  // readable: Accept gives a connection

  // -1 if there is none after all.
  int Accept() const;

 private:
  AgentListener() = default;

  int socket_ = -1;
  SupervisorAddress address_;
};

// The agent's side: tries the hosts in turn, a few seconds each. -1 if none answers.
int ConnectToSupervisor(const SupervisorAddress& address);

std::string NameOfThisHost();

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_
