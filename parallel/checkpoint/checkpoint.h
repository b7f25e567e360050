// Reads a sharded checkpoint: tensors by name, independent of the mesh that wrote them.
//
//   PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open("run/step-000001000"));
//   PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(specs));           // the same architecture
//   for (Shard& shard : own_shards) {                                // any mesh, any strategy
//     PLAIT_RETURN_IF_ERROR(checkpoint.Read(shard.path, shard.begin, shard.end, shard.bytes, shard.box));
//   }
//   PLAIT_RETURN_IF_ERROR(comm.Agree(status));
//
// Local: every rank opens the folder and reads only the 1 MiB chunks that its ranges touch; the checksum of each
// chunk is verified. Errors are one line that names the file and, if there is one, the tensor: NOT_FOUND (no
// checkpoint, a rank's file is missing, no such tensor, text, integer or rank state), DATA_LOSS (damaged, truncated,
// unsupported format version), INVALID_ARGUMENT (another architecture, a box or range outside the tensor).
// Not thread-safe. Checkpoints of format versions 1 and 2 are read with HDF5: no other thread may use it meanwhile.
#ifndef PLAIT_PARALLEL_CHECKPOINT_CHECKPOINT_H_
#define PLAIT_PARALLEL_CHECKPOINT_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "parallel/checkpoint/tensor_piece.h"

namespace plait::parallel {

struct CheckpointIndex;  // index_file.h
class ShardReader;       // shard_reader.h

class Checkpoint {
 public:
  // Reads the index and checks that every rank's file exists and has the expected size; elements are verified when
  // they are read.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& folder() const { return folder_; }
  std::int64_t step() const;
  int ranks() const;  // number of ranks that wrote it
  const std::vector<TensorSpec>& tensors() const;
  const TensorSpec* Find(const std::string& path) const;  // nullptr: no such tensor
  // Numbers of tensors and elements in a group, e.g. "model".
  struct Totals {
    std::int64_t tensors = 0, elements = 0;
  };
  Totals TotalsOf(const std::string& group) const;

  const std::map<std::string, std::string>& texts() const;
  const std::map<std::string, std::int64_t>& integers() const;
  absl::StatusOr<std::string> Text(const std::string& name) const;
  absl::StatusOr<std::int64_t> Integer(const std::string& name) const;
  // Parses a text as a double; write it with "%a" to keep every bit. DATA_LOSS if it is not a number.
  absl::StatusOr<double> Number(const std::string& name) const;
  // Returns CheckpointState::rank_state[name] of rank `rank`, e.g. the state of its random number generator.
  absl::StatusOr<std::string> RankState(int rank, const std::string& name);

  // INVALID_ARGUMENT, naming the first three, if tensors are missing, have another type or shape, or are not in
  // `expected`. Groups that do not occur in `expected` are ignored: text generation needs no moments.
  absl::Status CheckTensors(absl::Span<const TensorSpec> expected) const;

  // Reads elements [begin, end) of a box of the tensor, row-major, into `to`, which must have exactly their size in
  // bytes. An empty box (no dimensions) means the whole tensor. Independent of how the tensor was cut when saved.
  absl::Status Read(const std::string& path, std::int64_t begin, std::int64_t end, absl::Span<std::byte> to,
                    const models::Box& box = {});

  // Reads everything and verifies all checksums, one chunk at a time. DATA_LOSS.
  absl::Status Verify();

 private:
  Checkpoint(std::string folder, std::unique_ptr<CheckpointIndex> index);
  absl::StatusOr<ShardReader*> ReaderOf(int rank);
  absl::Status VerifyRank(int rank, std::vector<std::byte>& buffer);

  std::string folder_;
  std::unique_ptr<CheckpointIndex> index_;
  std::map<std::string, std::size_t> by_path_;
  std::vector<std::unique_ptr<ShardReader>> readers_;  // by rank, opened when needed
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_CHECKPOINT_H_
