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
// Errors, one line each: NotFound; DataLoss if the file is not HDF5, is truncated, has another format or
// version, lacks an array, has inconsistent shapes, a label out of range or a wrong checksum; InvalidArgument
// if first_step and steps are not within the sequences.
#ifndef PLAIT_DATA_PREPARED_H_
#define PLAIT_DATA_PREPARED_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/sequence_set.h"

namespace plait::data {

// Atomic: an existing file is replaced only once the new one is complete. Errors of WriteAtomically.
absl::Status WritePrepared(const std::string& path, const SequenceSet& set, const std::string& key);

struct ReadPreparedOptions {
  // The fraction of samples to keep of each split, see Subsampled: above 0; 1 or more: all.
  double fraction = 1.0;
  // Reads only steps [first_step, first_step + steps) of each sequence, for a rank that owns part of the time
  // axis; steps = -1: all from first_step.
  std::int64_t first_step = 0;
  std::int64_t steps = -1;
  // Compares checksums. They cover whole arrays, so that of x is compared only if all steps are read.
  bool verify = true;
};

absl::StatusOr<SequenceSet> ReadPrepared(const std::string& path, const ReadPreparedOptions& options);

// Returns the key of a prepared file without reading its arrays. Errors of ReadPrepared; NotFound also if the
// attribute is missing.
absl::StatusOr<std::string> PreparedKey(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_PREPARED_H_
