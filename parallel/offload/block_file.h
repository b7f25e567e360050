// An unlinked file, read and written in large aligned blocks, with O_DIRECT if the file system allows it. Private to
// parallel/offload.
#ifndef PLAIT_PARALLEL_OFFLOAD_BLOCK_FILE_H_
#define PLAIT_PARALLEL_OFFLOAD_BLOCK_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "parallel/offload/state_store.h"

namespace plait::parallel {

class BlockFile {
 public:
  // Offsets, lengths and addresses must be multiples of this.
  static constexpr std::int64_t kAlignment = kStateBlockBytes;
  static std::int64_t Aligned(std::int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  // Allocates `bytes` bytes of zeros. Errors as StateStore::Create; they name `folder` and `what`.
  static absl::StatusOr<BlockFile> Create(const std::string& what, const std::string& folder,
                                          std::int64_t bytes);
  BlockFile(BlockFile&& other) noexcept;
  BlockFile& operator=(BlockFile&&) = delete;
  ~BlockFile();

  absl::Status Read(std::int64_t offset, std::byte* data, std::int64_t bytes);
  absl::Status Write(std::int64_t offset, const std::byte* data, std::int64_t bytes);
  std::int64_t bytes() const { return bytes_; }

 private:
  BlockFile(std::string what, std::string folder, int descriptor, std::int64_t bytes);
  bool StopsGoingDirect(int error);

  std::string what_, folder_;
  int descriptor_;
  std::int64_t bytes_;
  bool direct_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_OFFLOAD_BLOCK_FILE_H_
