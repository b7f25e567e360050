// Reads ranges of the pieces in one rank's file, every byte of them checked.
//
//   PLAIT_ASSIGN_OR_RETURN(ShardReader reader, ShardReader::Open(folder, index, rank));
//   PLAIT_RETURN_IF_ERROR(reader.Read(piece, first_element, end_element, destination));
//
// Only the chunks that a range touches are read. A chunk that it touches in part goes through a buffer, so
// that its checksum can be compared, and stays there for the next range: columns of a matrix are many short
// ranges in the same chunks. Local.
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
  // NOT_FOUND: no such file. DATA_LOSS, naming the file: cut short, not of this checkpoint, checksums
  // damaged. `index` outlives the reader.
  static absl::StatusOr<ShardReader> Open(const std::string& folder, const CheckpointIndex& index, int rank);

  // Elements [begin, end) of the box (or tensor) that index.layout.pieces[piece] is a range of, into `to`;
  // the piece is this rank's and contains them. DATA_LOSS, naming file, tensor and elements, where a checksum
  // differs; `to` then holds damaged numbers.
  absl::Status Read(std::size_t piece, std::int64_t begin, std::int64_t end, void* to);

  // The bytes `name` of this rank's own state: NOT_FOUND, DATA_LOSS.
  absl::StatusOr<std::string> RankState(const std::string& name) const;
  std::vector<std::string> RankStateNames() const;

  // That no bit differs outside of the arrays either: what HDF5 itself reads. DATA_LOSS.
  absl::Status CheckStructure() const { return file_.CheckStructure(); }

 private:
  ShardReader(const CheckpointIndex& index, data::AddressedFile file)
      : index_(&index), file_(std::move(file)) {}

  absl::Status ReadChecksums(int rank);
  // Where the piece's first byte is in the file.
  absl::StatusOr<std::int64_t> PlaceOf(std::size_t piece) const;
  // Bytes [begin, end) of the chunk `chunk` of a piece.
  absl::Status ReadChunk(std::size_t piece, std::int64_t chunk, std::int64_t begin, std::int64_t end,
                         char* to);
  absl::Status ReadWholeChunk(std::size_t piece, std::int64_t chunk, std::int64_t bytes, char* to);

  const CheckpointIndex* index_;
  data::AddressedFile file_;
  std::vector<std::uint32_t> checksums_;
  std::vector<std::int64_t> first_chunk_;  // by piece of the layout; those of other ranks are not used
  std::vector<char> chunk_;                // the one that was last read in part
  std::optional<std::pair<std::size_t, std::int64_t>> chunk_of_;  // its piece, and number therein
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_SHARD_READER_H_
