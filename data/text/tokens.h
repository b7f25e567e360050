// A view of consecutive token ids, in memory or in a mapped file.
//
//   const Tokens tokens = text.train;                 // a std::vector<std::uint16_t>
//   tokens[17];
//
// The owner of the ids must outlive the view. Local.
#ifndef PLAIT_DATA_TEXT_TOKENS_H_
#define PLAIT_DATA_TEXT_TOKENS_H_

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace plait::data {

enum class TokenType { kUint16, kInt32 };
// 2 or 4.
std::int64_t BytesOf(TokenType type);

class Tokens {
 public:
  Tokens() = default;
  Tokens(const std::vector<std::uint16_t>& ids)  // NOLINT(google-explicit-constructor): as a span
      : first_(reinterpret_cast<const char*>(ids.data())), size_(static_cast<std::int64_t>(ids.size())) {}
  // `bytes`: whole ids, little-endian; need not be aligned.
  Tokens(TokenType type, absl::string_view bytes);

  std::int64_t size() const { return size_; }
  // May be negative for int32 ids in a damaged file. CHECK-fails if out of range, as do Copy and Part.
  std::int64_t operator[](std::int64_t index) const;
  // Copies to.size() ids, starting at `first`.
  void Copy(std::int64_t first, absl::Span<std::int64_t> to) const;
  Tokens Part(std::int64_t first, std::int64_t size) const;

 private:
  TokenType type_ = TokenType::kUint16;
  const char* first_ = nullptr;
  std::int64_t size_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENS_H_
