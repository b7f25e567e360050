#include "comm/watchdog/rendezvous.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file_descriptor.h"
#include "base/host_name.h"
#include "comm/byte_stream.h"
#include "comm/flight_recorder.h"
#include "comm/gathered_text.h"

namespace plait::comm {
namespace {

constexpr double kLongestWait = 1e6;  // in milliseconds it is an int

// What rank 0 broadcasts.
struct Invitation {
  std::uint64_t token = 0;  // identifies connections from ranks of this job
  std::string host;
  std::string node;  // ThisNode()
  int pid = 0;
  std::uint16_t port = 0;  // 0: rank 0 could not listen
  std::vector<std::uint32_t> addresses;
};

// Where ranks reach each other on the loopback interface. Machines may have the same name, and containers of one machine
// have networks of their own.
std::string ThisNode() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::error_code unknown;
  const std::string network = std::filesystem::read_symlink("/proc/self/ns/net", unknown).string();
  return absl::StrCat(base::HostName(), " ", boot, " ", network);
}

std::vector<std::uint32_t> OwnAddresses() {
  std::vector<std::uint32_t> addresses;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
    const bool usable =
        i->ifa_addr != nullptr && i->ifa_addr->sa_family == AF_INET && (i->ifa_flags & IFF_UP);
    if (!usable || (i->ifa_flags & IFF_LOOPBACK)) continue;
    addresses.push_back(reinterpret_cast<const sockaddr_in*>(i->ifa_addr)->sin_addr.s_addr);
  }
  freeifaddrs(list);
  return addresses;
}

sockaddr_in SocketAddress(std::uint32_t address, std::uint16_t port) {
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = address;
  where.sin_port = htons(port);
  return where;
}

// A listening socket, on the loopback interface only if the whole job is on one node; -1 on failure.
int Listen(bool one_node, int backlog, std::uint16_t* port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where = SocketAddress(htonl(one_node ? INADDR_LOOPBACK : INADDR_ANY), 0);
  socklen_t length = sizeof where;
  const bool listening = listener >= 0 && bind(listener, reinterpret_cast<sockaddr*>(&where), length) == 0 &&
                         listen(listener, backlog) == 0 &&
                         getsockname(listener, reinterpret_cast<sockaddr*>(&where), &length) == 0;
  if (listening) *port = ntohs(where.sin_port);
  if (!listening && listener >= 0) close(listener);
  return listening ? listener : -1;
}

std::string Encode(const Invitation& invitation) {
  ByteWriter to;
  to.Write(invitation.token);
  to.WriteText(invitation.host);
  to.WriteText(invitation.node);
  to.Write(invitation.pid);
  to.Write(invitation.port);
  to.WriteNumbers(invitation.addresses);
  return to.Take();
}

Invitation DecodeInvitation(absl::string_view bytes) {
  ByteReader from(bytes);
  Invitation invitation;
  invitation.token = from.Read<std::uint64_t>();
  invitation.host = from.ReadText();
  invitation.node = from.ReadText();
  invitation.pid = from.Read<int>();
  invitation.port = from.Read<std::uint16_t>();
  invitation.addresses = from.ReadNumbers<std::uint32_t>();
  return invitation;
}

// The first rank on another node than rank 0; size() if there is none.
int FirstRankElsewhere(const Communicator& world) {
  const std::string node = ThisNode();
  std::int32_t first[1] = {BroadcastText(world, node) == node ? world.size() : world.rank()};
  world.AllReduce(BufferOf(absl::MakeSpan(first)), ReduceOp::kMin);
  return first[0];
}

// A connected socket, or -1.
int Connect(std::uint32_t address, std::uint16_t port, double timeout_seconds) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (connection < 0) return -1;
  const sockaddr_in where = SocketAddress(address, port);
  int error = connect(connection, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    pollfd wait = {connection, POLLOUT, 0};
    socklen_t length = sizeof error;
    if (poll(&wait, 1, static_cast<int>(std::min(timeout_seconds, kLongestWait) * 1000)) != 1)
      error = ETIMEDOUT;
    else
      getsockopt(connection, SOL_SOCKET, SO_ERROR, &error, &length);
  }
  if (error != 0) close(connection);
  return error == 0 ? connection : -1;
}

absl::Status Join(const Communicator& world, const Invitation& invitation, double timeout_seconds,
                  Peer* server) {
  std::vector<std::uint32_t> addresses = invitation.addresses;
  if (invitation.node == ThisNode()) addresses.insert(addresses.begin(), htonl(INADDR_LOOPBACK));
  *server = {invitation.host, invitation.pid, Link()};
  for (const std::uint32_t address : addresses) {
    const int connection = Connect(address, invitation.port, timeout_seconds / addresses.size());
    if (connection < 0) continue;
    server->link = Link(connection);
    ByteWriter hello;
    hello.Write(invitation.token);
    hello.Write(world.rank());
    hello.WriteText(base::HostName());
    hello.Write(static_cast<int>(getpid()));
    server->link.Send(FrameKind::kHello, hello.Take());
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat("watchdog: rank ", world.rank(), " on ", base::HostName(),
                                             " cannot connect to rank 0 on ", invitation.host, " port ",
                                             invitation.port, "; is a firewall between the nodes?"));
}

