#include "parallel/offload/file_store.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace plait::parallel {

absl::StatusOr<std::unique_ptr<StateStore>> FileStore::Create(std::vector<StateSlot> slots,
                                                              const StateStoreOptions& options) {
  std::vector<std::int64_t> offsets = {0};
  std::int64_t largest = 0;
  for (const StateSlot& slot : slots) {
    const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(slot.type));
    const std::int64_t bytes = BlockFile::Aligned(slot.count * element_bytes);
    offsets.push_back(offsets.back() + bytes);
    largest = std::max(largest, bytes);
  }
  PLAIT_ASSIGN_OR_RETURN(BlockFile file, BlockFile::Create(options.what, options.folder, offsets.back()));
  return std::unique_ptr<StateStore>(
      new FileStore(std::move(slots), options.device, std::move(file), std::move(offsets), largest));
}

FileStore::FileStore(std::vector<StateSlot> slots, at::Device device, BlockFile file,
                     std::vector<std::int64_t> offsets, std::int64_t buffer_bytes)
    : StateStore(std::move(slots)),
      device_(device),
      file_(std::move(file)),
      offsets_(std::move(offsets)),
      buffer_bytes_(buffer_bytes) {
  for (Buffer& buffer : buffers_) {
    const std::int64_t bytes = std::max(buffer_bytes_, BlockFile::kAlignment);
    buffer.memory.reset(static_cast<std::byte*>(std::aligned_alloc(BlockFile::kAlignment, bytes)));
    PLAIT_CHECK(buffer.memory != nullptr) << "no memory for " << bytes << " bytes of optimizer state";
    // The padding after a slot is written as well.
    std::fill_n(buffer.memory.get(), bytes, std::byte{0});
  }
  thread_ = std::thread([this] { Work(); });
}

FileStore::~FileStore() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

at::Tensor FileStore::TensorOf(const Buffer& buffer, std::size_t slot) const {
  return at::from_blob(buffer.memory.get(), {slots()[slot].count}, at::TensorOptions(slots()[slot].type));
}

FileStore::Buffer* FileStore::BufferOf(std::optional<std::size_t> slot) {
  const auto found = std::find_if(buffers_.begin(), buffers_.end(),
                                  [slot](const Buffer& buffer) { return buffer.slot == slot; });
  return found == buffers_.end() ? nullptr : &*found;
}

void FileStore::Enqueue(const Job& job) {
  jobs_.push_back(job);
  changed_.notify_all();
}

void FileStore::WaitUntilIdle(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return jobs_.empty(); });
}

// Whether its read is queued or in progress.
bool FileStore::Coming(std::size_t slot) const {
  return std::any_of(jobs_.begin(), jobs_.end(),
                     [slot](const Job& job) { return !job.write && job.slot == slot; });
}

absl::StatusOr<at::Tensor> FileStore::Acquire(std::size_t slot) {
  PLAIT_CHECK(slot < slots().size()) << "slot " << slot << " of " << slots().size();
  PLAIT_CHECK(!acquired_.has_value()) << "slot " << slot << " while another is acquired";
  std::unique_lock<std::mutex> lock(mutex_);
  if (expected_ != slot) {
    ++unexpected_reads_;
    WaitUntilIdle(lock);
    for (Buffer& buffer : buffers_) buffer.slot.reset();
    Enqueue({.write = false, .slot = slot});
  }
  changed_.wait(lock, [&] { return !Coming(slot); });
  PLAIT_RETURN_IF_ERROR(status_);
  acquired_ = slot;
  expected_.reset();
  const at::Tensor tensor = TensorOf(*BufferOf(slot), slot);
  lock.unlock();
  in_use_ = device_.is_cpu() ? tensor : tensor.to(device_);
  return in_use_;
}

absl::Status FileStore::Release(std::size_t slot, bool changed) {
  PLAIT_CHECK(acquired_ == slot) << "slot " << slot << " is not acquired";
  std::unique_lock<std::mutex> lock(mutex_);
  Buffer* const buffer = BufferOf(slot);
  if (changed && !device_.is_cpu()) {
    lock.unlock();
    TensorOf(*buffer, slot).copy_(in_use_);
    lock.lock();
  }
  acquired_.reset();
  in_use_.reset();
  if (changed) {
    Enqueue({.write = true, .slot = slot});
  } else {
    buffer->slot.reset();
  }
  return status_;
}

void FileStore::Prefetch(std::size_t slot) {
  PLAIT_CHECK(slot < slots().size()) << "slot " << slot << " of " << slots().size();
  if (acquired_ == slot || expected_ == slot) return;
  std::unique_lock<std::mutex> lock(mutex_);
  if (expected_.has_value()) {  // a wrong hint: free its buffer
    WaitUntilIdle(lock);
    if (Buffer* const wrong = BufferOf(*expected_)) wrong->slot.reset();
  }
  expected_ = slot;
  Enqueue({.write = false, .slot = slot});
}

absl::Status FileStore::Drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  WaitUntilIdle(lock);
  return status_;
}

void FileStore::Work() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
    if (stop_) return;
    const Job job = jobs_.front();
    // After an error no more I/O: the content is unreliable.
    if (status_.ok()) status_ = Do(job, lock);
    jobs_.pop_front();
    changed_.notify_all();
  }
}

absl::Status FileStore::Do(const Job& job, std::unique_lock<std::mutex>& lock) {
  Buffer* const buffer = BufferOf(job.write ? std::optional(job.slot) : std::nullopt);
  PLAIT_CHECK(buffer != nullptr) << "slot " << job.slot << " finds no buffer";
  if (!job.write) buffer->slot = job.slot;
  std::byte* const memory = buffer->memory.get();
  lock.unlock();
  const absl::Status done = job.write ? file_.Write(offsets_[job.slot], memory, SlotBytes(job.slot))
                                      : file_.Read(offsets_[job.slot], memory, SlotBytes(job.slot));
  lock.lock();
  if (job.write) buffer->slot.reset();
  return done;
}

}  // namespace plait::parallel
