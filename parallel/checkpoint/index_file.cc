#include "parallel/checkpoint/index_file.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"
#include "parallel/checkpoint/stored_type.h"
#include "parallel/checkpoint/virtual_tensor.h"

namespace plait::parallel {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kContents[] = "/plait/contents";
constexpr char kPieces[] = "/plait/pieces";
constexpr char kBoxes[] = "/plait/boxes";
constexpr std::int64_t kLargestChunk = std::int64_t{1} << 26;

std::string ContentsOf(const CheckpointIndex& index) {
  Json tensors = Json::array(), shards = Json::array();
  for (const TensorSpec& tensor : index.layout.tensors) {
    tensors.push_back({{"group", tensor.group},
                       {"name", tensor.name},
                       {"dtype", std::string(TypeName(tensor.dtype))},
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

PieceTables TablesOf(const Layout& layout) {
  PieceTables tables;
  const models::Box* last = nullptr;
  for (const LayoutPiece& piece : layout.pieces) {
    tables.pieces.insert(tables.pieces.end(), {piece.tensor, piece.rank, piece.range.begin, piece.range.end});
    const models::Box& box = piece.range.box;
    if (box.size == layout.tensors[piece.tensor].shape) {
      tables.pieces.push_back(-1);
      continue;
    }
    if (last == nullptr || !(*last == box)) {
      tables.boxes.insert(tables.boxes.end(), box.begin.begin(), box.begin.end());
      tables.boxes.insert(tables.boxes.end(), box.size.begin(), box.size.end());
    }
    last = &box;
    tables.pieces.push_back(std::ssize(tables.boxes) - 2 * std::ssize(box.size));
  }
  return tables;
}

absl::Status WriteContents(data::File& file, const CheckpointIndex& index) {
  PLAIT_ASSIGN_OR_RETURN(const std::string contents, ContentsIfUtf8(file.path(), index));
  PLAIT_RETURN_IF_ERROR(data::SetFormat(file, kIndexFormat, kFormatVersion));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", kStepAttribute, index.layout.step));
  const absl::Span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(contents.data()),
                                             contents.size());
  PLAIT_RETURN_IF_ERROR(
      data::WriteChecked(file, kContents, bytes, {static_cast<std::int64_t>(contents.size())}));
  const PieceTables tables = TablesOf(index.layout);
  PLAIT_RETURN_IF_ERROR(data::WriteChecked<std::int64_t>(file, kPieces, tables.pieces,
                                                         {std::ssize(index.layout.pieces), tables.columns}));
  if (tables.boxes.empty()) return absl::OkStatus();
  return data::WriteChecked<std::int64_t>(file, kBoxes, tables.boxes, {std::ssize(tables.boxes)});
}

// The version of the format.
absl::StatusOr<std::int64_t> CheckFormat(const data::AddressedFile& file) {
  const auto version = file.table().integers.find(kVersionAttribute);
  if (file.table().format != kIndexFormat || version == file.table().integers.end()) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": an HDF5 file, but not the index of a checkpoint"));
  }
  if (version->second >= kFormatWithoutBoxes && version->second <= kFormatVersion) {
    PLAIT_RETURN_IF_ERROR(CheckHasTable(file));
    return version->second;
  }
  return absl::DataLossError(
      absl::StrCat(file.path(), ": checkpoint of format ", version->second, ", this program reads formats ",
                   kFormatWithoutBoxes, " to ", kFormatVersion, "; ",
                   version->second > kFormatVersion
                       ? "use the newer version of the program that wrote it"
                       : "load it with the version that wrote it and save it with one that writes "
                         "both, or start a new run"));
}

absl::StatusOr<PieceTables> ReadTables(const data::AddressedFile& file, std::int64_t version) {
  PieceTables tables;
  PLAIT_ASSIGN_OR_RETURN(tables.pieces, file.Read<std::int64_t>(kPieces));
  if (version == kFormatWithoutBoxes) tables.columns = 4;
  if (tables.columns == 4 || (version == kFormatVersion && file.Find(kBoxes) == nullptr)) return tables;
  PLAIT_ASSIGN_OR_RETURN(tables.boxes, file.Read<std::int64_t>(kBoxes));
  return tables;
}

at::ScalarType KnownType(const std::string& name) {
  const std::optional<at::ScalarType> type = TypeNamed(name);
  if (!type.has_value()) throw std::invalid_argument("unknown type " + name);
  return *type;
}

// Throws where it is no 64-bit integer.
std::int64_t Integer(const Json& json) {
  if (!json.is_number_integer())
    throw std::invalid_argument(absl::StrCat(json.dump().substr(0, 40), " is no integer"));
  if (!json.is_number_unsigned()) return json;
  const auto value = json.get<std::uint64_t>();
  if (value > static_cast<std::uint64_t>(INT64_MAX))
    throw std::invalid_argument(absl::StrCat(value, " is too large"));
  return static_cast<std::int64_t>(value);
}

// Throws where something is missing or of another type.
CheckpointIndex IndexFrom(const std::string& contents) {
  if (base::JsonDepth(contents) > base::kDeepestJson) throw std::invalid_argument("nested too deep");
  const Json json = Json::parse(contents);
  CheckpointIndex index;
  index.layout.step = Integer(json.at("step"));
  index.chunk_bytes = Integer(json.at("chunk_bytes"));
  for (const Json& tensor : json.at("tensors")) {
    TensorSpec& spec = index.layout.tensors.emplace_back();
    spec = {tensor.at("group"), tensor.at("name"), KnownType(tensor.at("dtype")), {}};
    for (const Json& size : tensor.at("shape")) spec.shape.push_back(Integer(size));
  }
  for (const Json& shard : json.at("shards")) {
    index.shards.push_back({Integer(shard.at("bytes")), Integer(shard.at("checksums_crc32"))});
  }
  const std::int64_t ranks = Integer(json.at("ranks"));
  if (ranks != std::ssize(index.shards) || ranks < 1 || ranks > INT32_MAX) {
    throw std::out_of_range(absl::StrCat(ranks, " ranks and ", index.shards.size(), " files"));
  }
  index.layout.ranks = static_cast<int>(ranks);
  index.texts = json.at("texts");
  for (const auto& [name, number] : json.at("integers").items()) index.integers[name] = Integer(number);
  return index;
}

// Adds the pieces of the tables to the layout. Throws if they refer to tensors or boxes that do not exist.
void AddPieces(const PieceTables& tables, Layout& layout) {
  if (tables.pieces.size() % tables.columns != 0)
    throw std::out_of_range("a row of /plait/pieces is truncated");
  for (std::size_t row = 0; row < tables.pieces.size(); row += tables.columns) {
    const std::int64_t* numbers = &tables.pieces[row];
    const Shape& shape = layout.tensors.at(numbers[0]).shape;
    models::Box box = WholeBox(shape);
    if (tables.columns == 5 && numbers[4] != -1) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        box.begin[d] = tables.boxes.at(numbers[4] + d);
        box.size[d] = tables.boxes.at(numbers[4] + shape.size() + d);
      }
    }
    layout.pieces.push_back({numbers[0], numbers[1], {std::move(box), numbers[2], numbers[3]}});
  }
}

