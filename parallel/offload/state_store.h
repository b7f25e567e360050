// Where training state (moments, masters, shares of parameters) lives between its uses: in the memory that
// computes, in host memory, or in a file on a fast disk.
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
// Slots begin as zeros. One slot is acquired at a time; from Acquire to Release its tensor is ordinary memory
// on `device`, and a step computes the same bits wherever the state lives.
//
// kFile: while one slot is in use, a thread writes the one used before it and reads the one that Prefetch has
// named; a slot that was not prefetched works too and waits for the disk. A read follows the writes released
// before it. Two buffers of the largest slot's size are all the memory it takes. The file has its whole room
// on the disk from Create on, and no name: it is gone when the process ends, however it ends. Rajbhandari et
// al., "ZeRO-Infinity", arXiv:2104.07857, section 5.
//
// Errors (disk full, file cut short, a failing disk) are a Status with the file and what to do; those of a
// write come out of the next call. After one, every call returns it: the state is lost, go on from a
// checkpoint. Local: ranks that share a decision agree on the Status. Not thread-safe.
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
  kHost,    // in host memory; on `device` while acquired. The same as kMemory where `device` is the host.
  kFile,
};

absl::string_view Name(OffloadTarget target);  // "memory", "host", "file"

struct StateSlot {
  std::string name = {};
  std::int64_t count = 0;  // elements, not negative
  at::ScalarType type = at::kFloat;
};

// A slot in a file, and its buffers, take a multiple of it.
inline constexpr std::int64_t kStateBlockBytes = 4096;

struct StateStoreOptions {
  OffloadTarget target = OffloadTarget::kMemory;
  at::Device device = at::Device(at::kCPU);  // of acquired tensors
  std::string folder = {};                   // kFile: of a disk with room for all slots
  std::string what = "optimizer state";      // that errors name
};

class StateStore {
 public:
  // Nothing is allocated per slot before its room is known to be there. kFile: NotFound, PermissionDenied
  // for the folder; ResourceExhausted where the disk has no room, with what is needed.
  static absl::StatusOr<std::unique_ptr<StateStore>> Create(std::vector<StateSlot> slots,
                                                            const StateStoreOptions& options);
  virtual ~StateStore() = default;  // what was not written is lost
  StateStore(const StateStore&) = delete;
  StateStore& operator=(const StateStore&) = delete;

  // (count), contiguous; valid until Release. To acquire a slot before the last one is released is a
  // programming error.
  virtual absl::StatusOr<at::Tensor> Acquire(std::size_t slot) = 0;
  // `changed`: what was written into the tensor counts. False saves the way back, for a reader.
  virtual absl::Status Release(std::size_t slot, bool changed = true) = 0;

  // `slot` will be acquired next: its read starts now, where one is needed. A wrong guess costs that read.
  virtual void Prefetch(std::size_t slot) = 0;

  // Waits for what is under way.
  virtual absl::Status Drain() = 0;

  // Held on `device`, in host memory and on the disk, at most.
  virtual std::int64_t device_bytes() const = 0;
  virtual std::int64_t host_bytes() const = 0;
  virtual std::int64_t file_bytes() const = 0;
  // Slots acquired so far that had to be read and that nobody prefetched: each waited for the whole read.
  virtual std::int64_t unexpected_reads() const { return 0; }

  const std::vector<StateSlot>& slots() const { return slots_; }

 protected:
  explicit StateStore(std::vector<StateSlot> slots) : slots_(std::move(slots)) {}

 private:
  std::vector<StateSlot> slots_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OFFLOAD_STATE_STORE_H_
