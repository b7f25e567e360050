// A non-blocking TCP connection between two watchdogs that carries frames.
#ifndef PLAIT_COMM_WATCHDOG_LINK_H_
#define PLAIT_COMM_WATCHDOG_LINK_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::comm {

enum class FrameKind : std::uint8_t {
  kHello,       // token, rank, host, pid: the first frame, to the server
  kPosition,    // where a rank is
  kSuspicion,   // a rank has waited longer than its timeout
  kQuery,       // the server asks for positions
  kExiting,     // state, code: the process called exit() or crashes
  kTerminated,  // its number: the process received SIGTERM or SIGINT, so its end is no fault
  kGoodbye,     // the session ends regularly
  kEnd          // exit code: the job is over; also to the server, from ranks that believe it lost
};

struct Frame {
  FrameKind kind;
  std::string payload;
};

class Link {
 public:
  Link() = default;
  explicit Link(int socket);
  Link(Link&& other) noexcept { *this = std::move(other); }
  Link& operator=(Link&& other) noexcept;
  ~Link();

  int socket() const { return socket_; }
  bool open() const { return socket_ >= 0; }
  bool has_unsent() const { return !unsent_.empty(); }

  void Send(FrameKind kind, absl::string_view payload = "");
  void Flush();                  // sends as much as the socket accepts
  std::vector<Frame> Receive();  // what has arrived; closes the link at its end or on malformed bytes
  void FinishSending();
  void Close();

 private:
  int socket_ = -1;
  std::string unsent_;
  std::string received_;
};

// Flushes all links and reads until the other sides have closed them or the timeout expires: closing a socket with
// unread bytes would reset the connection and discard what was just sent.
void CloseInOrder(const std::vector<Link*>& links, double timeout_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_LINK_H_
