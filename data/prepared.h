// One HDF5 layout for all labelled sequences, written once and read in parallel by all ranks.
//
//   PLAIT_RETURN_IF_ERROR(WritePrepared(path, set, key));                     // one process
//   PLAIT_ASSIGN_OR_RETURN(SequenceSet set, ReadPrepared(path, {}));          // every rank, independently
//
//   /train/x        float32 (samples, steps, channels)     attribute crc32: of the bytes, zlib's
//   /train/y        int64   (samples)                      labels from 0
//   /train/subject  int64   (samples)                      0: not known
//   /test/...       likewise
//   root attributes: format = "plait sequences", format_version = 1, key (names the input it was made from),
//   source (text for people), synthetic (0 or 1), classes (names, one a line), created (UTC)
//
// Errors, one line each: NotFound; DataLoss where the file is not HDF5, is cut short, is of another format or
// version, lacks an array, has shapes that do not agree, a label out of range or a wrong checksum.
#ifndef PLAIT_DATA_PREPARED_H_
#define PLAIT_DATA_PREPARED_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/sequence_set.h"

namespace plait::data {

// Atomic: a file that was there stays until the new one is complete.
absl::Status WritePrepared(const std::string& path, const SequenceSet& set, const std::string& key);

struct ReadPreparedOptions {
  // As Subsampled: this share of the samples of both splits.
  double fraction = 1.0;
  // Only these steps of every sequence, for a rank that owns part of the time axis; -1: all from first_step
  // on.
  std::int64_t first_step = 0;
  std::int64_t steps = -1;
  // Checksums cover whole arrays, so they are compared only where all steps are read.
  bool verify = true;
};

absl::StatusOr<SequenceSet> ReadPrepared(const std::string& path, const ReadPreparedOptions& options);

// The key of a prepared file, without reading its arrays; errors as ReadPrepared.
absl::StatusOr<std::string> PreparedKey(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_PREPARED_H_
