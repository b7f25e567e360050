// The HDF5 side of a history, laid out as netCDF-4 does: a dimension `draw`, a variable per metric along it,
// float64 or, of whole numbers, int64; a vector per draw has a second dimension, whose coordinate is 0, 1, ...
// length - 1. What a draw does not have is NaN or netCDF's fill value for int64, which the attribute _FillValue names
// where it occurs: xarray then shows NaN, and integers otherwise.
//
// Root attributes: format "plait history", format_version 3 (2 had no integers, 1 numbers only; both are read and gone
// on with), Conventions "CF-1.8", those of the run, complete (1: closed as it should), resumed_at_draw.
// Variables have units, long_name and statistic where they are known.
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

// Opens one for reading, or for changes by way of `image` (FileImage::On). DataLoss where it is no history or one of a newer
// format version.
absl::StatusOr<File> OpenHistoryFile(const std::string& path);
absl::StatusOr<File> OpenHistoryFile(const std::string& path, FileImage& image);

absl::StatusOr<std::int64_t> DrawCount(const File& file);
absl::StatusOr<std::vector<Metric>> MetricsOf(const File& file);

// The format is marked as this version's, before new draws go into a file of an older one.
absl::Status MarkVersion(File& file);

// A variable along `draw`, without values so far. FailedPrecondition where a vector's dimension is there with another
// length.
absl::Status AddMetric(File& file, const Metric& metric);

// Makes the file `draws` long: cuts, or adds draws without values.
absl::Status SetDrawCount(File& file, std::int64_t draws);

// Adds the draws of the journal that the file does not hold yet, a few thousand at a time; metrics that the
// file does not know are added. Returns the number of draws that it then has.
absl::StatusOr<std::int64_t> AppendJournal(File& file, const std::string& journal_path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_FILE_H_
