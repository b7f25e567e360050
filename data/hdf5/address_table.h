// A table of array addresses, appended to an HDF5 file, with which arrays are read without the HDF5 library. That
// library can crash on a damaged file, is not thread-safe, and does not check the elements.
//
//   FileImage image;
//   PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path, image));
//   ...                                                               // arrays, attributes
//   PLAIT_RETURN_IF_ERROR(AppendAddresses(file, image));              // closes the file
//   ...
//   PLAIT_ASSIGN_OR_RETURN(AddressedFile file, AddressedFile::Open(path));    // addressed_file.h
//
// After the HDF5 part (other programs open the file as usual): the UTF-8 text of one JSON object
//   {"format": "plait checkpoint", "integers": {"format_version": 3, "step": 12},
//    "arrays": {"/plait/pieces": [offset, bytes, crc32], "/model/x[0:12]": [offset, bytes], ...},
//    "structure_crc32": 305419896}
// padded with spaces so that its size does not depend on the last number, then a footer of 20 bytes: CRC-32 (uint32)
// and size (uint64) of that text, little-endian, and "plaitad1".
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
  std::map<std::string, Array> arrays;           // by path; those of contiguous layout
  // CRC-32 of all bytes of HDF5's part outside of the arrays, in file order; nullopt for files without a table.
  std::optional<std::uint32_t> structure_crc32;
};

// Size of the footer after the table.
inline constexpr std::int64_t kAddressFooterBytes = 20;

// Builds the table of an open file through HDF5, without structure_crc32. Does not follow links. DATA_LOSS if an
// array is not inside the file. Local.
absl::StatusOr<AddressTable> AddressesOf(const File& file);

// Closes `file`, which was created in `image`, and appends its table. INVALID_ARGUMENT if a name is not UTF-8. Local.
absl::Status AppendAddresses(File& file, FileImage& image);

// The table and its footer as bytes. INVALID_ARGUMENT as AppendAddresses.
absl::StatusOr<std::string> SerializeAddresses(const AddressTable& table);

// Returns the size of the table, given the last kAddressFooterBytes of a file of `file_bytes`. NOT_FOUND if there is no
// table; DATA_LOSS if it would be larger than the file, or than 1 GiB.
absl::StatusOr<std::int64_t> AddressTableBytes(absl::string_view footer, std::int64_t file_bytes);

// Parses `text`, the table, and `footer` of a file of `file_bytes`; checks that every array is inside HDF5's part.
// DATA_LOSS, in a message without a path.
absl::StatusOr<AddressTable> ParseAddresses(absl::string_view text, absl::string_view footer,
                                            std::int64_t file_bytes);

// Computes structure_crc32 of a table; `read` fetches bytes at an offset of the file. Errors of `read`.
absl::StatusOr<std::uint32_t> StructureCrc32(
    const AddressTable& table,
    const std::function<absl::Status(std::int64_t offset, absl::Span<char> to)>& read);

}  // namespace plait::data

#endif  // PLAIT_DATA_HDF5_ADDRESS_TABLE_H_
