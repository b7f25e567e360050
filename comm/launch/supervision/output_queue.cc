#include "comm/launch/supervision/output_queue.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"

namespace plait::comm {
namespace {

bool IsReady(int file) {
  pollfd wait = {.fd = file, .events = POLLOUT, .revents = 0};
  return poll(&wait, 1, 0) > 0;
}

}  // namespace

OutputQueue::OutputQueue(int file) : file_(file) {
  struct stat status = {};
  if (fstat(file, &status) != 0) file_ = -1;  // closed: another file may get its number
  if (file_ < 0 || S_ISREG(status.st_mode)) return;
  if ((fcntl(file, F_GETFL) & O_ACCMODE) == O_RDONLY) return;  // writing is an error, and must stay one
  may_block_ = true;
  if (!S_ISFIFO(status.st_mode) && !S_ISCHR(status.st_mode)) return;
  const std::string path = absl::StrCat("/proc/self/fd/", file);
  const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
  if (own < 0) return;  // nobody reads it any more, or it is another user's terminal
  file_ = own;
  is_own_ = true;
  may_block_ = false;
}

OutputQueue::~OutputQueue() {
  if (is_own_) close(file_);
}

void OutputQueue::Add(absl::string_view text) {
  if (error_ != 0) return;
  absl::StrAppend(&waiting_, text);
  Write();
}

void OutputQueue::Write() {
  std::size_t done = 0;
  while (done < waiting_.size() && error_ == 0) {
    if (may_block_ && !IsReady(file_)) break;
    // So many bytes fit into a pipe that is ready.
    const std::size_t most = may_block_ ? PIPE_BUF : waiting_.size();
    const ssize_t written = write(file_, waiting_.data() + done, std::min(most, waiting_.size() - done));
    if (written > 0) done += static_cast<std::size_t>(written);
    if (written < 0 && errno == EAGAIN) break;
    if (written < 0 && errno != EINTR) error_ = errno;
  }
  waiting_.erase(0, error_ == 0 ? done : waiting_.size());
}

}  // namespace plait::comm
