#include "data/text/sentence_piece_tokenizer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/hdf5/checked_array.h"
#include "data/text/sentence_piece_model.h"

namespace plait::data {

SentencePieceTokenizer::SentencePieceTokenizer(std::unique_ptr<const SentencePieceModel> model,
                                               std::uint32_t digest)
    : model_(std::move(model)), digest_(digest) {}
SentencePieceTokenizer::~SentencePieceTokenizer() = default;
SentencePieceTokenizer::SentencePieceTokenizer(SentencePieceTokenizer&&) noexcept = default;

absl::StatusOr<SentencePieceTokenizer> SentencePieceTokenizer::Load(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/", kSentencePieceFile);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return absl::NotFoundError(
        absl::StrCat(path, ": no such file; a Llama's comes with any copy of its model"));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path));
  std::string error;
  std::unique_ptr<const SentencePieceModel> model = SentencePieceModel::Parse(bytes, error);
  if (model == nullptr) {
    return absl::DataLossError(absl::StrCat(path, ": damaged, or no model of SentencePiece: ", error));
  }
  return SentencePieceTokenizer(std::move(model), Crc32(bytes.data(), std::ssize(bytes)));
}

std::int32_t SentencePieceTokenizer::vocabulary_size() const { return model_->size(); }

absl::StatusOr<std::vector<std::int32_t>> SentencePieceTokenizer::Encode(absl::string_view text) const {
  std::vector<std::int32_t> ids;
  if (model_->begin_id() >= 0) ids.push_back(model_->begin_id());
  for (const int id : model_->Encode(std::string(text))) ids.push_back(id);
  return ids;
}

absl::StatusOr<std::string> SentencePieceTokenizer::Decode(absl::Span<const std::int32_t> ids) const {
  std::string text;
  for (const std::int32_t id : ids) {
    if (id < 0 || id >= vocabulary_size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", id, " is unknown: the vocabulary is 0..", vocabulary_size() - 1));
    }
    absl::StrAppend(&text, model_->BytesOf(id));
  }
  const bool begins = !ids.empty() && ids[0] == model_->begin_id();
  return begins && !text.empty() && text[0] == ' ' ? text.substr(1) : text;
}

}  // namespace plait::data
