// Text for a reader who may be slow, or have stopped: written as far as the file takes it, without waiting.
//
//   OutputQueue queue(1);
//   queue.Add("line\n");
//   pollfd wait = {.fd = queue.file_to_wait_for(), .events = POLLOUT};
//   poll(&wait, 1, -1);
//   queue.Write();
//
// Pipes and terminals are opened once more for this, without blocking: other programs may share the file that was
// given. Local; not thread-safe.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_OUTPUT_QUEUE_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_OUTPUT_QUEUE_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace plait::comm {

class OutputQueue {
 public:
  explicit OutputQueue(int file);
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // Appends, and writes what can be written now. After an error nothing is kept.
  void Add(absl::string_view text);
  void Write();

  std::size_t bytes() const { return waiting_.size(); }
  int file_to_wait_for() const { return waiting_.empty() ? -1 : file_; }  // for poll, which ignores -1
  int error() const { return error_; }                                    // errno of a failed write; 0: none

 private:
  int file_;
  bool is_own_ = false;
  bool may_block_ = false;
  std::string waiting_;
  int error_ = 0;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_OUTPUT_QUEUE_H_