// The rank in the first frame of a new connection; -1 if it is not a rank of this job.
int ReadHello(const Frame& frame, std::uint64_t token, int size, Peer* peer) {
  ByteReader from(frame.payload);
  const bool invited = frame.kind == FrameKind::kHello && from.Read<std::uint64_t>() == token;
  const int rank = from.Read<int>();
  peer->host = from.ReadText();
  peer->pid = from.Read<int>();
  return invited && from.ok() && rank > 0 && rank < size ? rank : -1;
}

absl::Status TooManyFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return absl::UnavailableError(absl::StrCat("watchdog: rank 0 on ", base::HostName(), " may have only ",
                                             limit.rlim_cur, " files open (ulimit -n)"));
}

absl::Status Accept(int listener, std::uint64_t token, double timeout_seconds, std::vector<Peer>* peers) {
  const double deadline = FlightRecorder::Now() + timeout_seconds;
  std::vector<Link> unnamed;
  std::size_t missing = peers->size() - 1;
  while (missing > 0 && FlightRecorder::Now() < deadline) {
    std::vector<pollfd> wait = {{listener, POLLIN, 0}};
    for (const Link& link : unnamed) wait.push_back({link.socket(), POLLIN, 0});
    poll(wait.data(), wait.size(), 100);
    for (Link& link : unnamed) {
      const std::vector<Frame> frames = link.Receive();
      Peer peer;
      const int rank =
          frames.empty() ? -1 : ReadHello(frames[0], token, static_cast<int>(peers->size()), &peer);
      if (!frames.empty() && rank < 0) link.Close();
      if (rank < 0 || (*peers)[rank].link.open()) continue;
      peer.link = std::move(link);
      (*peers)[rank] = std::move(peer);
      --missing;
    }
    std::erase_if(unnamed, [](const Link& link) { return !link.open(); });
    if (wait[0].revents & POLLIN) {
      const int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0 && (errno == EMFILE || errno == ENFILE)) return TooManyFiles();
      if (connection >= 0) unnamed.emplace_back(connection);
    }
  }
  if (missing == 0) return absl::OkStatus();
  std::string names;
  for (std::size_t rank = 1; rank < peers->size(); ++rank) {
    if (!(*peers)[rank].link.open()) absl::StrAppend(&names, names.empty() ? "" : ", ", rank);
  }
  return absl::UnavailableError(
      absl::StrCat("watchdog: rank ", names, " did not connect to rank 0 within ", timeout_seconds, " s"));
}

// A rank that cannot connect knows why; rank 0 only that it did not come.
absl::Status AgreeOnMeeting(const Communicator& world, const absl::Status& mine) {
  std::vector<std::string> errors = GatherText(world, mine.message());
  std::rotate(errors.begin(), errors.begin() + 1, errors.end());
  for (const std::string& error : errors) {
    if (!error.empty()) return absl::UnavailableError(error);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Meeting> Meet(const Communicator& world, double timeout_seconds) {
  const bool is_server = world.rank() == 0;
  const int elsewhere = FirstRankElsewhere(world);
  const bool one_node = elsewhere == world.size();
  int listener = -1;
  Invitation invitation;
  if (is_server) {
    base::AllowManyFiles();  // a connection to every rank
    invitation = {.token = 0,
                  .host = base::HostName(),
                  .node = ThisNode(),
                  .pid = getpid(),
                  .port = 0,
                  .addresses = OwnAddresses()};
    if (getrandom(&invitation.token, sizeof invitation.token, 0) < 0) invitation.token = getpid();
    listener = Listen(one_node, world.size(), &invitation.port);
  }
  invitation = DecodeInvitation(BroadcastText(world, Encode(invitation)));
  if (invitation.port == 0) {
    return absl::UnavailableError("watchdog: rank 0 on " + invitation.host + " cannot open a TCP port");
  }
  std::vector<Peer> peers(is_server ? world.size() : 1);
  if (is_server) peers[0] = {invitation.host, invitation.pid, Link()};
  const absl::Status mine = is_server ? Accept(listener, invitation.token, timeout_seconds, &peers)
                                      : Join(world, invitation, timeout_seconds, &peers[0]);
  const absl::Status all = AgreeOnMeeting(world, mine);
  // Not before: if rank 0 gives up early, that is why the meeting fails, not that ranks find nobody who listens.
  if (listener >= 0) close(listener);
  if (!all.ok()) return all;
  return Meeting{.peers = std::move(peers), .deputy = one_node ? 1 : elsewhere};
}

}  // namespace plait::comm
