// Arrays with their CRC-32 (zlib's, of the stored bytes) in an attribute `crc32`: HDF5's own checksums cover its
// metadata, not the elements.
#ifndef PLAIT_DATA_HDF5_CHECKED_ARRAY_H_
#define PLAIT_DATA_HDF5_CHECKED_ARRAY_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "data/hdf5/file.h"

namespace plait::data {

inline constexpr char kChecksumAttribute[] = "crc32", kFormatAttribute[] = "format";

// zlib's CRC-32; pass the result for the preceding bytes as `so_far` to continue it.
std::uint32_t Crc32(const void* data, std::int64_t bytes, std::uint32_t so_far = 0);

template <typename T>
std::uint32_t Crc32(absl::Span<const T> values) {
  return Crc32(values.data(), static_cast<std::int64_t>(values.size() * sizeof(T)));
}

absl::Status SetChecksum(File& file, const std::string& name, std::uint32_t crc);
// DATA_LOSS, naming file and array, where the checksum is missing or differs.
absl::Status CheckChecksum(const File& file, const std::string& name, std::uint32_t crc);

template <typename T>
absl::Status WriteChecked(File& file, const std::string& name, absl::Span<const T> values,
                          const std::vector<std::int64_t>& shape) {
  PLAIT_RETURN_IF_ERROR(WriteArray<T>(file, name, values, shape));
  return SetChecksum(file, name, Crc32(values));
}

// Errors of CheckChecksum and ReadArray.
template <typename T>
absl::StatusOr<std::vector<T>> ReadChecked(const File& file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<T> values, ReadArray<T>(file, name));
  PLAIT_RETURN_IF_ERROR(CheckChecksum(file, name, Crc32<T>(values)));
  return values;
}

// Sets the root attributes `format` and `format_version`, which identify the kind of file.
absl::Status SetFormat(File& file, const std::string& format, std::int64_t version);
// Opens a file (File::OpenForeign) and checks these attributes. DATA_LOSS if they are missing or differ: "PATH: an
// HDF5 file, but not WHAT", or "PATH: WHAT of format 3, expected 1" followed by `advice`.
absl::StatusOr<File> OpenFormat(const std::string& path, const std::string& format, std::int64_t version,
                                absl::string_view what, absl::string_view advice = "");

// Turns any error into DATA_LOSS: for objects that every sound file of the format has.
inline absl::Status AsDamage(const absl::Status& status) {
  return status.ok() ? status : absl::DataLossError(status.message());
}
template <typename T>
absl::StatusOr<T> OrDamage(absl::StatusOr<T> result) {
  if (result.ok()) return result;
  return AsDamage(result.status());
}

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_CHECKED_ARRAY_H_