// Each piece must lie inside its box, and the box inside its tensor. Readers allocate memory by these ranges, so the
// pieces of a rank must also fit into its file.
absl::Status CheckPieces(const CheckpointIndex& index) {
  const Layout& layout = index.layout;
  std::vector<std::int64_t> left;
  for (const ShardSummary& shard : index.shards) left.push_back(shard.bytes);
  for (std::size_t p = 0; p < layout.pieces.size(); ++p) {
    const LayoutPiece& piece = layout.pieces[p];
    const BoxRange& range = piece.range;
    const bool sound = piece.rank >= 0 && piece.rank < layout.ranks &&
                       IsInside(range.box, layout.tensors[piece.tensor].shape) && range.begin >= 0 &&
                       range.begin < range.end && range.end <= ElementsOf(range.box.size);
    if (!sound) return absl::DataLossError(absl::StrCat("piece ", p, " is not inside its tensor"));
    left[piece.rank] -= layout.BytesOf(piece);
    if (left[piece.rank] >= 0) continue;
    return absl::DataLossError(absl::StrCat(PathOf(layout.tensors[piece.tensor]), " has no room in the ",
                                            index.shards[piece.rank].bytes, " bytes of ",
                                            ShardFileName(static_cast<int>(piece.rank))));
  }
  if (std::is_sorted(layout.pieces.begin(), layout.pieces.end(), PrecedesInLayout)) return absl::OkStatus();
  return absl::DataLossError("pieces are out of order");
}

