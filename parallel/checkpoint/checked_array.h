// Small arrays of a checkpoint's files with their CRC-32 (zlib's, of the bytes as they stand in the file) in
// an attribute `crc32`: HDF5 guards its own structures, not the elements.
#ifndef PLAIT_PARALLEL_CHECKPOINT_CHECKED_ARRAY_H_
#define PLAIT_PARALLEL_CHECKPOINT_CHECKED_ARRAY_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"

namespace plait::parallel {

// zlib's CRC-32, starting from `so_far` where bytes come in parts.
std::uint32_t Crc32(const void* data, std::int64_t bytes, std::uint32_t so_far = 0);

// T: std::uint8_t or std::int64_t.
template <typename T>
absl::Status WriteChecked(data::File& file, const std::string& name, absl::Span<const T> values,
                          const std::vector<std::int64_t>& shape);

// DATA_LOSS, naming file and array, where the checksum is missing or differs; else errors as ReadArray's.
template <typename T>
absl::StatusOr<std::vector<T>> ReadChecked(const data::File& file, const std::string& name);

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_CHECKED_ARRAY_H_
