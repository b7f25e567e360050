// Bytes of any length from every rank to every rank, and numbers and texts as such bytes.
//
//   ByteWriter mine;
//   mine.Number(step);
//   mine.Text(name);
//   for (const std::string& bytes : GatherBytes(comm, mine.bytes())) ByteReader(bytes).Number();
#ifndef PLAIT_PARALLEL_CHECKPOINT_GATHERED_BYTES_H_
#define PLAIT_PARALLEL_CHECKPOINT_GATHERED_BYTES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/communicator.h"

namespace plait::parallel {

// Collective: what each rank brings, by rank.
std::vector<std::string> GatherBytes(const comm::Communicator& comm, const std::string& mine);

class ByteWriter {
 public:
  void Number(std::int64_t value);
  void Text(absl::string_view text);
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

// Reads back in the same order; to read more than was written is a programming error.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : left_(bytes) {}
  std::int64_t Number();
  std::string Text();

 private:
  absl::string_view left_;
};

}  // namespace plait::parallel

#endif  // PLAIT_PARALLEL_CHECKPOINT_GATHERED_BYTES_H_
