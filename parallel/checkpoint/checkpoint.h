// A sharded checkpoint as a reader sees it: tensors by name, whatever ranks wrote them.
//
//   PLAIT_ASSIGN_OR_RETURN(Checkpoint checkpoint, Checkpoint::Open("run/step-000001000"));
//   PLAIT_RETURN_IF_ERROR(checkpoint.CheckTensors(specs));           // the same architecture
//   for (Shard& shard : own_shards) {                                // of any mesh and strategy
//     PLAIT_RETURN_IF_ERROR(checkpoint.Read(shard.path, shard.begin, shard.end, shard.bytes, shard.box));
//   }
//   PLAIT_RETURN_IF_ERROR(comm.Agree(status));
//
// Local: every rank opens the folder and reads what it needs, no more than the chunks of 1 MiB that its
// ranges touch; every byte that is returned was compared with its checksum. Errors are one line that names
// the file, and the tensor where there is one: NOT_FOUND (no checkpoint, a rank's file missing, no such
// tensor or text), DATA_LOSS (damaged, cut short, of another format version), INVALID_ARGUMENT (another
// architecture, a box or range outside the tensor). Not thread-safe; no other thread may use HDF5 meanwhile.
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
  // Reads the index and checks that every rank's file is there and has its size; elements are checked as they
  // are read.
  static absl::StatusOr<Checkpoint> Open(const std::string& folder);
  Checkpoint(Checkpoint&&) noexcept;
  Checkpoint& operator=(Checkpoint&&) noexcept;
  ~Checkpoint();

  const std::string& folder() const { return folder_; }
  std::int64_t step() const;
  int ranks() const;  // that wrote it
  const std::vector<TensorSpec>& tensors() const;
  // Of the tensors of a group, "model".
  struct Totals {
    std::int64_t tensors = 0, elements = 0;
  };
  Totals TotalsOf(const std::string& group) const;

  const std::map<std::string, std::string>& texts() const;
  const std::map<std::string, std::int64_t>& integers() const;
  absl::StatusOr<std::string> Text(const std::string& name) const;
  absl::StatusOr<std::int64_t> Integer(const std::string& name) const;
  // Of a text that is a number: "%a" keeps every bit. DATA_LOSS where it is none.
  absl::StatusOr<double> Number(const std::string& name) const;
  // What rank `rank` saved for itself: the state of its random numbers, for instance.
  absl::StatusOr<std::string> RankState(int rank, const std::string& name);

  // INVALID_ARGUMENT, naming up to three of them, where tensors are missing, of another type or shape, or
  // more than `expected`. Groups that `expected` does not name at all may hold anything: a sampler needs no
  // moments.
  absl::Status CheckTensors(absl::Span<const TensorSpec> expected) const;

  // Elements [begin, end) of a box of the tensor, row-major, into `to`, which has exactly their size. A box
  // without dimensions: of the whole tensor. How the ranks that saved it had cut the tensor does not matter.
  absl::Status Read(const std::string& path, std::int64_t begin, std::int64_t end, absl::Span<std::byte> to,
                    const models::Box& box = {});

  // Reads everything and compares all checksums, in bounded memory.
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
