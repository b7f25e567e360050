#include "data/text/byte_pair_tokenizer.h"

#include <utility>

#include "data/text/merge_pairs.h"
#include "data/text/pieces.h"

namespace plait::data {
namespace {

// Pieces longer than this are rare and seldom seen again; a full cache takes no more, which bounds its
// memory.
constexpr std::size_t kCachedPieceBytes = 64;
constexpr std::size_t kCachedPieces = 1 << 16;

}  // namespace

const BytePairTokenizer::Merge* BytePairTokenizer::FindMerge(std::int32_t left, std::int32_t right) const {
  const auto found = merges_.find(Pair(left, right));
  return found == merges_.end() ? nullptr : &found->second;
}

std::vector<std::int32_t> BytePairTokenizer::EncodePiece(absl::string_view piece) const {
  std::vector<std::int32_t> bytes;
  for (const char byte : piece) bytes.push_back(id_of_byte_[static_cast<std::uint8_t>(byte)]);
  using Found = std::optional<PairMerge<std::int32_t>>;
  return MergePairs(std::move(bytes), [this](std::int32_t left, std::int32_t right) {
    const Merge* merge = FindMerge(left, right);
    return merge == nullptr ? Found() : Found({static_cast<double>(merge->rank), merge->id});
  });
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

void BytePairTokenizer::AppendBytes(std::int32_t id, std::string& text) const { text += bytes_of_[id]; }

}  // namespace plait::data
