// What the ranks of a job write: on to the user by whole lines, into a file per rank, and remembered.
//
//   JobOutput output({.ranks = 4, .log_folder = "logs", .label = false});
//   PLAIT_RETURN_IF_ERROR(output.OpenLogs());
//   output.Write(3, Stream::kError, bytes);
//   output.LastLines(3);          // at most ten
//   output.LastWriters();         // "rank 3 at 12:00:01 (4.1 s ago), rank 0 ...; nothing yet from ranks 1,
//   2"
//
// Lines of different ranks are never mixed; '\r' ends a line too, so that progress is seen. rank-0003.log has
// standard output and standard error by lines in the order of their arrival; launcher.log what mpirun
// or srun says itself. Local; one thread only.
#ifndef PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_
#define PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_

#include <ctime>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

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
  explicit JobOutput(const JobOutputOptions& options) : options_(options) {}
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;
  ~JobOutput();

  // Makes the folder; logs of an earlier job in it go. UNAVAILABLE with path and reason.
  absl::Status OpenLogs();

  void Write(int rank, Stream stream, absl::string_view bytes);
  // What is left of lines without an end.
  void Flush();
  // A line of launch's own on standard error, after all that is left.
  void Say(absl::string_view line);

  double last_write() const { return last_write_; }  // NowSeconds; 0: never
  bool user_left() const { return user_left_; }      // nobody reads our output any more
  std::vector<std::string> LastLines(int rank) const;
  // The last few lines of standard error of ranks other than `rank`, "[2] text" each; none if `rank` itself
  // has written there: then it has told why it ended.
  std::vector<std::string> LastErrorsOfOthers(int rank) const;
  std::string LastWriters() const;
  std::string LogOf(int rank) const;  // its path; empty without logs

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
  std::string Silent() const;

  JobOutputOptions options_;
  std::map<int, Source> sources_;
  std::deque<std::pair<int, std::string>> last_errors_;  // of ranks
  double last_write_ = 0;
  bool user_left_ = false;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_LAUNCH_SUPERVISION_JOB_OUTPUT_H_
