#include "data/checkpoint/tensor_archive.h"

#include <zlib.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/file_image.h"
#include "data/hdf5/image_file.h"

namespace plait::data {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr char kFormat[] = "plait tensors";
constexpr std::int64_t kVersion = 1;
constexpr DType kAll[] = {DType::kFloat32, DType::kFloat64, DType::kBFloat16, DType::kFloat16,
                          DType::kInt64,   DType::kInt32,   DType::kUint8,    DType::kBool};

std::int64_t Elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t Checksum(const void* data, std::int64_t bytes) {
  return crc32_z(0, static_cast<const Bytef*>(data), bytes);
}

std::string TensorPath(const std::string& name) { return "/tensors/" + name; }
std::string TextPath(const std::string& name) { return "/texts/" + name; }

std::string Described(DType dtype, const Shape& shape) {
  return absl::StrCat(NameOf(dtype), " (", absl::StrJoin(shape, ", "), ")");
}

// Calls `with` with a value of the type in which HDF5 stores `dtype`.
template <typename With>
absl::Status WithStoredType(DType dtype, With with) {
  switch (dtype) {
    case DType::kFloat32:
      return with(float{});
    case DType::kFloat64:
      return with(double{});
    case DType::kBFloat16:
    case DType::kFloat16:
      return with(std::int16_t{});
    case DType::kInt64:
      return with(std::int64_t{});
    case DType::kInt32:
      return with(std::int32_t{});
    case DType::kUint8:
    case DType::kBool:
      return with(std::uint8_t{});
  }
  PLAIT_CHECK(false) << "no such type: " << static_cast<int>(dtype);
  return absl::OkStatus();
}

absl::Status WriteTensor(File& file, const std::string& path, const TensorView& tensor) {
  const std::int64_t elements = Elements(tensor.shape);
  PLAIT_RETURN_IF_ERROR(WithStoredType(tensor.dtype, [&](auto stored) {
    using T = decltype(stored);
    return WriteArray<T>(file, path, absl::MakeConstSpan(static_cast<const T*>(tensor.data), elements),
                         tensor.shape);
  }));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, path, "dtype", std::string(NameOf(tensor.dtype))));
  return SetAttribute(file, path, "crc32", Checksum(tensor.data, elements * ElementBytes(tensor.dtype)));
}

TensorView AsBytes(const std::string& name, const std::string& text) {
  return {name, DType::kUint8, {static_cast<std::int64_t>(text.size())}, text.data()};
}

absl::Status CheckNames(const std::string& path, absl::Span<const TensorView> tensors) {
  std::set<std::string> names;
  for (const TensorView& tensor : tensors) {
    if (tensor.name.empty() || tensor.name == "." || absl::StrContains(tensor.name, '/')) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": \"", tensor.name, "\" cannot name a tensor"));
    }
    if (!names.insert(tensor.name).second) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": two tensors are named ", tensor.name));
    }
  }
  return absl::OkStatus();
}

absl::Status Fill(File& file, absl::Span<const TensorView> tensors,
                  const std::map<std::string, std::string>& texts) {
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format", kFormat));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "format_version", kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "tensor_count", static_cast<std::int64_t>(tensors.size())));
  for (const TensorView& tensor : tensors)
    PLAIT_RETURN_IF_ERROR(WriteTensor(file, TensorPath(tensor.name), tensor));
  for (const auto& [name, text] : texts) {
    PLAIT_RETURN_IF_ERROR(WriteTensor(file, TextPath(name), AsBytes(name, text)));
  }
  return file.Close();
}

// In memory: HDF5 does not survive every write that fails. `path` is for messages.
absl::Status FillImage(FileImage& image, const std::string& path, absl::Span<const TensorView> tensors,
                       const std::map<std::string, std::string>& texts) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Create(path, image));
  return Fill(file, tensors, texts);
}

// A part that a sound file would have is missing.
absl::Status AsDamage(const absl::Status& status) {
  return status.ok() ? status : absl::DataLossError(status.message());
}

absl::StatusOr<TensorInfo> InfoAt(const File& file, const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(Shape shape, ArrayShape(file, path));
  const absl::StatusOr<std::string> name = TextAttribute(file, path, "dtype");
  if (!name.ok()) return AsDamage(name.status());
  for (const DType dtype : kAll) {
    if (*name == NameOf(dtype)) return TensorInfo{dtype, std::move(shape)};
  }
  return absl::DataLossError(absl::StrCat(file.path(), ": ", path, ": unknown type ", *name));
}

absl::Status ReadChecked(const File& file, const std::string& path, const TensorInfo& info, void* data) {
  const std::int64_t elements = Elements(info.shape);
  PLAIT_RETURN_IF_ERROR(WithStoredType(info.dtype, [&](auto stored) -> absl::Status {
    using T = decltype(stored);
    if (!info.shape.empty()) {
      return ReadRowsInto<T>(file, path, 0, info.shape[0], absl::MakeSpan(static_cast<T*>(data), elements));
    }
    PLAIT_ASSIGN_OR_RETURN(const std::vector<T> scalar, ReadArray<T>(file, path));
    *static_cast<T*>(data) = scalar.at(0);
    return absl::OkStatus();
  }));
  const absl::StatusOr<std::int64_t> expected = IntAttribute(file, path, "crc32");
  if (!expected.ok()) return AsDamage(expected.status());
  if (*expected == Checksum(data, elements * ElementBytes(info.dtype))) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(file.path(), ": ", path, ": checksum does not match, the file is damaged"));
}

}  // namespace

