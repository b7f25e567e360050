// The StateStore with its slots in a file. Private to parallel/offload.
//
// One thread does all I/O, in the order of a queue. While a slot is in use, the queue holds the write of the previous
// slot and then the read of the expected one; the write frees the buffer that the read uses, so two buffers suffice,
// and a slot is never read before its last write.
#ifndef PLAIT_PARALLEL_OFFLOAD_FILE_STORE_H_
#define PLAIT_PARALLEL_OFFLOAD_FILE_STORE_H_

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "parallel/offload/block_file.h"
#include "parallel/offload/state_store.h"

namespace plait::parallel {

class FileStore final : public StateStore {
 public:
  static absl::StatusOr<std::unique_ptr<StateStore>> Create(std::vector<StateSlot> slots,
                                                            const StateStoreOptions& options);
  ~FileStore() override;

  absl::StatusOr<at::Tensor> Acquire(std::size_t slot) override;
  absl::Status Release(std::size_t slot, bool changed) override;
  void Prefetch(std::size_t slot) override;
  absl::Status Drain() override;
  std::int64_t device_bytes() const override { return device_.is_cpu() ? 0 : buffer_bytes_; }
  std::int64_t host_bytes() const override { return 2 * buffer_bytes_; }
  std::int64_t file_bytes() const override { return file_.bytes(); }
  std::int64_t unexpected_reads() const override { return unexpected_reads_; }

 private:
  struct FreeMemory {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  struct Buffer {
    std::unique_ptr<std::byte, FreeMemory> memory;
    std::optional<std::size_t> slot;  // empty: free
  };
  struct Job {
    bool write = false;
    std::size_t slot = 0;
  };

  FileStore(std::vector<StateSlot> slots, at::Device device, BlockFile file,
            std::vector<std::int64_t> offsets, std::int64_t buffer_bytes);
  std::int64_t SlotBytes(std::size_t slot) const { return offsets_[slot + 1] - offsets_[slot]; }
  at::Tensor TensorOf(const Buffer& buffer, std::size_t slot) const;
  // The next four are called with mutex_ held.
  Buffer* BufferOf(std::optional<std::size_t> slot);
  void Enqueue(const Job& job);
  void WaitUntilIdle(std::unique_lock<std::mutex>& lock);
  bool Coming(std::size_t slot) const;
  void Work();
  absl::Status Do(const Job& job, std::unique_lock<std::mutex>& lock);

  at::Device device_;
  BlockFile file_;
  std::vector<std::int64_t> offsets_;  // in the file, one more than slots
  std::int64_t buffer_bytes_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // the first is in progress
  std::array<Buffer, 2> buffers_;
  absl::Status status_;
  bool stop_ = false;

  std::optional<std::size_t> acquired_;
  std::optional<std::size_t> expected_;  // the prefetched slot, until it is acquired
  std::int64_t unexpected_reads_ = 0;
  at::Tensor in_use_;
  std::thread thread_;  // last: uses all of the above
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OFFLOAD_FILE_STORE_H_
