// Write-ahead log of a history: the draws since its last commit, written record by record beside the file, so
// that a killed process loses nothing that was appended.
//
// Format: "PLTJRNL2", then records { uint32 length, uint32 crc32, byte[length] }, little-endian. The first
// byte of a record is its type:
//
//   'M' { uint32 id; name \0 units \0 long_name \0 statistic \0 dimension \0 length \0 kind \0 }
//       a metric, in the order of ids; kind "i": integers
//   'D' { int64 draw; (uint32 id, float64[max(length, 1)])* }
//       a draw; numbers of draws are consecutive
//
// The reader stops at the first record that is truncated, damaged or out of order. It also reads "PLTJRNL1", which
// had scalars only, without the last four texts, and metrics without kind.
#ifndef PLAIT_DATA_HISTORY_JOURNAL_H_
#define PLAIT_DATA_HISTORY_JOURNAL_H_

#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/history/append_file.h"
#include "data/history/metric.h"

namespace plait::data {

// The journal's path of a history: beside the file to which WriteAtomically(path) writes, also where `path` is a link.
std::string JournalPathOf(const std::string& path);

struct JournalDraw {
  std::int64_t draw = 0;
  std::vector<std::uint32_t> ids;  // indices into the metrics
  std::vector<double> numbers;     // those of all ids, one after the other: max(length, 1) of each
};

// Owns the open journal and an exclusive lock on it (flock), released at the latest when the process ends.
class JournalWriter {
 public:
  // Opens the journal for appending, or creates it. FailedPrecondition if another process writes it.
  static absl::StatusOr<JournalWriter> Open(const std::string& path);

  // Truncates the journal and writes the metrics, whose indices are the ids of later draws. Flushes to disk (fsync), as
  // otherwise old records could reappear between new ones after a power failure.
  absl::Status Restart(absl::Span<const Metric> metrics);
  // False after a Restart that failed: no reader finds what is written then. Restart again first.
  bool readable() const { return readable_; }
  absl::Status AddMetric(std::uint32_t id, const Metric& metric);
  // Writes a draw: Begin, Add for each metric, End. InvalidArgument from End if it has more than 16 MiB.
  void BeginDraw(std::int64_t draw);
  void AddToDraw(std::uint32_t id, absl::Span<const double> numbers);
  absl::Status EndDraw();
  const std::string& path() const { return file_.path(); }

 private:
  explicit JournalWriter(AppendFile file) : file_(std::move(file)) {}

  AppendFile file_;
  std::string record_;
  bool readable_ = true;
};

// Reads metrics and draws in order.
class JournalReader {
 public:
  // An absent file reads as an empty journal.
  explicit JournalReader(const std::string& path);
  ~JournalReader();
  JournalReader(const JournalReader&) = delete;
  JournalReader& operator=(const JournalReader&) = delete;

  // The next draw; false at the end. metrics() then holds all that were named up to there.
  bool Next(JournalDraw& draw);
  const std::vector<Metric>& metrics() const { return metrics_; }

 private:
  bool NextRecord();
  bool TakeMetric();
  bool TakeDraw(JournalDraw& draw);

  std::FILE* file_;
  std::string record_;
  std::vector<Metric> metrics_;
  std::optional<std::int64_t> next_draw_;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_JOURNAL_H_
