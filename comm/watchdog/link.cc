#include "comm/watchdog/link.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "comm/flight_recorder.h"

namespace plait::comm {
namespace {

constexpr std::size_t kHeader = sizeof(std::uint32_t) + 1;
constexpr std::uint32_t kLongestPayload = 1 << 24;
constexpr std::size_t kMostUnsent = 1 << 24;  // the other side has stopped reading

}  // namespace

Link::Link(int socket) : socket_(socket) {
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

Link& Link::operator=(Link&& other) noexcept {
  std::swap(socket_, other.socket_);
  std::swap(unsent_, other.unsent_);
  std::swap(received_, other.received_);
  return *this;
}

Link::~Link() { Close(); }

void Link::Close() {
  if (socket_ >= 0) close(socket_);
  socket_ = -1;
}

void Link::Send(FrameKind kind, absl::string_view payload) {
  if (!open() || unsent_.size() > kMostUnsent) return;
  const auto length = static_cast<std::uint32_t>(payload.size());
  unsent_.append(reinterpret_cast<const char*>(&length), sizeof length);
  unsent_.push_back(static_cast<char>(kind));
  unsent_.append(payload.data(), payload.size());
  Flush();
}

void Link::Flush() {
  while (open() && !unsent_.empty()) {
    const ssize_t sent = send(socket_, unsent_.data(), unsent_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;  // full: later; broken: Receive will see it
    unsent_.erase(0, sent);
  }
}

std::vector<Frame> Link::Receive() {
  char chunk[16384];
  bool at_end = false;
  while (open() && !at_end) {
    const ssize_t count = recv(socket_, chunk, sizeof chunk, MSG_DONTWAIT);
    if (count > 0) received_.append(chunk, count);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) break;
    at_end = count <= 0;
  }
  std::vector<Frame> frames;
  std::size_t begin = 0;
  while (received_.size() - begin >= kHeader) {
    std::uint32_t length;
    std::memcpy(&length, received_.data() + begin, sizeof length);
    if (length > kLongestPayload) at_end = true;
    if (length > kLongestPayload || received_.size() - begin < kHeader + length) break;
    const auto kind = static_cast<FrameKind>(received_[begin + sizeof length]);
    frames.push_back({kind, received_.substr(begin + kHeader, length)});
    begin += kHeader + length;
  }
  received_.erase(0, begin);
  if (at_end) Close();
  return frames;
}

void Link::FinishSending() {
  Flush();
  if (open()) shutdown(socket_, SHUT_WR);
}

void CloseInOrder(const std::vector<Link*>& links, double timeout_seconds) {
  for (Link* link : links) link->FinishSending();
  const double deadline = FlightRecorder::Now() + timeout_seconds;
  const auto any_open = [&] {
    return std::any_of(links.begin(), links.end(), [](Link* l) { return l->open(); });
  };
  while (any_open() && FlightRecorder::Now() < deadline) {
    for (Link* link : links) link->Receive();
    poll(nullptr, 0, 1);
  }
}

}  // namespace plait::comm
