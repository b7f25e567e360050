#include "parallel/checkpoint/index_file.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "absl/strings/str_cat.h"
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

// What the file says about pieces, in version 1 without boxes.
struct PieceTables {
  std::int64_t columns = 4;
  std::vector<std::int64_t> pieces, boxes;
};

PieceTables TablesOf(const Layout& layout) {
  PieceTables tables;
  if (layout.HasBoxes()) tables.columns = 5;
  const models::Box* last = nullptr;
  for (const LayoutPiece& piece : layout.pieces) {
    tables.pieces.insert(tables.pieces.end(), {piece.tensor, piece.rank, piece.range.begin, piece.range.end});
    if (tables.columns == 4) continue;
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
  PLAIT_RETURN_IF_ERROR(data::SetFormat(file, kIndexFormat, FormatVersionOf(index.layout)));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", "step", index.layout.step));
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
absl::StatusOr<std::int64_t> CheckFormat(const data::File& file) {
  const absl::StatusOr<std::string> format = data::TextAttribute(file, "/", "format");
  absl::StatusOr<std::int64_t> version = data::IntAttribute(file, "/", "format_version");
  if (!format.ok() || *format != kIndexFormat || !version.ok()) {
    return absl::DataLossError(
        absl::StrCat(file.path(), ": an HDF5 file, but not the index of a checkpoint"));
  }
  if (*version == kFormatWithoutBoxes || *version == kFormatWithBoxes) return version;
  return absl::DataLossError(absl::StrCat(
      file.path(), ": checkpoint of format ", *version, ", this program reads formats ", kFormatWithoutBoxes,
      " and ", kFormatWithBoxes, "; ",
      *version > kFormatWithBoxes ? "use the newer version of the program that wrote it"
                                  : "load it with the version that wrote it and save it with one that writes "
                                    "both, or start anew"));
}

absl::StatusOr<PieceTables> ReadTables(const data::File& file, std::int64_t version) {
  PieceTables tables;
  PLAIT_ASSIGN_OR_RETURN(tables.pieces, data::ReadChecked<std::int64_t>(file, kPieces));
  if (version == kFormatWithoutBoxes) return tables;
  tables.columns = 5;
  PLAIT_ASSIGN_OR_RETURN(tables.boxes, data::ReadChecked<std::int64_t>(file, kBoxes));
  return tables;
}

at::ScalarType KnownType(const std::string& name) {
  const std::optional<at::ScalarType> type = TypeNamed(name);
  if (!type.has_value()) throw std::invalid_argument("unknown type " + name);
  return *type;
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
        {tensor.at("group"), tensor.at("name"), KnownType(tensor.at("dtype")), tensor.at("shape")});
  }
  for (const Json& shard : json.at("shards")) {
    index.shards.push_back({shard.at("bytes"), shard.at("checksums_crc32")});
  }
  index.texts = json.at("texts");
  index.integers = json.at("integers");
  return index;
}

// Adds the pieces of the tables to the layout. Throws where they refer to what is not there.
void AddPieces(const PieceTables& tables, Layout& layout) {
  for (std::size_t row = 0; row + tables.columns <= tables.pieces.size(); row += tables.columns) {
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

// Whatever a file says, later code must not step outside its arrays.
bool IsSound(const CheckpointIndex& index) {
  const Layout& layout = index.layout;
  bool sound = layout.ranks > 0 && static_cast<int>(index.shards.size()) == layout.ranks &&
               layout.step >= 0 && index.chunk_bytes > 0 && index.chunk_bytes % 8 == 0;
  for (const LayoutPiece& piece : layout.pieces) {
    const BoxRange& range = piece.range;
    sound = sound && piece.rank >= 0 && piece.rank < layout.ranks &&
            IsInside(range.box, layout.tensors[piece.tensor].shape) && range.begin >= 0 &&
            range.begin < range.end && range.end <= ElementsOf(range.box.size);
  }
  sound = sound && std::is_sorted(layout.pieces.begin(), layout.pieces.end(), PrecedesInLayout);
  return sound && CheckCoverage(layout).ok();
}

absl::StatusOr<CheckpointIndex> ParseIndex(const std::string& contents, const PieceTables& tables) {
  try {
    CheckpointIndex index = IndexFrom(contents);
    AddPieces(tables, index.layout);
    if (IsSound(index)) return index;
    return absl::DataLossError("its parts do not fit together");
  } catch (const std::out_of_range&) {
    return absl::DataLossError("its parts do not fit together");
  } catch (const std::exception& error) {
    return absl::DataLossError(absl::StrCat("its contents cannot be read: ", error.what()));
  }
}

absl::StatusOr<CheckpointIndex> IndexOf(const data::File& file) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t version, CheckFormat(file));
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> contents,
                         data::ReadChecked<std::uint8_t>(file, kContents));
  PLAIT_ASSIGN_OR_RETURN(const PieceTables tables, ReadTables(file, version));
  absl::StatusOr<CheckpointIndex> index = ParseIndex({contents.begin(), contents.end()}, tables);
  if (!index.ok()) return base::Prefixed(index.status(), file.path());
  return index;
}

}  // namespace

absl::Status WriteIndex(const std::string& path, const CheckpointIndex& index) {
  data::FileImage image;
  PLAIT_ASSIGN_OR_RETURN(data::File file, data::File::Create(path, image));
  PLAIT_RETURN_IF_ERROR(WriteContents(file, index));
  for (std::int64_t t = 0; t < std::ssize(index.layout.tensors); ++t) {
    PLAIT_RETURN_IF_ERROR(
        AddVirtualTensor(file, index.layout, index.layout.tensors[t], index.layout.PiecesOfTensor(t)));
  }
  PLAIT_RETURN_IF_ERROR(file.Close());
  return data::WriteImage(image, path);
}

absl::StatusOr<CheckpointIndex> ReadIndex(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const data::File file, data::File::Open(path));
  absl::StatusOr<CheckpointIndex> index = IndexOf(file);
  if (!absl::IsNotFound(index.status())) return index;
  return absl::DataLossError(absl::StrCat(index.status().message(), ", it is damaged"));
}

}  // namespace plait::parallel
