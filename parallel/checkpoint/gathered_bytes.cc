#include "parallel/checkpoint/gathered_bytes.h"

#include <algorithm>
#include <cstring>

#include "absl/types/span.h"
#include "base/check.h"

namespace plait::parallel {

std::vector<std::string> GatherBytes(const comm::Communicator& comm, const std::string& mine) {
  const std::int64_t own_size[1] = {static_cast<std::int64_t>(mine.size())};
  std::vector<std::int64_t> sizes(comm.size());
  comm.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(own_size)), comm::BufferOf(absl::MakeSpan(sizes)));
  const std::int64_t longest = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::uint8_t> padded(longest), all(longest * comm.size());
  std::copy(mine.begin(), mine.end(), padded.begin());
  comm.AllGather(comm::ConstBufferOf(absl::MakeConstSpan(padded)), comm::BufferOf(absl::MakeSpan(all)));
  std::vector<std::string> by_rank;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const auto first = all.begin() + rank * longest;
    by_rank.emplace_back(first, first + sizes[rank]);
  }
  return by_rank;
}

void ByteWriter::Number(std::int64_t value) {
  bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void ByteWriter::Text(absl::string_view text) {
  Number(static_cast<std::int64_t>(text.size()));
  bytes_.append(text.data(), text.size());
}

std::int64_t ByteReader::Number() {
  std::int64_t value = 0;
  PLAIT_CHECK(left_.size() >= sizeof(value)) << "no number left";
  std::memcpy(&value, left_.data(), sizeof(value));
  left_.remove_prefix(sizeof(value));
  return value;
}

std::string ByteReader::Text() {
  const std::int64_t size = Number();
  PLAIT_CHECK(size >= 0 && size <= static_cast<std::int64_t>(left_.size())) << "no text of " << size;
  std::string text(left_.substr(0, size));
  left_.remove_prefix(size);
  return text;
}

}  // namespace plait::parallel
