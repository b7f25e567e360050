#include "data/text/sentence_piece_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "base/text.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/text/merge_pairs.h"
#include "data/text/sentence_piece_model.pb.h"
#include "data/text/tokenizer_settings.h"

namespace plait::data {
namespace {

// Largest file; Llama's has half a megabyte.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 28;
constexpr absl::string_view kSpace = "\xE2\x96\x81";        // U+2581 stands for a space
constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// U+2581 behind another character.
bool GoesOverWords(absl::string_view piece) {
  for (std::size_t at = piece.find(kSpace, 1); at != piece.npos; at = piece.find(kSpace, at + 1)) {
    if (!absl::EndsWith(piece.substr(0, at), kSpace)) return true;
  }
  return false;
}

// The characters before the next space behind another one, or all.
absl::string_view FirstWord(absl::string_view text) {
  std::size_t at = 0;
  while (absl::StartsWith(text.substr(at), kSpace)) at += kSpace.size();
  return text.substr(0, text.find(kSpace, at));
}

// Quotes a piece for messages, truncated, as a hostile file may have long ones.
std::string Quoted(absl::string_view piece) {
  return absl::StrCat("\"", absl::Utf8SafeCHexEscape(piece.substr(0, 40)), "\"");
}

}  // namespace

// Fills a tokenizer step by step.
class SentencePieceReader {
 public:
  explicit SentencePieceReader(const std::string& name) : name_(name) {}

