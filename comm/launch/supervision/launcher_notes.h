// Filters out what Open MPI's mpirun prints about the end of a job: blocks between lines of dashes, which would hide
// the job's own last line.
//
//   LauncherNotes notes;
//   output.Write(kLauncherItself, Stream::kError, notes.Pass(bytes));
//   notes.killed_rank()       // "rank 1 exited on signal 9 (Killed)"; empty if mpirun reported no such thing
//
// Other blocks, such as hints about a network, are passed on. Local.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_LAUNCHER_NOTES_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_LAUNCHER_NOTES_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plait::comm {

class LauncherNotes {
 public:
  // Takes the next bytes of the stream and returns what is for the user. A line that may begin a block is held back
  // until it is complete; other unfinished lines are passed on at once.
  std::string Pass(absl::string_view bytes);
  // Returns what is still held back, at the end of the stream.
  std::string Rest();

  const std::string& killed_rank() const { return killed_rank_; }

 private:
  // kBehindDashes: the last line was a rule of dashes. kInBlock: inside a block that is filtered out.
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
