#include "parallel/checkpoint/checked_array.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::parallel {
namespace {

constexpr char kChecksum[] = "crc32";

}  // namespace

std::uint32_t Crc32(const void* data, std::int64_t bytes, std::uint32_t so_far) {
  return static_cast<std::uint32_t>(
      crc32_z(so_far, static_cast<const Bytef*>(data), static_cast<std::size_t>(bytes)));
}

template <typename T>
absl::Status WriteChecked(data::File& file, const std::string& name, absl::Span<const T> values,
                          const std::vector<std::int64_t>& shape) {
  PLAIT_RETURN_IF_ERROR(data::WriteArray<T>(file, name, values, shape));
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  return data::SetAttribute(file, name, kChecksum, std::int64_t{Crc32(values.data(), bytes)});
}

template <typename T>
absl::StatusOr<std::vector<T>> ReadChecked(const data::File& file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<T> values, data::ReadArray<T>(file, name));
  const absl::StatusOr<std::int64_t> expected = data::IntAttribute(file, name, kChecksum);
  const auto bytes = static_cast<std::int64_t>(values.size() * sizeof(T));
  if (expected.ok() && *expected == Crc32(values.data(), bytes)) return values;
  return absl::DataLossError(
      absl::StrCat(file.path(), ": ", name, ": checksum does not match, the file is damaged"));
}

template absl::Status WriteChecked<std::uint8_t>(data::File&, const std::string&,
                                                 absl::Span<const std::uint8_t>,
                                                 const std::vector<std::int64_t>&);
template absl::Status WriteChecked<std::int64_t>(data::File&, const std::string&,
                                                 absl::Span<const std::int64_t>,
                                                 const std::vector<std::int64_t>&);
template absl::StatusOr<std::vector<std::uint8_t>> ReadChecked<std::uint8_t>(const data::File&,
                                                                             const std::string&);
template absl::StatusOr<std::vector<std::int64_t>> ReadChecked<std::int64_t>(const data::File&,
                                                                             const std::string&);

}  // namespace plait::parallel
