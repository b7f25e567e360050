// The tokenizer in a folder, of any kind that has files of its own.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("llama-2-7b"));
//
//   tokenizer.model              SentencePiece (sentence_piece_tokenizer.h)
//   vocab.json with merges.txt   GPT-2's byte pairs (byte_pair_tokenizer.h), also under OpenAI's names encoder.json, vocab.bpe
//
// If a folder has both and no kind is given, tokenizer.model counts. Hugging Face's JSON files are read too where they
// are there (tokenizer_settings.h): tokenizer_config.json says whether a text of SentencePiece begins with BOS, and
// byte pairs with a tokenizer.json that cuts texts otherwise than GPT-2 are refused. Local.
#ifndef PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_
#define PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "data/text/tokenizer.h"

namespace plait::data {

// Kinds.
inline constexpr char kGpt2[] = "gpt2", kSentencePiece[] = "sentencepiece";

bool HasTokenizer(const std::string& folder);

// `kind`: empty for what the folder has. NotFound if it is not there, or nothing is; errors of
// SentencePieceTokenizer::Load and BytePairTokenizer::Load; InvalidArgument for an unknown kind.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& folder,
                                                         absl::string_view kind = "");
// That of a loaded tokenizer.
std::string KindOf(const Tokenizer& tokenizer);

// A file of a tokenizer: its path, and its name in Hugging Face's layout.
struct TokenizerFile {
  std::string path, name;
};
// Those that LoadTokenizer reads in the folder: the vocabulary's, whether they are there or not, and the one that says
// how it is used, if it is there.
std::vector<TokenizerFile> TokenizerFiles(const std::string& folder);

// The names of all kinds.
inline constexpr const char* kTokenizerFileNames[] = {"tokenizer.model", "vocab.json", "merges.txt",
                                                      "tokenizer.json", "tokenizer_config.json"};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_
