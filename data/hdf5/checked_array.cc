#include "data/hdf5/checked_array.h"

#include <zlib.h>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

constexpr char kVersion[] = "format_version";

}  // namespace

std::uint32_t Crc32(const void* data, std::int64_t bytes, std::uint32_t so_far) {
  return static_cast<std::uint32_t>(
      crc32_z(so_far, static_cast<const Bytef*>(data), static_cast<std::size_t>(bytes)));
}

absl::Status SetChecksum(File& file, const std::string& name, std::uint32_t crc) {
  return SetAttribute(file, name, kChecksumAttribute, std::int64_t{crc});
}

absl::Status CheckChecksum(const File& file, const std::string& name, std::uint32_t crc) {
  const absl::StatusOr<std::int64_t> expected = IntAttribute(file, name, kChecksumAttribute);
  if (expected.ok() && *expected == crc) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(file.path(), ": ", name, ": checksum does not match, the file is damaged"));
}

absl::Status SetFormat(File& file, const std::string& format, std::int64_t version) {
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", kFormatAttribute, format));
  return SetAttribute(file, "/", kVersion, version);
}

absl::StatusOr<File> OpenFormat(const std::string& path, const std::string& format, std::int64_t version,
                                absl::string_view what, absl::string_view advice) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::OpenForeign(path));
  const absl::StatusOr<std::string> found = TextAttribute(file, "/", kFormatAttribute);
  if (!found.ok() || *found != format) {
    return absl::DataLossError(absl::StrCat(path, ": an HDF5 file, but not ", what));
  }
  const absl::StatusOr<std::int64_t> its_version = IntAttribute(file, "/", kVersion);
  if (its_version.ok() && *its_version == version) return file;
  return absl::DataLossError(absl::StrCat(path, ": ", what, " of format ", its_version.value_or(-1),
                                          ", expected ", version, advice));
}

}  // namespace plait::data
