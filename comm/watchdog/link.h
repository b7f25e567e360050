// A TCP connection between two watchdogs: whole frames in, whole frames out, nothing blocks.
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
  kTerminated,  // the process received SIGTERM and goes without guilt
  kGoodbye,     // the session ends in good order
  kEnd          // exit code: the job is over; to the server too, from ranks that have taken it for lost
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
  void Flush();                  // sends what the socket takes
  std::vector<Frame> Receive();  // what has arrived; closes the link at its end or on malformed bytes
  void FinishSending();
  void Close();

 private:
  int socket_ = -1;
  std::string unsent_;
  std::string received_;
};

// Sends what is left and reads until the other sides have closed too, or the time is over: unread bytes in a
// socket that closes would discard what was just sent.
void CloseInOrder(const std::vector<Link*>& links, double timeout_seconds);

}  // namespace plait::comm

#endif  // PLAIT_COMM_WATCHDOG_LINK_H_
