// The file of one rank: its pieces, each a flat HDF5 array, and the checksums of their bytes.
//
//   PLAIT_ASSIGN_OR_RETURN(ShardFile shard, ShardFile::LayOut(path, layout, rank, rank_state));
//   PLAIT_RETURN_IF_ERROR(shard.Write(values_of_each_piece));       // any thread
//   PLAIT_RETURN_IF_ERROR(shard.Sync());                            // any thread
//
// Debian's HDF5 is not thread-safe, and the training program writes HDF5 files too. So LayOut() lets HDF5 lay out the
// whole file in memory, without the elements (data/hdf5/file_image.h); Write() writes this image, and the elements to
// the offsets that HDF5 has allocated, with plain system calls, which may run on any thread.
//
// File: /GROUP/NAME[begin:end], in a box /GROUP/NAME[0:3, 4:8][begin:end], contiguous and little-endian;
// /plait/checksums, uint32: CRC-32 (zlib) of every chunk of kChunkBytes of each piece (the last one of a
// piece shorter), pieces in the layout's order; /plait/rank_state/NAME, uint8 with attribute crc32. Root
// attributes: format, format_version, step, rank. Since version 3 a table of the arrays' offsets is appended
// (data/hdf5/address_table.h); files are read with it.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SHARD_FILE_H_
#define PLAIT_PARALLEL_CHECKPOINT_SHARD_FILE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file_descriptor.h"
#include "data/hdf5/file_image.h"
#include "parallel/checkpoint/layout.h"

namespace plait::parallel {

inline constexpr std::int64_t kChunkBytes = std::int64_t{1} << 20;
// The version that is written. Also read: 1, whose pieces are ranges of whole tensors, and 2, with boxes; neither has
// an address table.
inline constexpr std::int64_t kFormatVersion = 3, kFormatWithoutBoxes = 1;
inline constexpr char kShardFormat[] = "plait checkpoint shard";
inline constexpr char kChecksums[] = "/plait/checksums";
inline constexpr char kVersionAttribute[] = "format_version", kStepAttribute[] = "step",
                      kRankAttribute[] = "rank";
inline constexpr char kRankState[] = "/plait/rank_state";

// "rank-00003.h5"
std::string ShardFileName(int rank);

// What the index records about the file of a rank.
struct ShardSummary {
  std::int64_t bytes = 0;
  std::int64_t checksums_crc32 = 0;  // of the bytes of /plait/checksums

  friend bool operator==(const ShardSummary&, const ShardSummary&) = default;
};

class ShardFile {
 public:
  ShardFile() = default;  // no file
  // Does not touch the disk; `path` is where Write() will write. Returns HDF5's errors.
  static absl::StatusOr<ShardFile> LayOut(const std::string& path, const Layout& layout, int rank,
                                          const std::map<std::string, std::string>& rank_state);

  // `values` points to the elements of each piece of layout.PiecesOf(rank), in that order. Creates the folder if
  // necessary. Starts write-back, but does not wait for it: see Sync(). RESOURCE_EXHAUSTED, before the elements are
  // written, if the disk is full. Uses neither HDF5 nor messages.
  absl::Status Write(absl::Span<const void* const> values);
  // Waits until the file is on the disk (fsync). Later calls return immediately.
  absl::Status Sync();

  // Complete after Write().
  const ShardSummary& summary() const { return summary_; }

 private:
  struct Place {
    std::int64_t offset = 0, bytes = 0;
  };

  absl::Status WriteElements(absl::Span<const void* const> values);
  std::vector<std::uint32_t> ChecksumsOf(absl::Span<const void* const> values) const;

  std::string path_;
  std::optional<base::FileDescriptor> file_;  // from Write() to Sync()
  std::unique_ptr<data::FileImage> image_;
  std::vector<Place> pieces_;
  Place checksums_;
  ShardSummary summary_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SHARD_FILE_H_
