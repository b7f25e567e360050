// Reads ranges of the pieces in one rank's file and verifies their checksums.
//
//   PLAIT_ASSIGN_OR_RETURN(ShardReader reader, ShardReader::Open(folder, index, rank));
//   PLAIT_RETURN_IF_ERROR(reader.Read(piece, first_element, end_element, destination));
//
// Only the chunks that a range touches are read. A partially touched chunk is read whole into a buffer, so that its
// checksum can be verified, and stays there for the next range: the columns of a matrix are many short ranges in the
// same chunks. Local.
#ifndef PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_
#define PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "data/hdf5/addressed_file.h"
#include "parallel/checkpoint/index_file.h"

namespace plait::parallel {

class ShardReader {
 public:
  // NOT_FOUND if there is no such file; DATA_LOSS, naming the file, if it is truncated, belongs to another checkpoint,
  // or its checksums are damaged. `index` must outlive the reader.
  static absl::StatusOr<ShardReader> Open(const std::string& folder, const CheckpointIndex& index, int rank);

  // Reads elements [begin, end) of the box (or tensor) of index.layout.pieces[piece] into `to`. The piece must be this
  // rank's and contain them. DATA_LOSS, naming file, tensor and elements, if a checksum differs; `to` may then hold
  // damaged values.
  absl::Status Read(std::size_t piece, std::int64_t begin, std::int64_t end, void* to);

  // Returns this rank's state `name`. NOT_FOUND, DATA_LOSS.
  absl::StatusOr<std::string> RankState(const std::string& name) const;
  std::vector<std::string> RankStateNames() const;

  // Verifies the checksum of all bytes outside the arrays: HDF5's own structures. DATA_LOSS.
  absl::Status CheckStructure() const { return file_.CheckStructure(); }

 private:
  ShardReader(const CheckpointIndex& index, data::AddressedFile file)
      : index_(&index), file_(std::move(file)) {}

  absl::Status ReadChecksums(int rank);
  // File offset of the piece's first byte.
  absl::StatusOr<std::int64_t> PlaceOf(std::size_t piece) const;
  // Bytes [begin, end) of the chunk `chunk` of a piece.
  absl::Status ReadChunk(std::size_t piece, std::int64_t chunk, std::int64_t begin, std::int64_t end,
                         char* to);
  absl::Status ReadWholeChunk(std::size_t piece, std::int64_t chunk, std::int64_t bytes, char* to);

  const CheckpointIndex* index_;
  data::AddressedFile file_;
  std::vector<std::uint32_t> checksums_;
  std::vector<std::int64_t> first_chunk_;  // by piece of the layout; entries of other ranks are unused
  std::vector<char> chunk_;                // the last chunk that was read in part
  std::optional<std::pair<std::size_t, std::int64_t>> chunk_of_;  // its piece, and its index in the piece
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_
