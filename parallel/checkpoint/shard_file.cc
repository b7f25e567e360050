#include "parallel/checkpoint/shard_file.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/hdf5/address_table.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"
#include "parallel/checkpoint/stored_type.h"

namespace plait::parallel {
namespace {

using data::Handle;

// Write-back is started after every so many bytes.
constexpr std::int64_t kStartedTogether = std::int64_t{8} << 20;

// Creates a contiguous array that is allocated immediately and whose elements HDF5 never writes. Returns its file
// offset.
absl::StatusOr<std::int64_t> LayOutArray(data::File& file, const std::string& name, const Handle& type,
                                         const Handle& space) {
  const data::QuietHdf5 quiet;
  const Handle links(H5Pcreate(H5P_LINK_CREATE));
  H5Pset_create_intermediate_group(links.id(), 1);
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_layout(creation.id(), H5D_CONTIGUOUS);
  H5Pset_alloc_time(creation.id(), H5D_ALLOC_TIME_EARLY);
  H5Pset_fill_time(creation.id(), H5D_FILL_TIME_NEVER);
  const std::string where = absl::StrCat(file.path(), ": ", name);
  const Handle array(
      H5Dcreate2(file.id(), name.c_str(), type.id(), space.id(), links.id(), creation.id(), H5P_DEFAULT));
  if (!array.ok()) return data::Hdf5Error(where, "cannot be created");
  const haddr_t place = H5Dget_offset(array.id());
  if (place == HADDR_UNDEF) return data::Hdf5Error(where, "has no place in the file");
  return static_cast<std::int64_t>(place);
}

Handle FlatSpace(std::int64_t elements) {
  const hsize_t extent = elements;
  return Handle(H5Screate_simple(1, &extent, nullptr));
}

Handle SpaceOfPiece(const Layout& layout, const LayoutPiece& piece) {
  // The index links to this array (virtual_tensor.h), so it must have the tensor's shape.
  if (layout.tensors[piece.tensor].shape.empty()) return Handle(H5Screate(H5S_SCALAR));
  return FlatSpace(piece.elements());
}

absl::Status Describe(data::File& file, const Layout& layout, int rank) {
  PLAIT_RETURN_IF_ERROR(data::SetFormat(file, kShardFormat, kFormatVersion));
  PLAIT_RETURN_IF_ERROR(data::SetAttribute(file, "/", kStepAttribute, layout.step));
  return data::SetAttribute(file, "/", kRankAttribute, std::int64_t{rank});
}

absl::Status WriteRankState(data::File& file, const std::map<std::string, std::string>& rank_state) {
  for (const auto& [name, bytes] : rank_state) {
    const absl::Span<const std::uint8_t> values(reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                                bytes.size());
    PLAIT_RETURN_IF_ERROR(data::WriteChecked(file, absl::StrCat(kRankState, "/", name), values,
                                             {static_cast<std::int64_t>(bytes.size())}));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ShardFileName(int rank) { return absl::StrFormat("rank-%05d.h5", rank); }

absl::StatusOr<ShardFile> ShardFile::LayOut(const std::string& path, const Layout& layout, int rank,
                                            const std::map<std::string, std::string>& rank_state) {
  ShardFile shard;
  shard.path_ = path;
  shard.image_ = std::make_unique<data::FileImage>();
  PLAIT_ASSIGN_OR_RETURN(data::File file, data::File::Create(path, *shard.image_));
  PLAIT_RETURN_IF_ERROR(Describe(file, layout, rank));
  PLAIT_RETURN_IF_ERROR(WriteRankState(file, rank_state));
  std::int64_t chunks = 0;
  for (const LayoutPiece& piece : layout.PiecesOf(rank)) {
    PLAIT_ASSIGN_OR_RETURN(
        const std::int64_t offset,
        LayOutArray(file, "/" + layout.ArrayOf(piece), StoredType(layout.tensors[piece.tensor].dtype),
                    SpaceOfPiece(layout, piece)));
    shard.pieces_.push_back({offset, layout.BytesOf(piece)});
    chunks += (layout.BytesOf(piece) + kChunkBytes - 1) / kChunkBytes;
  }
  if (chunks > 0) {
    const Handle type(H5Tcopy(H5T_STD_U32LE));
    PLAIT_ASSIGN_OR_RETURN(shard.checksums_.offset, LayOutArray(file, kChecksums, type, FlatSpace(chunks)));
    shard.checksums_.bytes = chunks * static_cast<std::int64_t>(sizeof(std::uint32_t));
  }
  PLAIT_RETURN_IF_ERROR(data::AppendAddresses(file, *shard.image_));
  shard.summary_.bytes = shard.image_->size_bytes();
  return shard;
}

absl::Status ShardFile::Write(absl::Span<const void* const> values) {
  PLAIT_CHECK(values.size() == pieces_.size()) << values.size() << " of " << pieces_.size() << " pieces";
  const std::string folder = data::FolderOf(path_);
  // Without fsync of the parent: the folder's name matters only once it is renamed, and fsync would wait for everything
  // in the disk's queue.
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return base::DiskError(error.value(), folder, "cannot be made");
  PLAIT_RETURN_IF_ERROR(data::WriteImage(*image_, path_));
  PLAIT_ASSIGN_OR_RETURN(file_, base::FileDescriptor::Open(path_, base::FileDescriptor::Mode::kReadWrite));
  return WriteElements(values);
}

// The disk writes the elements while their checksums are computed.
absl::Status ShardFile::WriteElements(absl::Span<const void* const> values) {
  std::int64_t started = 0, end = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto* bytes = static_cast<const char*>(values[i]);
    for (std::int64_t done = 0; done < pieces_[i].bytes; done += kStartedTogether) {
      const std::int64_t count = std::min(kStartedTogether, pieces_[i].bytes - done);
      end = pieces_[i].offset + done + count;
      PLAIT_RETURN_IF_ERROR(file_->WriteAt(bytes + done, count, end - count));
      if (end - started < kStartedTogether) continue;
      file_->StartSync(started, end - started);
      started = end;
    }
  }
  file_->StartSync(started, end - started);
  const std::vector<std::uint32_t> checksums = ChecksumsOf(values);
  summary_.checksums_crc32 = data::Crc32(checksums.data(), checksums_.bytes);
  return file_->WriteAt(checksums.data(), checksums_.bytes, checksums_.offset);
}

std::vector<std::uint32_t> ShardFile::ChecksumsOf(absl::Span<const void* const> values) const {
  std::vector<std::uint32_t> checksums;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    const auto* bytes = static_cast<const char*>(values[i]);
    for (std::int64_t done = 0; done < pieces_[i].bytes; done += kChunkBytes) {
      checksums.push_back(data::Crc32(bytes + done, std::min(kChunkBytes, pieces_[i].bytes - done)));
    }
  }
  return checksums;
}

absl::Status ShardFile::Sync() {
  if (!file_.has_value()) return absl::OkStatus();
  const absl::Status synced = file_->Sync();
  file_.reset();
  return synced;
}

}  // namespace plait::parallel
