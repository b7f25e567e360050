// What a history has taken since its file was last brought up to date: a log beside the file, written
// record by record, so that a killed process loses nothing that was appended.
//
// Format: "PLTJRNL2", then records { uint32 length, uint32 crc32, byte[length] }, little-endian. A record
// begins with its kind: 'M' { uint32 id, name \0 units \0 long_name \0 statistic \0 dimension \0 length \0
// kind \0 } names a metric, in the order of ids, of kind "i" where it is of whole numbers; 'D' { int64 draw, (uint32 id, float64[max(length, 1)])* } is a draw, one more than the
// draw before. The reader stops
// at the first record that is cut short, damaged or out of order. "PLTJRNL1" had numbers only, without the last four
// texts; it is read, and so are records without the kind.
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

struct JournalDraw {
  std::int64_t draw = 0;
  std::vector<std::uint32_t> ids;  // indices into the metrics
  std::vector<double> numbers;     // those of all ids, one after the other: max(length, 1) of each
};

// Owns the open journal and an exclusive lock on it, which ends with the process.
class JournalWriter {
 public:
  // Opens or creates; keeps what is there. FailedPrecondition if another process writes it.
  static absl::StatusOr<JournalWriter> Open(const std::string& path);

  // Empties it and names the metrics, whose indices later draws use; on the disk when it returns, or else old records
  // could come back between new ones after a loss of power.
  absl::Status Restart(absl::Span<const Metric> metrics);
  absl::Status AddMetric(std::uint32_t id, const Metric& metric);
  // A draw, entry by entry: Begin, Add for each metric, End. InvalidArgument from End where it is too large
  // (16 MB).
  void BeginDraw(std::int64_t draw);
  void AddToDraw(std::uint32_t id, absl::Span<const double> numbers);
  absl::Status EndDraw();
  const std::string& path() const { return file_.path(); }

 private:
  explicit JournalWriter(AppendFile file) : file_(std::move(file)) {}

  AppendFile file_;
  std::string record_;
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
