// Reads ranges of the pieces in one rank's file, every byte of them checked.
//
//   PLAIT_ASSIGN_OR_RETURN(ShardReader reader, ShardReader::Open(folder, index, rank));
//   PLAIT_RETURN_IF_ERROR(reader.Read(piece, first_element, end_element, destination));
//
// Only the chunks that a range touches are read; one that it touches in part goes through a buffer of one
// chunk, so that its checksum can be compared. Local.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_
#define PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file_descriptor.h"
#include "data/hdf5/file.h"
#include "parallel/checkpoint/index_file.h"

namespace plait::parallel {

class ShardReader {
 public:
  // NOT_FOUND: no such file. DATA_LOSS, naming the file: cut short, not of this checkpoint, checksums
  // damaged. `index` outlives the reader.
  static absl::StatusOr<ShardReader> Open(const std::string& folder, const CheckpointIndex& index, int rank);

  // Elements [begin, end) of the tensor, which lie in its piece index.layout.pieces[piece] of this rank, into
  // `to`. DATA_LOSS, naming file, piece and elements, where a checksum differs; `to` then holds damaged
  // numbers.
  absl::Status Read(std::size_t piece, std::int64_t begin, std::int64_t end, void* to);

  // The bytes `name` of this rank's own state: NOT_FOUND, DATA_LOSS.
  absl::StatusOr<std::string> RankState(const std::string& name) const;
  absl::StatusOr<std::vector<std::string>> RankStateNames() const;

 private:
  ShardReader(const CheckpointIndex& index, data::File file, base::FileDescriptor bytes)
      : index_(&index), file_(std::move(file)), bytes_(std::move(bytes)) {}

  absl::Status ReadChecksums(int rank);
  absl::StatusOr<std::int64_t> PlaceOf(std::size_t piece) const;
  // Bytes [begin, end) of the chunk `chunk` of a piece.
  absl::Status ReadChunk(std::size_t piece, std::int64_t place, std::int64_t chunk, std::int64_t begin,
                         std::int64_t end, char* to);

  const CheckpointIndex* index_;
  data::File file_;
  base::FileDescriptor bytes_;
  std::vector<std::uint32_t> checksums_;
  std::vector<std::int64_t> first_chunk_;  // by piece of the layout; those of other ranks are not used
  std::vector<char> chunk_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_
