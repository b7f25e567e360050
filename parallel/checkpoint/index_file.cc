#include "parallel/checkpoint/index_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"
#include "parallel/checkpoint/checked_array.h"
#include "parallel/checkpoint/virtual_tensor.h"

namespace plait::parallel {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kContents[] = "/plait/contents";
constexpr char kPieces[] = "/plait/pieces";
constexpr data::DType kTypes[] = {data::DType::kFloat32, data::DType::kFloat64, data::DType::kBFloat16,
                                  data::DType::kFloat16, data::DType::kInt64,   data::DType::kInt32,
                                  data::DType::kUint8,   data::DType::kBool};

std::string ContentsOf(const CheckpointIndex& index) {
  Json tensors = Json::array(), shards = Json::array();
  for (const TensorSpec& tensor : index.layout.tensors) {
    tensors.push_back({{"group", tensor.group},
                       {"name", tensor.name},
                       {"dtype", std::string(data::NameOf(tensor.dtype))},
                       {"shape", tensor.shape}});
  }
  for (std::size_t rank = 0; rank < index.shards.size(); ++rank) {
    shards.push_back({{"file", ShardFileName(static_cast<int>(rank))},
                      {"bytes", index.shards[rank].bytes},
                      {"checksums_crc32", index.shards[rank].checksums_crc32}});
  }
  return Json{{"step", index.layout.step},        {"ranks", index.layout.ranks},
              {"chunk_bytes", index.chunk_bytes}, {"tensors", std::move(tensors)},
              {"shards", std::move(shards)},      {"texts", index.texts},
              {"integers", index.integers}}
      .dump();
}

absl::StatusOr<std::string> ContentsIfUtf8(const std::string& path, const CheckpointIndex& index) {
  try {
    return ContentsOf(index);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError(absl::StrCat(path, " not written: a name or text of it is not UTF-8"));
  }
}

std::vector<std::int64_t> PieceTable(const Layout& layout) {
  std::vector<std::int64_t> table;
  for (const LayoutPiece& piece : layout.pieces) {
    table.insert(table.end(), {piece.tensor, piece.rank, piece.begin, piece.end});
  }
  return table;
}

absl::Status WriteContents(data::File& file, const CheckpointIndex& index) {
  PLAIT_ASSIGN_OR_RETURN(const std::string contents, ContentsIfUtf8(file.path(), index));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", "format", kIndexFormat));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", "format_version", kFormatVersion));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", "step", index.layout.step));
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(contents.data()),
                                             contents.size());
  PLAIT_RETURN_IF_ERROR(WriteChecked(file, kContents, bytes, {static_cast<std::int64_t>(contents.size())}));
  const std::vector<std::int64_t> pieces = PieceTable(index.layout);
  return WriteChecked<std::int64_t>(file, kPieces, pieces,
                                    {static_cast<std::int64_t>(index.layout.pieces.size()), 4});
}

absl::Status CheckFormat(const data::File& file) {
  const absl::StatusOr<std::string> format = data::TextAttribute(file, "/", "format");
  const absl::StatusOr<std::int64_t> version = data::IntAttribute(file, "/", "format_version");
  if (!format.ok() || *format != kIndexFormat || !version.ok()) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": an HDF5 file, but not the index of a checkpoint"));
  }
  if (*version == kFormatVersion) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      file.path(), ": checkpoint of format ", *version, ", this program reads format ", kFormatVersion, "; ",
      *version > kFormatVersion ? "use the newer version of the program that wrote it"
                                : "load it with the version that wrote it and save it with one that writes "
                                  "both, or start anew"));
}

data::DType TypeNamed(const std::string& name) {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes),
                                  [&](data::DType type) { return data::NameOf(type) == name; });
  if (found == std::end(kTypes)) throw std::invalid_argument("unknown type " + name);
  return *found;
}

// Throws where something is missing or of another type.
CheckpointIndex IndexFrom(const std::string& contents) {
  const Json json = Json::parse(contents);
  CheckpointIndex index;
  index.layout.step = json.at("step");
  index.layout.ranks = json.at("ranks");
  index.chunk_bytes = json.at("chunk_bytes");
  for (const Json& tensor : json.at("tensors")) {
    index.layout.tensors.push_back(
        {tensor.at("group"), tensor.at("name"), TypeNamed(tensor.at("dtype")), tensor.at("shape")});
  }
  for (const Json& shard : json.at("shards")) {
    index.shards.push_back({shard.at("bytes"), shard.at("checksums_crc32")});
  }
  index.texts = json.at("texts");
  index.integers = json.at("integers");
  return index;
}

// Whatever a file says, later code must not step outside its arrays.
bool IsSound(const CheckpointIndex& index) {
  const Layout& layout = index.layout;
  bool sound = layout.ranks > 0 && static_cast<int>(index.shards.size()) == layout.ranks &&
               layout.step >= 0 && index.chunk_bytes > 0 && index.chunk_bytes % 8 == 0;
  for (const LayoutPiece& piece : layout.pieces) {
    sound = sound && piece.tensor >= 0 && piece.tensor < static_cast<std::int64_t>(layout.tensors.size()) &&
            piece.rank >= 0 && piece.rank < layout.ranks && piece.begin >= 0 && piece.begin < piece.end &&
            piece.end <= ElementsOf(layout.tensors[piece.tensor]);
  }
  sound =
      sound && std::is_sorted(layout.pieces.begin(), layout.pieces.end(), [](const auto& a, const auto& b) {
        return std::tie(a.tensor, a.begin) < std::tie(b.tensor, b.begin);
      });
  return sound && CheckCoverage(layout).ok();
}

absl::StatusOr<CheckpointIndex> ParseIndex(const std::string& contents,
                                           const std::vector<std::int64_t>& pieces) {
  try {
    CheckpointIndex index = IndexFrom(contents);
    for (std::size_t i = 0; i + 3 < pieces.size(); i += 4) {
      index.layout.pieces.push_back({pieces[i], pieces[i + 1], pieces[i + 2], pieces[i + 3]});
    }
    if (IsSound(index)) return index;
    return absl::DataLossError("its parts do not fit together");
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("its contents cannot be read: ", error.what()));
  }
}

}  // namespace

absl::Status WriteIndex(const std::string& path, const CheckpointIndex& index) {
  data::FileImage image;
  PLAIT_ASSIGN_OR_RETURN(data::File file, data::File::Create(path, image));
  PLAIT_RETURN_IF_ERROR(WriteContents(file, index));
  const absl::Span<const LayoutPiece> pieces = index.layout.pieces;
  std::size_t first = 0;
  for (std::size_t t = 0; t < index.layout.tensors.size(); ++t) {
    std::size_t end = first;
    while (end < pieces.size() && pieces[end].tensor == static_cast<std::int64_t>(t)) ++end;
    PLAIT_RETURN_IF_ERROR(
        AddVirtualTensor(file, index.layout, index.layout.tensors[t], pieces.subspan(first, end - first)));
    first = end;
  }
  PLAIT_RETURN_IF_ERROR(file.Close());
  return data::WriteImage(image, path);
}

absl::StatusOr<CheckpointIndex> ReadIndex(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const data::File file, data::File::Open(path));
  PLAIT_RETURN_IF_ERROR(CheckFormat(file));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> contents,
                         ReadChecked<std::uint8_t>(file, kContents));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> pieces, ReadChecked<std::int64_t>(file, kPieces));
  absl::StatusOr<CheckpointIndex> index = ParseIndex({contents.begin(), contents.end()}, pieces);
  if (!index.ok()) return base::Prefixed(index.status(), path);
  return index;
}

}  // namespace plait::parallel