  absl::StatusOr<SentencePieceTokenizer> Read(const std::string& bytes) {
    file::SentencePieceModel model;
    if (!model.ParseFromString(bytes) || model.pieces().empty()) {
      return Damaged(
          absl::StrCat("expected pieces in a protobuf message, found ", bytes.size(), " bytes without"));
    }
    PLAIT_RETURN_IF_ERROR(CheckKind(model));
    made_.digest_ = Crc32(bytes.data(), std::ssize(bytes));
    made_.has_bytes_ = model.training().byte_fallback();
    made_.adds_prefix_ = model.normalization().add_prefix();
    made_.removes_extra_spaces_ = model.normalization().remove_extra_spaces();
    made_.id_of_byte_.fill(-1);
    for (const file::SentencePiece& piece : model.pieces()) {
      PLAIT_RETURN_IF_ERROR(Add(piece, model.training()));
    }
    if (made_.unknown_ < 0) return Damaged("has no unknown piece");
    const auto lacking = std::find(made_.id_of_byte_.begin(), made_.id_of_byte_.end(), -1);
    if (made_.has_bytes_ && lacking != made_.id_of_byte_.end()) {
      return Damaged(absl::StrCat("byte ", lacking - made_.id_of_byte_.begin(), " has no piece"));
    }
    std::stable_sort(made_.user_defined_.begin(), made_.user_defined_.end(),
                     [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
    return std::move(made_);
  }

 private:
  absl::Status Damaged(const std::string& what) const {
    return absl::DataLossError(absl::StrCat(name_, ": damaged, or not a SentencePiece model: ", what));
  }

  absl::Status CheckKind(const file::SentencePieceModel& model) const {
    constexpr const char* kKinds[] = {"", "unigram", "byte-pair", "word", "character"};
    const file::SentencePieceTraining& training = model.training();
    if (training.model_type() != file::SentencePieceTraining::BYTE_PAIRS) {
      return absl::InvalidArgumentError(absl::StrCat(name_, ": a ", kKinds[training.model_type()],
                                                     " model; expected byte pairs, as Llama's"));
    }
    const file::SentencePieceNormalization& normalization = model.normalization();
    if (!normalization.rules().empty() || !model.denormalization().rules().empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name_, ": changes characters of texts (normalization ",
                                                     Quoted(normalization.name()),
                                                     "); expected \"identity\", as Llama's"));
    }
    if (!normalization.escape_spaces() || training.space_as_suffix()) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ": spaces are kept, or end words; expected U+2581 before words, as Llama's"));
    }
    return absl::OkStatus();
  }

  absl::Status Add(const file::SentencePiece& piece, const file::SentencePieceTraining& training) {
    const std::string& text = piece.piece();
    const std::int32_t id = made_.vocabulary_size();
    if (text.empty() || !std::isfinite(piece.score()) || !seen_.insert(text).second) {
      return Damaged(
          absl::StrCat("piece ", id, ", ", Quoted(text), ", is empty, given twice or without a score"));
    }
    made_.bytes_of_.push_back(absl::StrReplaceAll(text, {{kSpace, " "}}));
    switch (piece.type()) {
      case file::SentencePiece::USER_DEFINED:
        if (made_.removes_extra_spaces_ && absl::StrContains(text, absl::StrCat(kSpace, kSpace))) {
          return absl::InvalidArgumentError(
              absl::StrCat(name_, ": piece ", id, ", ", Quoted(text),
                           ", has spaces that the model removes from texts (remove_extra_whitespaces)"));
        }
        made_.user_defined_.push_back(text);
        [[fallthrough]];
      case file::SentencePiece::NORMAL:
        made_.pieces_[text] = {id, piece.score()};
        made_.goes_over_words_ = made_.goes_over_words_ || GoesOverWords(text);
        return absl::OkStatus();
      case file::SentencePiece::UNKNOWN:
        if (made_.unknown_ >= 0) return Damaged("has a second unknown piece");
        made_.unknown_ = id;
        return absl::OkStatus();
      case file::SentencePiece::CONTROL:
        made_.bytes_of_.back().clear();
        if (text == training.begin_piece()) made_.begin_ = id;
        if (text == training.end_piece()) made_.end_ = id;
        return absl::OkStatus();
      case file::SentencePiece::UNUSED:
        return absl::InvalidArgumentError(absl::StrCat(name_, ": piece ", id, ", ", Quoted(text),
                                                       ", is unused; expected none, as in Llama's"));
      case file::SentencePiece::BYTE:
        return AddByte(text, id);
    }
    return absl::OkStatus();
  }

  absl::Status AddByte(const std::string& text, std::int32_t id) {
    int byte = 0;
    if (made_.has_bytes_ && text.size() == 6 && absl::SimpleHexAtoi(text.substr(3, 2), &byte) &&
        text == absl::StrFormat("<0x%02X>", byte)) {
      made_.id_of_byte_[byte] = id;
      made_.bytes_of_.back() = std::string(1, static_cast<char>(byte));
      return absl::OkStatus();
    }
    return Damaged(
        absl::StrCat("piece ", id, " is byte ", Quoted(text), "; expected ",
                     made_.has_bytes_ ? "\"<0x00>\" to \"<0xFF>\"" : "none in a model without bytes"));
  }

  const std::string name_;
  absl::flat_hash_set<std::string> seen_;
  SentencePieceTokenizer made_;
};

absl::StatusOr<SentencePieceTokenizer> SentencePieceTokenizer::Parse(const std::string& bytes,
                                                                     const std::string& name) {
  return SentencePieceReader(name).Read(bytes);
}

absl::StatusOr<SentencePieceTokenizer> SentencePieceTokenizer::Load(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kSentencePieceFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such file; a Llama's comes with any copy of its model"));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostBytes));
  PLAIT_ASSIGN_OR_RETURN(SentencePieceTokenizer tokenizer, Parse(bytes, path));
  const std::string settings = absl::StrCat(folder, "/", kSettingsFile);
  PLAIT_RETURN_IF_ERROR(CheckAdds(settings, "add_prefix_space", tokenizer.adds_prefix_));
  PLAIT_RETURN_IF_ERROR(CheckAdds(settings, "add_eos_token", false));
  PLAIT_ASSIGN_OR_RETURN(const bool adds_begin, AddsBeginOfText(settings));
  if (!adds_begin && tokenizer.begin_.has_value()) {
    tokenizer.begin_.reset();
    tokenizer.digest_ = ~tokenizer.digest_;  // texts get other ids
  }
  return tokenizer;
}

