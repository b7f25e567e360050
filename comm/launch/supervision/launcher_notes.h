// What Open MPI's mpirun says itself about the end of a job: blocks between lines of dashes, which would hide the job's own
// last line.
//
//   LauncherNotes notes;
//   output.Write(kLauncherItself, Stream::kError, notes.Pass(bytes));
//   notes.killed_rank()       // "rank 1 exited on signal 9 (Killed)", empty: it said nothing of the kind
//
// Other blocks, such as hints about a network, pass. Local.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_LAUNCHER_NOTES_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_LAUNCHER_NOTES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plait::comm {

class LauncherNotes {
 public:
  // What of the stream is for the user, up to and with `bytes`. Of a line that may begin a block nothing passes before its
  // end; other beginnings of lines pass at once.
  std::string Pass(absl::string_view bytes);
  // At the end of the stream.
  std::string Rest();

  const std::string& killed_rank() const { return killed_rank_; }

 private:
  // A line of dashes was seen; it was the beginning of a block to keep.
  enum class Place { kText, kBehindDashes, kInBlock };

  void TakeLine(absl::string_view line, std::string* passed);

  Place place_ = Place::kText;
  std::string line_;    // unfinished, and not passed on
  std::string dashes_;  // not passed on yet
  bool in_line_ = false;
  std::string killed_rank_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_LAUNCHER_NOTES_H_
