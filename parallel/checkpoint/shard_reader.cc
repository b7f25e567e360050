#include "parallel/checkpoint/shard_reader.h"

#include <algorithm>
#include <cstring>

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
                                          ": cut short, or of another checkpoint"));
}

absl::Status CheckDescription(const data::File& file, std::int64_t step, int rank) {
  const absl::StatusOr<std::string> format = data::TextAttribute(file, "/", "format");
  const absl::StatusOr<std::int64_t> its_step = data::IntAttribute(file, "/", "step");
  const absl::StatusOr<std::int64_t> its_rank = data::IntAttribute(file, "/", "rank");
  if (!format.ok() || *format != kShardFormat || !its_step.ok() || !its_rank.ok()) {
    return absl::DataLossError(absl::StrCat(file.path(), ": an HDF5 file, but no part of a checkpoint"));
  }
  if (*its_step == step && *its_rank == rank) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(file.path(), ": of step ", *its_step, ", rank ", *its_rank,
                                          "; expected step ", step, ", rank ", rank));
}

}  // namespace

absl::StatusOr<ShardReader> ShardReader::Open(const std::string& folder, const CheckpointIndex& index,
                                              int rank) {
  const std::string path = absl::StrCat(folder, "/", ShardFileName(rank));
  PLAIT_ASSIGN_OR_RETURN(base::FileDescriptor bytes,
                         base::FileDescriptor::Open(path, base::FileDescriptor::Mode::kRead));
  PLAIT_RETURN_IF_ERROR(CheckSize(bytes, path, index.shards[rank].bytes));
  PLAIT_ASSIGN_OR_RETURN(data::File file, data::File::Open(path));
  PLAIT_RETURN_IF_ERROR(CheckDescription(file, index.layout.step, rank));
  ShardReader reader(index, std::move(file), std::move(bytes));
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
  if (chunks > 0) {
    PLAIT_ASSIGN_OR_RETURN(checksums_, data::ReadArray<std::uint32_t>(file_, kChecksums));
  }
  const auto bytes = static_cast<std::int64_t>(checksums_.size() * sizeof(std::uint32_t));
  if (static_cast<std::int64_t>(checksums_.size()) == chunks &&
      data::Crc32(checksums_.data(), bytes) == index_->shards[rank].checksums_crc32) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat(file_.path(), ": ", kChecksums, " is not what the index expects, the file is damaged"));
}

absl::StatusOr<std::int64_t> ShardReader::PlaceOf(std::size_t piece) {
  const auto known = places_.find(piece);
  if (known != places_.end()) return known->second;
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t place, FindPlace(piece));
  places_.emplace(piece, place);
  return place;
}

absl::StatusOr<std::int64_t> ShardReader::FindPlace(std::size_t piece) const {
  const data::QuietHdf5 quiet;
  const LayoutPiece& about = index_->layout.pieces[piece];
  const std::string name = "/" + index_->layout.ArrayOf(about);
  const std::string where = absl::StrCat(file_.path(), ": ", name);
  if (!file_.Has(name)) return absl::DataLossError(absl::StrCat(where, ": not in the file"));
  const data::Handle array(H5Dopen2(file_.id(), name.c_str(), H5P_DEFAULT));
  if (!array.ok()) return data::Hdf5Error(where, "cannot be opened");
  const data::Handle space(H5Dget_space(array.id()));
  const haddr_t place = H5Dget_offset(array.id());
  const auto bytes = static_cast<std::uint64_t>(index_->layout.BytesOf(about));
  // `place` may be anything in a damaged file, HADDR_UNDEF, the largest number, among others.
  if (H5Sget_simple_extent_npoints(space.id()) == about.elements() &&
      H5Dget_storage_size(array.id()) == bytes && place <= static_cast<std::uint64_t>(INT64_MAX) - bytes) {
    return static_cast<std::int64_t>(place);
  }
  return absl::DataLossError(absl::StrCat(where, ": not stored as a checkpoint stores it"));
}

absl::Status ShardReader::ReadWholeChunk(std::size_t piece, std::int64_t chunk, std::int64_t bytes,
                                         char* to) {
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t place, PlaceOf(piece));
  const std::int64_t first = chunk * index_->chunk_bytes;
  PLAIT_RETURN_IF_ERROR(bytes_.ReadAt(to, bytes, place + first));
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
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes,
                         data::ReadChecked<std::uint8_t>(file_, absl::StrCat(kRankState, "/", name)));
  return std::string(bytes.begin(), bytes.end());
}

absl::StatusOr<std::vector<std::string>> ShardReader::RankStateNames() const {
  if (!file_.Has(kRankState)) return std::vector<std::string>();
  return file_.Names(kRankState);
}

}  // namespace plait::parallel
