// Converts a corpus of any size to token files: documents are read, tokenized and written as a stream.
//
//   PLAIT_ASSIGN_OR_RETURN(const PreparedTokens made,
//                          PrepareTokens({.input = "corpus", .bpe_folder = "gpt2", .out = "tokens"}));
//
//   out/train.bin, train.idx, val.bin, val.idx   data/text/token_file.h; uint16 of up to 65,536 tokens, else int32
//   out/vocab.json, merges.txt, or tokenizer.model   the tokenizer's files (TokenizerFiles)
//
// Files of another tokenizer in `out` are removed, unless `out` is `bpe_folder`. A symbolic link there, to a tokenizer's
// file of the user's own, is replaced, not the file.
//
// Each document begins and ends with the tokenizer's begin-of-text and end-of-text tokens, if it has them. Prompt and
// text are tokenized separately. Local.
#ifndef PLAIT_DATA_TEXT_PREPARE_TOKENS_H_
#define PLAIT_DATA_TEXT_PREPARE_TOKENS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "data/text/document_reader.h"

namespace plait::data {

struct TokenOptions {
  std::string input;       // path for DocumentReader
  std::string bpe_folder;  // with files for LoadTokenizer (tokenizer_folder.h)
  std::string out;         // output directory, created if needed
  DocumentOptions documents = {};
  // Fraction of documents for validation, evenly spaced: document n (from 0) if floor((n + 1) share) > floor(n share).
  // 0 < share < 1.
  double validation_share = 0.01;
  int threads = 1;
};

struct PreparedTokens {
  struct Part {
    std::int64_t documents = 0, tokens = 0;
  };
  Part train, validation;
  std::int64_t empty_documents = 0;  // skipped
  std::int32_t vocabulary_size = 0;
  bool has_end_of_text = false;
};

// `progress` is called with the bytes read and the total (0: unknown). Errors of DocumentReader, of the tokenizer
// and of the disk; InvalidArgument if training or validation gets no documents, the share is out of range, or a document
// has the path of a file that is written or removed. On an error existing files are unchanged, except that if a file
// cannot be renamed or a link not replaced, or the process is killed, `out` may be left without train.bin; ids never
// stand beside a vocabulary that is not theirs.
absl::StatusOr<PreparedTokens> PrepareTokens(
    const TokenOptions& options,
    const std::function<void(std::int64_t read, std::int64_t total)>& progress = {});

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PREPARE_TOKENS_H_
