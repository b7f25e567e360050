#include "data/text/tokens.h"

#include <cstring>
#include <iterator>

#include "base/check.h"

namespace plait::data {
namespace {

template <typename Id>
void CopyIds(const char* from, absl::Span<std::int64_t> to) {
  for (std::int64_t& id : to) {
    Id read;
    std::memcpy(&read, from, sizeof(read));
    id = read;
    from += sizeof(read);
  }
}

}  // namespace

std::int64_t BytesOf(TokenType type) { return type == TokenType::kUint16 ? 2 : 4; }

Tokens::Tokens(TokenType type, absl::string_view bytes)
    : type_(type), first_(bytes.data()), size_(std::ssize(bytes) / BytesOf(type)) {
  PLAIT_CHECK(size_ * BytesOf(type) == std::ssize(bytes)) << bytes.size() << " bytes";
}

std::int64_t Tokens::operator[](std::int64_t index) const {
  std::int64_t id = 0;
  Copy(index, absl::MakeSpan(&id, 1));
  return id;
}

void Tokens::Copy(std::int64_t first, absl::Span<std::int64_t> to) const {
  PLAIT_CHECK(first >= 0 && std::ssize(to) <= size_ - first)
      << to.size() << " tokens at " << first << " of " << size_ << " tokens";
  const char* from = first_ + first * BytesOf(type_);
  type_ == TokenType::kUint16 ? CopyIds<std::uint16_t>(from, to) : CopyIds<std::int32_t>(from, to);
}

Tokens Tokens::Part(std::int64_t first, std::int64_t size) const {
  PLAIT_CHECK(first >= 0 && size >= 0 && size <= size_ - first) << first << ", " << size << " of " << size_;
  Tokens part = *this;
  part.first_ += first * BytesOf(type_);
  part.size_ = size;
  return part;
}

}  // namespace plait::data
