#include "data/hdf5/addressed_file.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"

namespace plait::data {

absl::StatusOr<AddressedFile> AddressedFile::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(base::FileDescriptor bytes,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kRead));
  AddressedFile file(path, std::move(bytes));
  const absl::Status read = file.ReadTable();
  if (read.ok()) return file;
  if (!absl::IsNotFound(read)) return read;
  PLAIT_ASSIGN_OR_RETURN(const File hdf5, File::OpenForeign(path));
  PLAIT_ASSIGN_OR_RETURN(file.table_, AddressesOf(hdf5));
  return file;
}

absl::Status AddressedFile::ReadTable() {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t size, bytes_.SizeBytes());
  std::string footer(std::min(size, kAddressFooterBytes), '\0');
  PLAIT_RETURN_IF_ERROR(bytes_.ReadAt(footer.data(), std::ssize(footer), size - std::ssize(footer)));
  const absl::StatusOr<std::int64_t> table_bytes = AddressTableBytes(footer, size);
  if (!table_bytes.ok()) return base::Prefixed(table_bytes.status(), path_);
  std::string text(*table_bytes, '\0');
  PLAIT_RETURN_IF_ERROR(bytes_.ReadAt(text.data(), *table_bytes, size - kAddressFooterBytes - *table_bytes));
  absl::StatusOr<AddressTable> table = ParseAddresses(text, footer, size);
  if (!table.ok()) return base::Prefixed(table.status(), path_);
  table_ = *std::move(table);
  return absl::OkStatus();
}

const AddressTable::Array* AddressedFile::Find(const std::string& array) const {
  const auto found = table_.arrays.find(array);
  return found == table_.arrays.end() ? nullptr : &found->second;
}

absl::Status AddressedFile::Damaged(const std::string& array, const char* why) const {
  return absl::DataLossError(absl::StrCat(path_, ": ", array, ": ", why, ", the file is damaged"));
}

absl::StatusOr<std::string> AddressedFile::ReadBytes(const std::string& array) const {
  const AddressTable::Array* const place = Find(array);
  if (place == nullptr) return Damaged(array, "not in the file");
  if (place->bytes > kMostBytes) return Damaged(array, "larger than expected");
  std::string bytes(place->bytes, '\0');
  PLAIT_RETURN_IF_ERROR(bytes_.ReadAt(bytes.data(), place->bytes, place->offset));
  if (place->crc32 == Crc32(bytes.data(), place->bytes)) return bytes;
  return Damaged(array, "checksum does not match");
}

absl::Status AddressedFile::CheckStructure() const {
  if (!has_table()) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::uint32_t crc,
                         StructureCrc32(table_, [&](std::int64_t offset, absl::Span<char> to) {
                           return bytes_.ReadAt(to.data(), std::ssize(to), offset);
                         }));
  if (crc == table_.structure_crc32) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path_, ": the checksum of its HDF5 structure does not match, the file is damaged"));
}

}  // namespace plait::data
