// Connections between the supervisor and the ranks' agents.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_

#include "absl/status/statusor.h"
#include "comm/launch/supervision/agent_message.h"

namespace plait::comm {

// The supervisor's side. Listens on a free port, on the loopback interface if all ranks are on this host, else on all
// interfaces. The destructor closes the listening socket; accepted connections belong to the caller.
class AgentListener {
 public:
  // UNAVAILABLE if no port can be opened.
  static absl::StatusOr<AgentListener> Open(bool this_host_only);
  AgentListener(AgentListener&& other) noexcept;
  AgentListener& operator=(AgentListener&&) = delete;
  ~AgentListener();

  const SupervisorAddress& address() const { return address_; }
  int socket() const { return socket_; }  // readable when Accept has a connection

  // Does not block; -1 if there is no connection.
  int Accept() const;

 private:
  AgentListener() = default;

  int socket_ = -1;
  SupervisorAddress address_;
};

// The agent's side: tries the hosts in turn, up to 3 s per address. Returns a socket, or -1 if none answers.
int ConnectToSupervisor(const SupervisorAddress& address);

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_AGENT_LISTENER_H_
