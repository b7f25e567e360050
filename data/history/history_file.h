// The HDF5 layout of a history, as netCDF-4 defines it: a dimension `draw`, a variable per metric along it (float64, or
// int64 for integer metrics); vectors have a second dimension with coordinate 0, 1, ... length - 1. Missing values are
// NaN, or netCDF's fill value for int64; the attribute _FillValue is set only where it occurs, so that xarray keeps
// complete integer variables as integers.
//
// Root attributes: format "plait history", format_version 3 (2 had no integers, 1 no vectors either; both can be
// read and resumed), Conventions "CF-1.8", those of the run, complete (1: closed normally), resumed_at_draw
// (the last), resumed_at_draws (all: "3 8").
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

// Creates a file without draws or metrics; `attributes` describe the run.
absl::Status CreateHistoryFile(const std::string& path, const std::map<std::string, std::string>& attributes);

// Opens a history for reading, or for writing through `image` (FileImage::On). DataLoss if the file is not a
// history, or has a newer format version.
absl::StatusOr<File> OpenHistoryFile(const std::string& path);
absl::StatusOr<File> OpenHistoryFile(const std::string& path, FileImage& image);

absl::StatusOr<std::int64_t> DrawCount(const File& file);
absl::StatusOr<std::vector<Metric>> MetricsOf(const File& file);

// Sets the current format version, before draws are added to a file of an older one.
absl::Status MarkVersion(File& file);

// Adds a variable along `draw`, without values. FailedPrecondition if the vector's dimension exists with another
// length.
absl::Status AddMetric(File& file, const Metric& metric);

// Sets the number of draws: truncates, or adds draws without values.
absl::Status SetDrawCount(File& file, std::int64_t draws);

// Adds those draws of the journal that the file lacks, at most 4096 at a time, and their metrics; none to a complete
// file, beside which only another run's journal can have more. Returns the new number of draws.
absl::StatusOr<std::int64_t> AppendJournal(File& file, const std::string& journal_path);

}  // namespace plait::data

#endif  // PLAIT_DATA_HISTORY_HISTORY_FILE_H_