std::string SentencePieceTokenizer::Normalized(absl::string_view text) const {
  while (removes_extra_spaces_ && absl::ConsumePrefix(&text, " ")) continue;
  std::string made;
  if (adds_prefix_ && !text.empty()) made = std::string(kSpace);
  bool after_space = false;
  while (!text.empty()) {
    const base::CodePoint point = base::FirstCodePoint(text);
    const bool space = point.value == ' ';
    if (space && !(after_space && removes_extra_spaces_)) absl::StrAppend(&made, kSpace);
    if (!space) absl::StrAppend(&made, point.value < 0 ? kReplacement : text.substr(0, point.bytes));
    after_space = space;
    text.remove_prefix(point.bytes);
  }
  while (removes_extra_spaces_ && absl::EndsWith(made, kSpace)) made.resize(made.size() - kSpace.size());
  return made;
}

std::pair<std::size_t, bool> SentencePieceTokenizer::FirstSymbol(absl::string_view text) const {
  for (const std::string& piece : user_defined_) {
    if (absl::StartsWith(text, piece)) return {piece.size(), true};
  }
  return {base::FirstCodePoint(text).bytes, false};
}

std::vector<SentencePieceTokenizer::Symbol> SentencePieceTokenizer::Merged(absl::string_view text) const {
  std::vector<Symbol> symbols;
  for (; !text.empty(); text.remove_prefix(symbols.back().text.size())) {
    const auto [bytes, whole] = FirstSymbol(text);
    symbols.push_back({text.substr(0, bytes), whole});
  }
  using Found = std::optional<PairMerge<Symbol>>;
  return MergePairs(std::move(symbols), [this](const Symbol& left, const Symbol& right) {
    if (left.whole || right.whole) return Found();
    const absl::string_view both(left.text.data(), left.text.size() + right.text.size());
    const auto piece = pieces_.find(both);
    return piece == pieces_.end() ? Found() : Found({-piece->second.score, {both, false}});
  });
}

absl::StatusOr<std::vector<std::int32_t>> SentencePieceTokenizer::Encode(absl::string_view text) const {
  const std::string normalized = Normalized(text);
  std::vector<std::int32_t> ids;
  if (begin_) ids.push_back(*begin_);
  bool after_unknown = false;
  // Word by word where no piece joins words: a long text needs memory for the pairs of one only.
  for (absl::string_view rest = normalized; !rest.empty();) {
    const absl::string_view word = goes_over_words_ ? rest : FirstWord(rest);
    rest.remove_prefix(word.size());
    for (const Symbol& symbol : Merged(word)) {
      const auto piece = pieces_.find(symbol.text);
      const bool unknown = piece == pieces_.end();
      if (!unknown) ids.push_back(piece->second.id);
      if (unknown && has_bytes_) {
        for (const char byte : symbol.text) ids.push_back(id_of_byte_[static_cast<std::uint8_t>(byte)]);
      } else if (unknown && !after_unknown) {
        ids.push_back(unknown_);
      }
      after_unknown = unknown;
    }
  }
  return ids;
}

absl::StatusOr<std::string> SentencePieceTokenizer::Decode(absl::Span<const std::int32_t> ids) const {
  PLAIT_ASSIGN_OR_RETURN(std::string text, Tokenizer::Decode(ids));
  const bool prefixed = adds_prefix_ && !ids.empty() && begin_ == ids[0] && absl::StartsWith(text, " ");
  return prefixed ? text.substr(1) : text;
}

void SentencePieceTokenizer::AppendBytes(std::int32_t id, std::string& text) const { text += bytes_of_[id]; }

}  // namespace plait::data
