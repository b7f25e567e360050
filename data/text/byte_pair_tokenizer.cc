#include "data/text/byte_pair_tokenizer.h"

#include <functional>
#include <queue>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "data/text/pieces.h"

namespace plait::data {
namespace {

// Pieces longer than this are rare and seldom seen again; a full cache takes no more, which bounds its
// memory.
constexpr std::size_t kCachedPieceBytes = 64;
constexpr std::size_t kCachedPieces = 1 << 16;

// Tokens of a piece as a doubly linked list within arrays: a merge keeps the left place and takes out the
// right one.
struct Places {
  explicit Places(std::vector<std::int32_t> ids) : id(std::move(ids)), before(id.size()), after(id.size()) {
    const int count = id.size();
    for (int i = 0; i < count; ++i) before[i] = i - 1, after[i] = i + 1 < count ? i + 1 : -1;
  }
  void Merge(int left, std::int32_t merged) {
    const int right = after[left];
    id[left] = merged;
    id[right] = kGone;
    after[left] = after[right];
    if (after[left] >= 0) before[after[left]] = left;
  }

  static constexpr std::int32_t kGone = -1;
  std::vector<std::int32_t> id;
  std::vector<int> before, after;
};

// A wish to merge, good as long as both places still hold what they held. The most wanted is at the top, the
// leftmost among equals.
struct Wish {
  std::int32_t rank;
  int left;
  std::int32_t left_id, right_id, merged;
  friend bool operator>(const Wish& a, const Wish& b) {
    return std::tie(a.rank, a.left) > std::tie(b.rank, b.left);
  }
};

}  // namespace

const BytePairTokenizer::Merge* BytePairTokenizer::FindMerge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(Pair(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<std::int32_t> BytePairTokenizer::EncodePiece(absl::string_view piece) const {
  std::vector<std::int32_t> bytes;
  for (const char byte : piece) bytes.push_back(id_of_byte_[static_cast<std::uint8_t>(byte)]);
  Places places(std::move(bytes));
  std::priority_queue<Wish, std::vector<Wish>, std::greater<Wish>> wishes;
  const auto wish = [&](int left) {
    if (left < 0 || places.after[left] < 0) return;
    const std::int32_t a = places.id[left], b = places.id[places.after[left]];
    if (const Merge* merge = FindMerge(a, b)) wishes.push({merge->rank, left, a, b, merge->id});
  };
  for (std::size_t i = 0; i < piece.size(); ++i) wish(i);
  while (!wishes.empty()) {
    const Wish best = wishes.top();
    wishes.pop();
    const int right = places.after[best.left];
    if (places.id[best.left] != best.left_id || right < 0 || places.id[right] != best.right_id) continue;
    places.Merge(best.left, best.merged);
    wish(places.before[best.left]);
    wish(best.left);
  }
  std::erase(places.id, Places::kGone);
  return std::move(places.id);
}

absl::StatusOr<std::vector<std::int32_t>> BytePairTokenizer::Encode(absl::string_view text) const {
  std::vector<std::int32_t> ids;
  // Keys point into the text. Most pieces are words that were seen before.
  absl::flat_hash_map<absl::string_view, std::vector<std::int32_t>> cache;
  while (!text.empty()) {
    const absl::string_view piece = NextPiece(text);
    text.remove_prefix(piece.size());
    auto known = cache.find(piece);
    if (known != cache.end()) {
      ids.insert(ids.end(), known->second.begin(), known->second.end());
      continue;
    }
    std::vector<std::int32_t> made = EncodePiece(piece);
    ids.insert(ids.end(), made.begin(), made.end());
    if (piece.size() <= kCachedPieceBytes && cache.size() < kCachedPieces)
      cache.emplace(piece, std::move(made));
  }
  return ids;
}

absl::StatusOr<std::string> BytePairTokenizer::Decode(absl::Span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is unknown: the vocabulary is 0..", vocabulary_size() - 1));
    }
    text += bytes_of_[id];
  }
  return text;
}

}  // namespace plait::data
