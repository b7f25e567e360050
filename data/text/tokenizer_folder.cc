#include "data/text/tokenizer_folder.h"

#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/sentence_piece_tokenizer.h"
#include "data/text/tokenizer_settings.h"

namespace plait::data {
namespace {

constexpr char kVocabulary[] = "vocab.json", kMerges[] = "merges.txt";
constexpr char kOpenAiVocabulary[] = "encoder.json", kOpenAiMerges[] = "vocab.bpe";

bool Has(const std::string& folder, const char* name) {
  std::error_code ignored;
  return std::filesystem::exists(absl::StrCat(folder, "/", name), ignored);
}

}  // namespace

bool HasTokenizer(const std::string& folder) {
  return Has(folder, kSentencePieceFile) || Has(folder, kVocabulary) || Has(folder, kOpenAiVocabulary);
}

absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& folder, absl::string_view kind) {
  if (kind.empty() && !HasTokenizer(folder)) {
    return absl::NotFoundError(absl::StrCat(
        folder.empty() ? "no folder" : folder,
        ": no tokenizer; expected tokenizer.model (SentencePiece, as Llama's), or vocab.json with "
        "merges.txt (GPT-2's)"));
  }
  if (kind.empty()) kind = Has(folder, kSentencePieceFile) ? kSentencePiece : kGpt2;
  if (kind == kSentencePiece) {
    PLAIT_ASSIGN_OR_RETURN(SentencePieceTokenizer pieces, SentencePieceTokenizer::Load(folder));
    return std::make_unique<SentencePieceTokenizer>(std::move(pieces));
  }
  if (kind == kGpt2) {
    PLAIT_ASSIGN_OR_RETURN(BytePairTokenizer pairs, BytePairTokenizer::Load(folder));
    return std::make_unique<BytePairTokenizer>(std::move(pairs));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer \"", kind, "\" is unknown: take characters, ", kGpt2, " or ", kSentencePiece));
}

std::string KindOf(const Tokenizer& tokenizer) {
  return dynamic_cast<const SentencePieceTokenizer*>(&tokenizer) != nullptr ? kSentencePiece : kGpt2;
}

std::vector<TokenizerFile> TokenizerFiles(const std::string& folder) {
  const auto in = [&](const char* name) { return absl::StrCat(folder, "/", name); };
  const bool pieces = Has(folder, kSentencePieceFile), openai = !Has(folder, kVocabulary);
  std::vector<TokenizerFile> files;
  if (pieces) {
    files = {{in(kSentencePieceFile), kSentencePieceFile}};
  } else {
    files = {{in(openai ? kOpenAiVocabulary : kVocabulary), kVocabulary},
             {in(openai ? kOpenAiMerges : kMerges), kMerges}};
  }
  const char* const use = pieces ? kSettingsFile : kPipelineFile;
  if (Has(folder, use)) files.push_back({in(use), use});
  return files;
}

}  // namespace plait::data
