// The HDF5 side of a history, laid out as netCDF-4 does: one dimension `draw`, a float64 variable per metric
// along it.
#ifndef PLAIT_DATA_HISTORY_HISTORY_FILE_H_
#define PLAIT_DATA_HISTORY_HISTORY_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/hdf5/file.h"
#include "data/history/journal.h"

namespace plait::data {

// A new file without draws or metrics; the attributes describe the run.
absl::Status CreateHistoryFile(const std::string& path, const std::map<std::string, std::string>& attributes);

// Opens one for appending or reading. DataLoss where it is no history or one of another format version.
absl::StatusOr<File> OpenHistoryFile(const std::string& path, File::Mode mode);

absl::StatusOr<std::int64_t> DrawCount(const File& file);
absl::StatusOr<std::vector<Metric>> MetricsOf(const File& file);

// A variable along `draw`, NaN so far.
absl::Status AddMetric(File& file, const Metric& metric);

// Makes the file `draws` long: cuts, or adds draws of NaN.
absl::Status SetDrawCount(File& file, std::int64_t draws);

// Adds the draws of the journal that the file does not hold yet, a few thousand at a time; metrics that the
// file does not know are added. Returns the number of draws that it then has.
absl::StatusOr<std::int64_t> AppendJournal(File& file, const std::string& journal_path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_FILE_H_
