#include "data/text/character_tokenizer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/checked_array.h"

namespace plait::data {

absl::StatusOr<std::vector<std::int32_t>> CodePointsOf(absl::string_view text) {
  std::vector<std::int32_t> points;
  points.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const base::CodePoint point = base::FirstCodePoint(text.substr(at));
    if (point.value < 0) {
      return absl::InvalidArgumentError(absl::StrFormat(
          "byte %d of the text, 0x%02x, is not UTF-8; convert it (iconv -t UTF-8) or take byte pairs", at,
          static_cast<std::uint8_t>(text[at])));
    }
    points.push_back(point.value);
    at += point.bytes;
  }
  return points;
}

CharacterTokenizer::CharacterTokenizer(std::vector<std::int32_t> code_points)
    : code_points_(std::move(code_points)) {
  for (std::size_t id = 0; id < code_points_.size(); ++id) ids_[code_points_[id]] = id;
}

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::Of(absl::string_view text) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::int32_t> points, CodePointsOf(text));
  if (points.empty())
    return absl::InvalidArgumentError("the text is empty: it has no characters to learn from");
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return CharacterTokenizer(std::move(points));
}

absl::StatusOr<CharacterTokenizer> CharacterTokenizer::FromCodePoints(std::vector<std::int32_t> points) {
  const bool ascending =
      std::adjacent_find(points.begin(), points.end(), std::greater_equal<>()) == points.end();
  if (points.empty() || !ascending || points.front() < 0 || points.back() > 0x10FFFF) {
    return absl::DataLossError("the vocabulary of characters is damaged: code points must ascend");
  }
  return CharacterTokenizer(std::move(points));
}

std::uint32_t CharacterTokenizer::digest() const { return Crc32<std::int32_t>(code_points_); }

absl::StatusOr<std::vector<std::int32_t>> CharacterTokenizer::Encode(absl::string_view text) const {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::int32_t> ids, CodePointsOf(text));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto found = ids_.find(ids[i]);
    if (found == ids_.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("character %d of the text, U+%04X, is not among the %d of the vocabulary", i,
                          ids[i], vocabulary_size()));
    }
    ids[i] = found->second;
  }
  return ids;
}

void CharacterTokenizer::AppendBytes(std::int32_t id, std::string& text) const {
  base::AppendUtf8(code_points_[id], text);
}

}  // namespace plait::data
