// Where the arrays of an HDF5 file lie: a table behind HDF5's own end, with which they are read without HDF5. HDF5 can
// crash over a damaged file, may be used by one thread at a time, and checks no elements.
//
//   FileImage image;
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path, image));
//   ...                                                               // arrays, attributes
//   PLAIT_RETURN_IF_ERROR(AppendAddresses(file, image));              // closes the file
//   ...
//   PLAIT_ASSIGN_OR_RETURN(AddressedFile file, AddressedFile::Open(path));    // addressed_file.h
//
// Behind the HDF5 file, which other programs open as ever: the UTF-8 text of one JSON object
//   {"format": "plait checkpoint", "integers": {"format_version": 3, "step": 12},
//    "arrays": {"/plait/pieces": [offset, bytes, crc32], "/model/x[0:12]": [offset, bytes], ...},
//    "structure_crc32": 305419896}
// with blanks behind it that make its size independent of the last number, then 20 bytes: its CRC-32 (uint32) and its size
// (uint64), little-endian, and "plaitad1".
#ifndef PLAIT_DATA_HDF5_ADDRESS_TABLE_H_
#define PLAIT_DATA_HDF5_ADDRESS_TABLE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/hdf5/file.h"
#include "data/hdf5/file_image.h"

namespace plait::data {

struct AddressTable {
  struct Array {
    std::int64_t offset = 0, bytes = 0;
    std::optional<std::uint32_t>
        crc32;  // of the elements, where the array has that attribute (checked_array.h)
  };
  std::int64_t hdf5_bytes = 0;                   // where HDF5's part ends and the table begins
  std::string format;                            // root attribute; empty: none
  std::map<std::string, std::int64_t> integers;  // the other root attributes that are integers
  std::map<std::string, Array> arrays;           // by path; those that lie in one piece
  // Of all bytes of HDF5's part outside of the arrays, in order; none for files without a table.
  std::optional<std::uint32_t> structure_crc32;
};

// The size of what stands behind the table.
inline constexpr std::int64_t kAddressFooterBytes = 20;

// What HDF5 says of an open file; structure_crc32 is not set. Follows no links. Local.
absl::StatusOr<AddressTable> AddressesOf(const File& file);

// Closes `file`, which lives in `image`, and puts its table behind it. INVALID_ARGUMENT for names that are not UTF-8. Local.
absl::Status AppendAddresses(File& file, FileImage& image);

// The table and what stands behind it, as bytes. INVALID_ARGUMENT as AppendAddresses.
absl::StatusOr<std::string> SerializeAddresses(const AddressTable& table);

// Of the last kAddressFooterBytes of a file of `file_bytes`: how many bytes the table before them has. NOT_FOUND where
// there is none; DATA_LOSS where it would be larger than the file.
absl::StatusOr<std::int64_t> AddressTableBytes(absl::string_view footer, std::int64_t file_bytes);

// Of `text` and what stands behind it. Every array lies inside HDF5's part of a file of `file_bytes`. DATA_LOSS, without a
// path.
absl::StatusOr<AddressTable> ParseAddresses(absl::string_view text, absl::string_view footer,
                                            std::int64_t file_bytes);

// structure_crc32 of a table: `read` fetches the bytes at an offset of the file.
absl::StatusOr<std::uint32_t> StructureCrc32(
    const AddressTable& table,
    const std::function<absl::Status(std::int64_t offset, absl::Span<char> to)>& read);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ADDRESS_TABLE_H_
