// Prepared text in HDF5.
#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/hdf5/file.h"
#include "data/hdf5/image_file.h"
#include "data/text/character_tokenizer.h"
#include "data/text/prepared_text.h"

namespace plait::data {
namespace {

constexpr char kFormat[] = "plait text";
constexpr std::int64_t kVersion = 1;

absl::Status WriteTokens(File& file, const std::string& name, const std::vector<std::uint16_t>& tokens) {
  return WriteChecked<std::uint16_t>(file, name, tokens, {std::ssize(tokens)});
}

absl::Status WriteAll(File& file, const PreparedText& text, const std::string& key) {
  PLAIT_RETURN_IF_ERROR(SetFormat(file, kFormat, kVersion));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "key", key));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "source", text.source));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "tokenizer", text.tokenizer));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "vocabulary_size", std::int64_t{text.vocabulary_size}));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "tokenizer_digest", std::int64_t{text.tokenizer_digest}));
  PLAIT_RETURN_IF_ERROR(SetAttribute(file, "/", "characters", text.characters));
  if (!text.code_points.empty()) {
    const std::int64_t count = text.code_points.size();
    PLAIT_RETURN_IF_ERROR(WriteArray<std::int32_t>(file, "/code_points", text.code_points, {count}));
  }
  PLAIT_RETURN_IF_ERROR(WriteTokens(file, "/train", text.train));
  return WriteTokens(file, "/validation", text.validation);
}

absl::Status Damaged(const File& file, const std::string& what) {
  return absl::DataLossError(absl::StrCat(file.path(), ": ", what));
}

absl::StatusOr<File> OpenPrepared(const std::string& path) {
  return OpenFormat(path, kFormat, kVersion, "a prepared text", "; prepare it again");
}

absl::StatusOr<std::vector<std::uint16_t>> ReadTokens(const File& file, const std::string& name,
                                                      std::int32_t vocabulary_size) {
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::int64_t> shape, OrDamage(ArrayShape(file, name)));
  if (shape.size() != 1) return Damaged(file, name + ": expected one dimension");
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::uint16_t> tokens, OrDamage(ReadChecked<std::uint16_t>(file, name)));
  const auto unknown = [&](std::uint16_t token) { return token >= vocabulary_size; };
  if (std::any_of(tokens.begin(), tokens.end(), unknown)) {
    return Damaged(file, absl::StrCat(name, ": a token outside the vocabulary 0..", vocabulary_size - 1));
  }
  return tokens;
}

// Reads the vocabulary of a CharacterTokenizer, and checks it against the digest.
absl::Status ReadCodePoints(const File& file, PreparedText& text) {
  if (!file.Has("/code_points")) return absl::OkStatus();
  PLAIT_ASSIGN_OR_RETURN(text.code_points, OrDamage(ReadArray<std::int32_t>(file, "/code_points")));
  const absl::StatusOr<CharacterTokenizer> tokenizer = CharacterTokenizer::FromCodePoints(text.code_points);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(tokenizer.status(), file.path()));
  if (tokenizer->digest() != text.tokenizer_digest || tokenizer->vocabulary_size() != text.vocabulary_size) {
    return Damaged(file, "/code_points: checksum does not match, the file is damaged");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WritePreparedText(const std::string& path, const PreparedText& text, const std::string& key) {
  constexpr std::int64_t kOverhead = 1 << 16;
  const std::int64_t bytes = (text.train.size() + text.validation.size()) * sizeof(text.train[0]) +
                             text.code_points.size() * sizeof(text.code_points[0]) + kOverhead;
  return WriteAtomically(path, bytes, [&](const std::string& partial) {
    return WriteOnDisk(partial, [&](File& file) { return WriteAll(file, text, key); });
  });
}

absl::StatusOr<PreparedText> ReadPreparedText(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenPrepared(path));
  PreparedText text;
  PLAIT_ASSIGN_OR_RETURN(text.source, OrDamage(TextAttribute(file, "/", "source")));
  PLAIT_ASSIGN_OR_RETURN(text.tokenizer, OrDamage(TextAttribute(file, "/", "tokenizer")));
  PLAIT_ASSIGN_OR_RETURN(text.vocabulary_size, OrDamage(IntAttribute(file, "/", "vocabulary_size")));
  PLAIT_ASSIGN_OR_RETURN(text.tokenizer_digest, OrDamage(IntAttribute(file, "/", "tokenizer_digest")));
  PLAIT_ASSIGN_OR_RETURN(text.characters, OrDamage(IntAttribute(file, "/", "characters")));
  PLAIT_RETURN_IF_ERROR(ReadCodePoints(file, text));
  PLAIT_ASSIGN_OR_RETURN(text.train, ReadTokens(file, "/train", text.vocabulary_size));
  PLAIT_ASSIGN_OR_RETURN(text.validation, ReadTokens(file, "/validation", text.vocabulary_size));
  return text;
}

absl::StatusOr<std::string> ReadPreparedTextKey(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(const File file, OpenPrepared(path));
  return OrDamage(TextAttribute(file, "/", "key"));
}

}  // namespace plait::data
