#include "data/safetensors/file.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data::safetensors {
namespace {

// The header's text and the tensors' bytes.
struct Parts {
  absl::string_view header;
  absl::string_view data;
};

absl::StatusOr<Parts> Split(absl::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof(length)) {
    return absl::DataLossError(
        absl::StrCat(bytes.size(), " bytes, expected at least 8: not a safetensors file"));
  }
  std::memcpy(&length, bytes.data(), sizeof(length));
  bytes.remove_prefix(sizeof(length));
  if (length > static_cast<std::uint64_t>(kMaxHeaderBytes)) {
    return absl::DataLossError(absl::StrCat("a header of ", length, " bytes, expected at most ",
                                            kMaxHeaderBytes, ": not a safetensors file"));
  }
  if (length > bytes.size()) {
    return absl::DataLossError(absl::StrCat(bytes.size(), " bytes after the first 8, expected a header of ",
                                            length, " bytes: the file is cut short"));
  }
  return Parts{bytes.substr(0, length), bytes.substr(length)};
}

}  // namespace

File::File(std::string path, MappedFile mapping, Header header, absl::string_view data)
    : path_(std::move(path)), mapping_(std::move(mapping)), header_(std::move(header)), data_(data) {
  for (std::size_t i = 0; i < header_.entries.size(); ++i) places_[header_.entries[i].name] = i;
}

absl::StatusOr<File> File::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(MappedFile mapping, MappedFile::Open(path));
  const absl::StatusOr<Parts> parts = Split(mapping.bytes());
  PLAIT_RETURN_IF_ERROR(base::Prefixed(parts.status(), path));
  absl::StatusOr<Header> header = ParseHeader(parts->header, static_cast<std::int64_t>(parts->data.size()));
  PLAIT_RETURN_IF_ERROR(base::Prefixed(header.status(), path));
  return File(path, std::move(mapping), *std::move(header), parts->data);
}

absl::StatusOr<TensorView> File::Find(absl::string_view name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) {
    return absl::NotFoundError(
        absl::StrCat(path_, ": no tensor ", Quoted(name), " among its ", places_.size()));
  }
  const Header::Entry& entry = header_.entries[place->second];
  return TensorView{entry.name, entry.info, data_.data() + entry.begin};
}

absl::Status File::ReadInto(absl::string_view name, const TensorInfo& expected, void* data) const {
  PLAIT_ASSIGN_OR_RETURN(const TensorView tensor, Find(name));
  if (tensor.info != expected) {
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor ", Quoted(name), " is ",
                                                   TextOf(tensor.info), ", expected ", TextOf(expected)));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t bytes, ByteCount(tensor.info));
  if (bytes > 0) std::memcpy(data, tensor.data, bytes);
  return absl::OkStatus();
}

bool IsAligned(const TensorView& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data) % ElementBytes(tensor.info.dtype) == 0;
}

}  // namespace plait::data::safetensors
