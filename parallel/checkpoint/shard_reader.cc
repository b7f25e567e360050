#include "parallel/checkpoint/shard_reader.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/checked_array.h"
#include "parallel/checkpoint/shard_file.h"

namespace plait::parallel {
namespace {

absl::Status CheckSize(const base::FileDescriptor& bytes, const std::string& path, std::int64_t expected) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t size, bytes.SizeBytes());
  if (size == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(path, ": has ", size, " bytes, expected ", expected,
                                          ": truncated, or from another checkpoint"));
}

absl::Status CheckDescription(const data::AddressedFile& file, std::int64_t step, int rank) {
  const std::map<std::string, std::int64_t>& numbers = file.table().integers;
  const auto its_step = numbers.find(kStepAttribute), its_rank = numbers.find(kRankAttribute);
  if (file.table().format != kShardFormat || its_step == numbers.end() || its_rank == numbers.end()) {
    return absl::DataLossError(absl::StrCat(file.path(), ": an HDF5 file, but not part of a checkpoint"));
  }
  PLAIT_RETURN_IF_ERROR(CheckHasTable(file));
  if (its_step->second == step && its_rank->second == rank) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path(), ": of step ", its_step->second, ", rank ",
                                          its_rank->second, "; expected step ", step, ", rank ", rank));
}

}  // namespace

absl::StatusOr<ShardReader> ShardReader::Open(const std::string& folder, const CheckpointIndex& index,
                                              int rank) {
  const std::string path = absl::StrCat(folder, "/", ShardFileName(rank));
  PLAIT_ASSIGN_OR_RETURN(data::AddressedFile file, data::AddressedFile::Open(path));
  PLAIT_RETURN_IF_ERROR(CheckSize(file.bytes(), path, index.shards[rank].bytes));
  PLAIT_RETURN_IF_ERROR(CheckDescription(file, index.layout.step, rank));
  ShardReader reader(index, std::move(file));
  PLAIT_RETURN_IF_ERROR(reader.ReadChecksums(rank));
  return reader;
}

absl::Status ShardReader::ReadChecksums(int rank) {
  const Layout& layout = index_->layout;
  std::int64_t chunks = 0;
  for (const LayoutPiece& piece : layout.pieces) {
    first_chunk_.push_back(chunks);
    if (piece.rank == rank) chunks += (layout.BytesOf(piece) + index_->chunk_bytes - 1) / index_->chunk_bytes;
  }
  const auto bytes = chunks * static_cast<std::int64_t>(sizeof(std::uint32_t));
  const data::AddressTable::Array* const place = file_.Find(kChecksums);
  const bool fits = chunks == 0 || (place != nullptr && place->bytes == bytes);
  if (fits && chunks > 0) {
    checksums_.resize(chunks);
    PLAIT_RETURN_IF_ERROR(file_.bytes().ReadAt(checksums_.data(), bytes, place->offset));
  }
  if (fits && data::Crc32(checksums_.data(), bytes) == index_->shards[rank].checksums_crc32)
    return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(file_.path(), ": ", kChecksums, " is not what the index expects, the file is damaged"));
}

absl::StatusOr<std::int64_t> ShardReader::PlaceOf(std::size_t piece) const {
  const LayoutPiece& about = index_->layout.pieces[piece];
  const std::string name = "/" + index_->layout.ArrayOf(about);
  const data::AddressTable::Array* const place = file_.Find(name);
  if (place != nullptr && place->bytes == index_->layout.BytesOf(about)) return place->offset;
  return absl::DataLossError(
      absl::StrCat(file_.path(), ": ", name, ": ",
                   place == nullptr ? "not in the file" : "not stored as a checkpoint stores it"));
}

absl::Status ShardReader::ReadWholeChunk(std::size_t piece, std::int64_t chunk, std::int64_t bytes,
                                         char* to) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t place, PlaceOf(piece));
  const std::int64_t first = chunk * index_->chunk_bytes;
  PLAIT_RETURN_IF_ERROR(file_.bytes().ReadAt(to, bytes, place + first));
  if (data::Crc32(to, bytes) == checksums_[first_chunk_[piece] + chunk]) return absl::OkStatus();
  const LayoutPiece& about = index_->layout.pieces[piece];
  const TensorSpec& tensor = index_->layout.tensors[about.tensor];
  const std::int64_t element = ElementBytes(tensor.dtype), begin = about.range.begin + first / element;
  return absl::DataLossError(absl::StrCat(file_.path(), ": ", PathOf(tensor), ": checksum of elements ",
                                          index_->layout.TextOf(about, begin, begin + bytes / element),
                                          " does not match, the file is damaged"));
}

absl::Status ShardReader::ReadChunk(std::size_t piece, std::int64_t chunk, std::int64_t begin,
                                    std::int64_t end, char* to) {
  const std::int64_t left =
      index_->layout.BytesOf(index_->layout.pieces[piece]) - chunk * index_->chunk_bytes;
  const std::int64_t bytes = std::min(index_->chunk_bytes, left);
  if (begin == 0 && end == bytes) return ReadWholeChunk(piece, chunk, bytes, to);
  if (chunk_of_ != std::make_pair(piece, chunk)) {
    chunk_.resize(index_->chunk_bytes);
    chunk_of_.reset();
    PLAIT_RETURN_IF_ERROR(ReadWholeChunk(piece, chunk, bytes, chunk_.data()));
    chunk_of_.emplace(piece, chunk);
  }
  std::memcpy(to, chunk_.data() + begin, end - begin);
  return absl::OkStatus();
}

absl::Status ShardReader::Read(std::size_t piece, std::int64_t begin, std::int64_t end, void* to) {
  const LayoutPiece& about = index_->layout.pieces[piece];
  const std::int64_t element = ElementBytes(index_->layout.tensors[about.tensor].dtype);
  const std::int64_t first_byte = (begin - about.range.begin) * element;
  const std::int64_t end_byte = (end - about.range.begin) * element;
  const std::int64_t chunk_bytes = index_->chunk_bytes;
  for (std::int64_t chunk = first_byte / chunk_bytes; chunk * chunk_bytes < end_byte; ++chunk) {
    const std::int64_t from = std::max(first_byte, chunk * chunk_bytes);
    const std::int64_t until = std::min(end_byte, (chunk + 1) * chunk_bytes);
    PLAIT_RETURN_IF_ERROR(ReadChunk(piece, chunk, from - chunk * chunk_bytes, until - chunk * chunk_bytes,
                                    static_cast<char*>(to) + (from - first_byte)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ShardReader::RankState(const std::string& name) const {
  const std::string array = absl::StrCat(kRankState, "/", name);
  if (file_.Find(array) != nullptr) return file_.ReadBytes(array);
  return absl::NotFoundError(absl::StrCat(file_.path(), ": ", array, ": not in the file"));
}

std::vector<std::string> ShardReader::RankStateNames() const {
  const std::string group = absl::StrCat(kRankState, "/");
  const auto& arrays = file_.table().arrays;
  std::vector<std::string> names;
  for (auto array = arrays.lower_bound(group); array != arrays.end() && absl::StartsWith(array->first, group);
       ++array) {
    names.push_back(array->first.substr(group.size()));
  }
  return names;
}

}  // namespace plait::parallel
