// Arrays of an HDF5 file that has a table of their addresses (address_table.h), read without HDF5.
//
//   PLAIT_ASSIGN_OR_RETURN(AddressedFile file, AddressedFile::Open("index.h5"));
//   PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> pieces, file.Read<std::int64_t>("/plait/pieces"));
//
// Errors are one line that begins with the path. Local; may be called from any thread once opened.
#ifndef PLAIT_DATA_HDF5_ADDRESSED_FILE_H_
#define PLAIT_DATA_HDF5_ADDRESSED_FILE_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "base/status_macros.h"
#include "data/hdf5/address_table.h"

namespace plait::data {

class AddressedFile {
 public:
  // A file without a table is listed through HDF5 (File::OpenForeign): then one thread at a time. NOT_FOUND,
  // PERMISSION_DENIED; DATA_LOSS if the table is damaged, or the file is not HDF5 or damaged.
  static absl::StatusOr<AddressedFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const AddressTable& table() const { return table_; }
  bool has_table() const { return table_.structure_crc32.has_value(); }
  const base::FileDescriptor& bytes() const { return bytes_; }

  // nullptr if there is no such array, or it is not contiguous.
  const AddressTable::Array* Find(const std::string& array) const;

  // Returns the bytes of the array as stored. DATA_LOSS if there is no such array, it has more than kMostBytes, or its
  // checksum is missing or differs.
  static constexpr std::int64_t kMostBytes = std::int64_t{1} << 32;
  absl::StatusOr<std::string> ReadBytes(const std::string& array) const;

  // The array as numbers of type T, little-endian; the stored type is not checked. Errors of ReadBytes; DATA_LOSS if
  // the size is not a multiple of sizeof(T).
  template <typename T>
  absl::StatusOr<std::vector<T>> Read(const std::string& array) const;

  // Verifies the checksum of all bytes outside of the arrays, which it reads: DATA_LOSS if it differs. OK for files
  // without a table.
  absl::Status CheckStructure() const;

 private:
  AddressedFile(std::string path, base::FileDescriptor bytes)
      : path_(std::move(path)), bytes_(std::move(bytes)) {}

  absl::Status ReadTable();
  absl::Status Damaged(const std::string& array, const char* why) const;

  std::string path_;
  base::FileDescriptor bytes_;
  AddressTable table_;
};

template <typename T>
absl::StatusOr<std::vector<T>> AddressedFile::Read(const std::string& array) const {
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadBytes(array));
  if (bytes.size() % sizeof(T) != 0) return Damaged(array, "is cut short");
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ADDRESSED_FILE_H_
