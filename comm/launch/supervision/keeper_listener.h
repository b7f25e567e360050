// The supervisor's side of the keepers' connections.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_KEEPER_LISTENER_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_KEEPER_LISTENER_H_

#include "absl/status/statusor.h"
#include "comm/launch/supervision/keeper_message.h"

namespace plait::comm {

// Listens on a free port: of the loopback where all ranks are on this host, else of all its networks. Closes
// what it holds when it goes.
class KeeperListener {
 public:
  static absl::StatusOr<KeeperListener> Open(bool this_host_only);
  KeeperListener(KeeperListener&& other) noexcept;
  KeeperListener& operator=(KeeperListener&&) = delete;
  ~KeeperListener();

  const KeeperAddress& address() const { return address_; }
  int socket() const { return socket_; }  // readable: Accept gives a connection

  // -1 if there is none after all.
  int Accept() const;

 private:
  KeeperListener() = default;

  int socket_ = -1;
  KeeperAddress address_;
};

// The keeper's side: tries the hosts in turn, a few seconds each. -1 if none answers.
int ConnectToSupervisor(const KeeperAddress& address);

std::string NameOfThisHost();

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_KEEPER_LISTENER_H_