// Whatever a file contains, later code must not index out of bounds or allocate more memory than the files' size.
absl::Status CheckIndex(const CheckpointIndex& index) {
  if (index.layout.step < 0) return absl::DataLossError(absl::StrCat("step ", index.layout.step));
  if (index.chunk_bytes < 8 || index.chunk_bytes > kLargestChunk || index.chunk_bytes % 8 != 0) {
    return absl::DataLossError(absl::StrCat("chunks of ", index.chunk_bytes,
                                            " bytes; expected a multiple of 8 up to ", kLargestChunk));
  }
  PLAIT_RETURN_IF_ERROR(CheckPieces(index));
  return CheckCoverage(index.layout);
}

}  // namespace

absl::StatusOr<CheckpointIndex> ParseIndex(const std::string& contents, const PieceTables& tables) {
  constexpr absl::string_view kUnfit = "its parts are inconsistent: ";
  try {
    CheckpointIndex index = IndexFrom(contents);
    // Before each piece allocates a box with the tensor's number of dimensions.
    absl::Status sound = CheckTensors(index.layout);
    if (sound.ok()) {
      AddPieces(tables, index.layout);
      sound = CheckIndex(index);
    }
    if (sound.ok()) return index;
    return absl::DataLossError(absl::StrCat(kUnfit, sound.message()));
  } catch (const std::out_of_range& error) {
    return absl::DataLossError(absl::StrCat(kUnfit, error.what()));
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("its contents cannot be read: ", error.what()));
  }
}

absl::Status WriteIndex(const std::string& path, const CheckpointIndex& index) {
  data::FileImage image;
  PLAIT_ASSIGN_OR_RETURN(data::File file, data::File::Create(path, image));
  PLAIT_RETURN_IF_ERROR(WriteContents(file, index));
  for (std::int64_t t = 0; t < std::ssize(index.layout.tensors); ++t) {
    PLAIT_RETURN_IF_ERROR(
        AddVirtualTensor(file, index.layout, index.layout.tensors[t], index.layout.PiecesOfTensor(t)));
  }
  PLAIT_RETURN_IF_ERROR(data::AppendAddresses(file, image));
  return data::WriteImage(image, path);
}

absl::Status CheckHasTable(const data::AddressedFile& file) {
  const auto version = file.table().integers.find(kVersionAttribute);
  if (file.has_table() || (version != file.table().integers.end() && version->second < kFormatVersion)) {
    return absl::OkStatus();
  }
  return absl::DataLossError(absl::StrCat(
      file.path(),
      ": its address table is missing: truncated, or modified by another program since it was saved"));
}

absl::StatusOr<CheckpointIndex> ReadIndex(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const data::AddressedFile file, data::AddressedFile::Open(path));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t version, CheckFormat(file));
  PLAIT_ASSIGN_OR_RETURN(const std::string contents, file.ReadBytes(kContents));
  PLAIT_ASSIGN_OR_RETURN(const PieceTables tables, ReadTables(file, version));
  absl::StatusOr<CheckpointIndex> index = ParseIndex(contents, tables);
  if (!index.ok()) return base::Prefixed(index.status(), path);
  return index;
}

}  // namespace plait::parallel
