#include "comm/launch/supervision/agent_listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/host_name.h"

namespace plait::comm {
namespace {

constexpr int kConnectMilliseconds = 3000;
constexpr int kBacklog = 4096;

std::string RandomToken() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) absl::StrAppendFormat(&token, "%08x", random());
  return token;
}

// Addresses first: names of compute nodes do not always resolve.
std::vector<std::string> NamesOfThisHost() {
  std::vector<std::string> names;
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) == 0) {
    for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
      if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
      if ((each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) continue;
      char text[INET_ADDRSTRLEN];
      const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
      if (inet_ntop(AF_INET, &address->sin_addr, text, sizeof text) != nullptr) names.emplace_back(text);
    }
    freeifaddrs(interfaces);
  }
  names.push_back(base::HostName());
  names.emplace_back("127.0.0.1");  // ranks on this host, whatever its firewall says
  return names;
}

absl::Status SystemError(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen for the ranks' agents: ", what, ": ", std::strerror(errno)));
}

bool WaitUntilConnected(int socket) {
  pollfd wait{.fd = socket, .events = POLLOUT, .revents = 0};
  if (poll(&wait, 1, kConnectMilliseconds) != 1) return false;
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0;
}

int ConnectTo(const addrinfo& where) {
  const int socket = ::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (socket < 0) return -1;
  const bool begun = connect(socket, where.ai_addr, where.ai_addrlen) == 0 || errno == EINPROGRESS;
  if (begun && WaitUntilConnected(socket)) {
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) & ~O_NONBLOCK);
    return socket;
  }
  close(socket);
  return -1;
}

}  // namespace

absl::StatusOr<AgentListener> AgentListener::Open(bool this_host_only) {
  AgentListener listener;
  listener.socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener.socket_ < 0) return SystemError("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(this_host_only ? INADDR_LOOPBACK : INADDR_ANY);
  if (bind(listener.socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
    return SystemError("bind");
  if (listen(listener.socket_, kBacklog) != 0) return SystemError("listen");
  socklen_t length = sizeof address;
  if (getsockname(listener.socket_, reinterpret_cast<sockaddr*>(&address), &length) != 0) {
    return SystemError("getsockname");
  }
  listener.address_ = {.token = RandomToken(),
                       .port = ntohs(address.sin_port),
                       .hosts = this_host_only ? std::vector<std::string>{"127.0.0.1"} : NamesOfThisHost()};
  return listener;
}

AgentListener::AgentListener(AgentListener&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), address_(std::move(other.address_)) {}

AgentListener::~AgentListener() {
  if (socket_ >= 0) close(socket_);
}

int AgentListener::Accept() const {
  const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection < 0) return -1;
  const int on = 1;
  setsockopt(connection, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return connection;
}

int ConnectToSupervisor(const SupervisorAddress& address) {
  for (const std::string& host : address.hosts) {
    addrinfo wanted{};
    wanted.ai_family = AF_INET;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    if (getaddrinfo(host.c_str(), absl::StrCat(address.port).c_str(), &wanted, &found) != 0) continue;
    int connection = -1;
    for (const addrinfo* each = found; each != nullptr && connection < 0; each = each->ai_next) {
      connection = ConnectTo(*each);
    }
    freeaddrinfo(found);
    if (connection >= 0) return connection;
  }
  return -1;
}

}  // namespace plait::comm