absl::string_view NameOf(DType dtype) {
  constexpr absl::string_view kNames[] = {"float32", "float64", "bfloat16", "float16",
                                          "int64",   "int32",   "uint8",    "bool"};
  return kNames[static_cast<int>(dtype)];
}

std::int64_t ElementBytes(DType dtype) {
  constexpr std::int64_t kBytes[] = {4, 8, 2, 2, 8, 4, 1, 1};
  return kBytes[static_cast<int>(dtype)];
}

absl::Status WriteTensorArchive(const std::string& path, absl::Span<const TensorView> tensors,
                                const std::map<std::string, std::string>& texts) {
  PLAIT_RETURN_IF_ERROR(CheckNames(path, tensors));
  constexpr std::int64_t kOverheadPerArray = 1024;
  std::int64_t bytes = kOverheadPerArray;
  for (const TensorView& tensor : tensors) {
    bytes += Elements(tensor.shape) * ElementBytes(tensor.dtype) + kOverheadPerArray;
  }
  for (const auto& [name, text] : texts) bytes += text.size() + kOverheadPerArray;
  return WriteAtomically(path, bytes, [&](const std::string& partial) -> absl::Status {
    FileImage image;
    PLAIT_RETURN_IF_ERROR(FillImage(image, path, tensors, texts));
    return WriteImage(image, partial);
  });
}

absl::StatusOr<TensorArchive> TensorArchive::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(File file, File::Open(path));
  const absl::StatusOr<std::string> format = TextAttribute(file, "/", "format");
  if (!format.ok() || *format != kFormat)
    return absl::DataLossError(path + ": an HDF5 file, but not a checkpoint");
  const absl::StatusOr<std::int64_t> version = IntAttribute(file, "/", "format_version");
  if (!version.ok() || *version != kVersion) {
    return absl::DataLossError(
        absl::StrCat(path, ": checkpoint of format ", version.ok() ? *version : -1, ", expected ", kVersion));
  }
  TensorArchive archive(std::move(file));
  if (archive.file_.Has("/tensors")) {
    PLAIT_ASSIGN_OR_RETURN(archive.names_, archive.file_.Names("/tensors"));
  }
  const absl::StatusOr<std::int64_t> count = IntAttribute(archive.file_, "/", "tensor_count");
  if (count.ok() && *count == static_cast<std::int64_t>(archive.names_.size())) return archive;
  return absl::DataLossError(
      absl::StrCat(path, ": expected ", count.ok() ? *count : -1, " tensors, found ", archive.names_.size()));
}

absl::StatusOr<TensorInfo> TensorArchive::Info(const std::string& name) const {
  return InfoAt(file_, TensorPath(name));
}

absl::Status TensorArchive::ReadInto(const std::string& name, DType dtype, const Shape& shape,
                                     void* data) const {
  PLAIT_ASSIGN_OR_RETURN(const TensorInfo info, Info(name));
  if (info.dtype != dtype || info.shape != shape) {
    return absl::InvalidArgumentError(absl::StrCat(path(), ": ", name, " is ",
                                                   Described(info.dtype, info.shape), ", expected ",
                                                   Described(dtype, shape)));
  }
  return ReadChecked(file_, TensorPath(name), info, data);
}

bool TensorArchive::HasText(const std::string& name) const { return file_.Has(TextPath(name)); }

absl::StatusOr<std::string> TensorArchive::Text(const std::string& name) const {
  PLAIT_ASSIGN_OR_RETURN(const TensorInfo info, InfoAt(file_, TextPath(name)));
  if (info.dtype != DType::kUint8 || info.shape.size() != 1) {
    return absl::DataLossError(absl::StrCat(path(), ": ", TextPath(name), ": not a text"));
  }
  std::string text(info.shape[0], '\0');
  PLAIT_RETURN_IF_ERROR(ReadChecked(file_, TextPath(name), info, text.data()));
  return text;
}

absl::Status TensorArchive::Verify() const {
  std::vector<char> bytes;
  for (const std::string& name : names_) {
    PLAIT_ASSIGN_OR_RETURN(const TensorInfo info, Info(name));
    // One element at least: a scalar of 8 bytes, and no null pointer for an empty tensor.
    bytes.resize(std::max<std::int64_t>(8, Elements(info.shape) * ElementBytes(info.dtype)));
    PLAIT_RETURN_IF_ERROR(ReadChecked(file_, TensorPath(name), info, bytes.data()));
  }
  if (!file_.Has("/texts")) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> texts, file_.Names("/texts"));
  for (const std::string& name : texts) PLAIT_RETURN_IF_ERROR(Text(name).status());
  return absl::OkStatus();
}

}  // namespace plait::data
