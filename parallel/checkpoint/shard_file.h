// The file of one rank: its pieces, each a flat HDF5 array of its own, and the checksums of their bytes.
//
//   PLAIT_ASSIGN_OR_RETURN(ShardFile shard, ShardFile::LayOut(path, layout, rank, rank_state));
//   PLAIT_RETURN_IF_ERROR(shard.Write(values_of_each_piece));       // any thread
//   PLAIT_RETURN_IF_ERROR(shard.Sync());                            // any thread
//
// HDF5 is not thread-safe as Debian builds it, and the training program writes HDF5 files too. So LayOut()
// lets HDF5 lay out the whole file in memory, without the elements (data/hdf5/file_image.h); Write() writes
// that and the elements where HDF5 expects them, with plain system calls that may run on any thread.
//
// File: /GROUP/NAME[begin:end], in a box /GROUP/NAME[0:3, 4:8][begin:end], contiguous and little-endian;
// /plait/checksums, uint32: CRC-32 (zlib) of every chunk of kChunkBytes of each piece (the last one of a
// piece shorter), pieces in the layout's order; /plait/rank_state/NAME, uint8 with attribute crc32. Root
// attributes: format, format_version, step, rank. Behind it, since version 3, where all these lie
// (data/hdf5/address_table.h), with which they are read.
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
// What is written. Read are, too: 1, whose pieces are ranges of whole tensors, and 2, with boxes; neither has a table of
// addresses.
inline constexpr std::int64_t kFormatVersion = 3, kFormatWithoutBoxes = 1;
inline constexpr char kShardFormat[] = "plait checkpoint shard";
inline constexpr char kChecksums[] = "/plait/checksums";
inline constexpr char kVersionAttribute[] = "format_version", kStepAttribute[] = "step",
                      kRankAttribute[] = "rank";
inline constexpr char kRankState[] = "/plait/rank_state";

// "rank-00003.h5"
std::string ShardFileName(int rank);

// What the index says about the file of a rank.
struct ShardSummary {
  std::int64_t bytes = 0;
  std::int64_t checksums_crc32 = 0;  // of the bytes of /plait/checksums

  friend bool operator==(const ShardSummary&, const ShardSummary&) = default;
};

class ShardFile {
 public:
  ShardFile() = default;  // no file
  // Touches no disk; `path` is where Write() will write. Errors of HDF5 alone.
  static absl::StatusOr<ShardFile> LayOut(const std::string& path, const Layout& layout, int rank,
                                          const std::map<std::string, std::string>& rank_state);

  // `values` holds the bytes of each piece of layout.PiecesOf(rank), in that order. Makes the folder where
  // there is none. On return the disk works on it. RESOURCE_EXHAUSTED where that has no room, said before
  // the elements are written. No HDF5, no messages between ranks.
  absl::Status Write(absl::Span<const void* const> values);
  // Until what Write() wrote is on the disk. At once where it is.
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
