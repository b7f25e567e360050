// The output of a job's ranks: forwarded to the user by whole lines, written to a log per rank, and kept for reports.
//
//   JobOutput output({.ranks = 4, .log_folder = "logs", .label = false});
//   PLAIT_RETURN_IF_ERROR(output.OpenLogs());
//   output.Write(3, Stream::kError, bytes);
//   output.LastLines(3);          // at most ten
//   output.LastWriters();         // "rank 3 at 12:00:01 (4.1 s ago), rank 0 at ...; nothing from rank 1, 2"
//
// Lines of different ranks do not interleave (up to 64 KiB); '\r' ends a line too, so that progress bars are visible.
// rank-0003.log has the lines of standard output and standard error in the order of their arrival; launcher.log the
// launcher's own. Local; not thread-safe.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_

#include <ctime>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/file_descriptor.h"
#include "comm/launch/supervision/output_queue.h"

namespace plait::comm {

enum class Stream { kOutput, kError };

inline constexpr int kLauncherItself = -1;  // in place of a rank

struct JobOutputOptions {
  int ranks = 1;
  std::string log_folder = {};  // empty: no logs
  bool label = false;           // "[ 3] " before each line
  int output = 1;               // file descriptors
  int error = 2;
};

class JobOutput {
 public:
  explicit JobOutput(const JobOutputOptions& options);
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;
  ~JobOutput();

  // Creates the folder, deletes the ranks' logs of an earlier job, and opens the logs. The folder is this job's while the
  // object lives: FAILED_PRECONDITION, and nothing is changed, if it is another's. Other errors, with path and reason, if
  // it cannot be written.
  absl::Status OpenLogs();

  void Write(int rank, Stream stream, absl::string_view bytes);
  // Writes unfinished lines, with a newline.
  void Flush();
  // Writes a line of the supervisor's own to standard error. Does not Flush().
  void Say(absl::string_view line);

  // A reader who is slow, or has stopped (a pager, ^S), must not keep the supervisor from its signals and timeouts: what
  // he does not take is kept.
  std::vector<int> FilesToWaitFor() const;  // for poll(POLLOUT); -1: none
  void WriteWaiting();                      // as much as is taken now
  bool waits() const;                       // whether something is kept
  bool is_full() const;                     // so much that the ranks' output should be left unread
  // Drops what would be more than that, from now on.
  void DropTheRest() { drops_ = true; }
  // Returns when all is written, after `seconds`, or if `interrupt` becomes readable.
  void Finish(double seconds, int interrupt);

  double last_write() const { return last_write_; }  // NowSeconds(); 0: never
  bool user_left() const { return user_left_; }      // standard output failed: nobody reads it any more
  // Why standard output could not be written (disk full); empty: it could, or the reader of a pipe went away.
  const std::string& problem() const { return problem_; }
  std::vector<std::string> LastLines(int rank) const;
  // The last few lines of standard error of ranks other than `rank`, "[2] text" each; empty if `rank` itself has
  // written to standard error, and so probably explained why it ended.
  std::vector<std::string> LastErrorsOfOthers(int rank) const;
  std::string LastWriters() const;
  std::string LogOf(int rank) const;  // path of its log; empty without logs

 private:
  struct Source {
    std::string rest[2];  // of a line of either stream
    std::deque<std::string> last_lines;
    double last_write = 0;
    std::time_t last_write_time = 0;
    int log = -1;
    bool wrote_errors = false;
  };

  void Remember(int rank, Stream stream, absl::string_view line);
  std::string Label(int rank) const;
  void WriteLog(int rank, absl::string_view text);
  void Emit(Stream stream, const std::string& text);
  void NoteErrors();
  std::string Silent() const;

  JobOutputOptions options_;
  std::optional<base::FileDescriptor> lock_;  // on launcher.log
  std::map<int, Source> sources_;
  std::deque<std::pair<int, std::string>> last_errors_;  // of ranks
  OutputQueue queues_[2];                                // by Stream
  double last_write_ = 0;
  bool user_left_ = false;
  bool drops_ = false;
  std::string problem_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_
