// The tokenizer in a folder, of any kind that has files of its own.
//
//   PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer("llama-2-7b"));
//
//   tokenizer.model              SentencePiece (sentence_piece_tokenizer.h)
//   vocab.json with merges.txt   GPT-2's byte pairs (byte_pair_tokenizer.h), also under OpenAI's names encoder.json, vocab.bpe
//
// If a folder has both, tokenizer.model counts. Local.
#ifndef PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_
#define PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/tokenizer.h"

namespace plait::data {

bool HasTokenizer(const std::string& folder);

// NotFound if the folder has neither; errors of SentencePieceTokenizer::Load and BytePairTokenizer::Load.
absl::StatusOr<std::unique_ptr<Tokenizer>> LoadTokenizer(const std::string& folder);

// A file of a tokenizer: its path, and its name in Hugging Face's layout.
struct TokenizerFile {
  std::string path, name;
};
// Those that LoadTokenizer reads in the folder, whether they are there or not.
std::vector<TokenizerFile> TokenizerFiles(const std::string& folder);

// The names of all kinds.
inline constexpr const char* kTokenizerFileNames[] = {"tokenizer.model", "vocab.json", "merges.txt"};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKENIZER_FOLDER_H_
