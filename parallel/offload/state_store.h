// Storage of training state (moments, masters, parameter shards) between its uses: in device memory, in host memory, or
// in a file on a fast disk.
//
//   std::vector<StateSlot> slots;  // one per unit: its moments in one flat tensor
//   for (const Shard& shard : dp.shards()) slots.push_back({.count = 2 * shard.layout->shard_count()});
//   PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<StateStore> store,
//                          StateStore::Create(slots, {.target = OffloadTarget::kFile, .folder = "/nvme/job"}));
//   for (std::size_t slot = 0; slot < slots.size(); ++slot) {
//     PLAIT_ASSIGN_OR_RETURN(at::Tensor state, store->Acquire(slot));
//     store->Prefetch((slot + 1) % slots.size());
//     Step(state.narrow(0, 0, n), state.narrow(0, n, n), ...);
//     PLAIT_RETURN_IF_ERROR(store->Release(slot));
//   }
//
// Slots are initially zero. Only one slot is acquired at a time; from Acquire to Release its tensor is ordinary memory
// on `device`, so results are bitwise identical for all targets.
//
// kFile: while one slot is in use, a thread writes the previous one and reads the one passed to Prefetch; acquiring a
// slot that was not prefetched waits for the disk. A read sees all writes released before it. Takes two buffers of the
// size of the largest slot. The file's space is allocated by Create, and the file has no name: it disappears when the
// process ends, even by a crash. Rajbhandari et al., "ZeRO-Infinity", arXiv:2104.07857, section 5.
//
// Errors of the file are returned by Acquire, Release and Drain, those of a write by a later call: RESOURCE_EXHAUSTED
// (disk full), DATA_LOSS (truncated file, failing disk). After one, every call returns it: the state is lost, resume
// from a checkpoint. Local: ranks have to agree on the Status themselves. Not thread-safe.
#ifndef PLAIT_PARALLEL_OFFLOAD_STATE_STORE_H_
#define PLAIT_PARALLEL_OFFLOAD_STATE_STORE_H_

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace plait::parallel {

enum class OffloadTarget {
  kMemory,  // on `device`
  kHost,    // in host memory, pinned; on `device` while acquired. The same as kMemory if `device` is the CPU.
  kFile,    // in a file in `folder`
};

absl::string_view Name(OffloadTarget target);  // "memory", "host", "file"

struct StateSlot {
  std::string name = {};
  std::int64_t count = 0;  // elements, not negative
  at::ScalarType type = at::kFloat;
};

// Slots in a file, and their buffers, are padded to a multiple of this.
inline constexpr std::int64_t kStateBlockBytes = 4096;

struct StateStoreOptions {
  OffloadTarget target = OffloadTarget::kMemory;
  at::Device device = at::Device(at::kCPU);  // of acquired tensors
  std::string folder = {};                   // kFile: directory on a disk with space for all slots
  std::string what = "optimizer state";      // the content, for error messages
};

class StateStore {
 public:
  // kFile: NOT_FOUND or PERMISSION_DENIED for `folder`, RESOURCE_EXHAUSTED if the disk has too little space,
  // UNAVAILABLE for other errors of the file system. Buffers are allocated after the file. A negative count ends the
  // program.
  static absl::StatusOr<std::unique_ptr<StateStore>> Create(std::vector<StateSlot> slots,
                                                            const StateStoreOptions& options);
  virtual ~StateStore() = default;  // pending writes are dropped
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // Returns (count), contiguous; valid until Release. The program ends if another slot is still acquired.
  virtual absl::StatusOr<at::Tensor> Acquire(std::size_t slot) = 0;
  // `changed`: keeps what was written into the tensor. False, for readers, saves writing it back; changes are then
  // lost, except with kMemory.
  virtual absl::Status Release(std::size_t slot, bool changed = true) = 0;

  // Hint that `slot` will be acquired next: starts its read, if one is needed. A wrong hint costs that read.
  virtual void Prefetch(std::size_t slot) = 0;

  // Waits for pending reads and writes.
  virtual absl::Status Drain() = 0;

  // Most bytes held on `device`, in host memory and on disk.
  virtual std::int64_t device_bytes() const = 0;
  virtual std::int64_t host_bytes() const = 0;
  virtual std::int64_t file_bytes() const = 0;
  // Number of slots acquired so far that had to be read without a prefetch; each waited for the whole read.
  virtual std::int64_t unexpected_reads() const { return 0; }

  const std::vector<StateSlot>& slots() const { return slots_; }

 protected:
  explicit StateStore(std::vector<StateSlot> slots) : slots_(std::move(slots)) {}

 private:
  std::vector<StateSlot> slots_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OFFLOAD_STATE_STORE_H_
