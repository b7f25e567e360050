// The table of addresses behind a file: its JSON, a NUL, then what stands for HDF5's part of the file. As it is, with the
// checksum that it has, and with the footer that the bytes end in. What is taken lies inside the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/hdf5/address_table.h"
#include "data/hdf5/checked_array.h"
#include "tests/fuzz/memory_file.h"

namespace {

using plait::data::AddressTable;

void Take(absl::string_view text, absl::string_view footer, std::int64_t hdf5_bytes) {
  const std::int64_t file_bytes = hdf5_bytes + std::ssize(text) + std::ssize(footer);
  const absl::StatusOr<AddressTable> table = plait::data::ParseAddresses(text, footer, file_bytes);
  if (!table.ok()) return;
  for (const auto& [path, array] : table->arrays) {
    PLAIT_CHECK(array.offset >= 0 && array.bytes >= 0 && array.bytes <= hdf5_bytes - array.offset) << path;
  }
  const absl::StatusOr<std::string> again = plait::data::SerializeAddresses(*table);
  PLAIT_CHECK(again.ok()) << again.status();
}

std::string FooterOf(absl::string_view text) {
  const std::uint32_t crc = plait::data::Crc32(text.data(), std::ssize(text));
  const std::uint64_t bytes = text.size();
  return absl::StrCat(absl::string_view(reinterpret_cast<const char*>(&crc), sizeof(crc)),
                      absl::string_view(reinterpret_cast<const char*>(&bytes), sizeof(bytes)), "plaitad1");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes = plait::fuzz::TextOf(data, size);
  const std::size_t end = std::min(bytes.find('\0'), size);
  const absl::string_view text = bytes.substr(0, end), rest = bytes.substr(std::min(end + 1, size));
  Take(text, FooterOf(text), std::ssize(rest));
  const std::size_t footer_bytes = std::min<std::size_t>(plait::data::kAddressFooterBytes, size);
  const absl::string_view footer = bytes.substr(size - footer_bytes);
  const auto table_bytes = plait::data::AddressTableBytes(footer, std::ssize(bytes));
  if (!table_bytes.ok()) return 0;
  Take(bytes.substr(size - footer_bytes - *table_bytes, *table_bytes), footer,
       std::ssize(bytes) - std::ssize(footer) - *table_bytes);
  return 0;
}
