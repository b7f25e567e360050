// A corpus of any size made into token files: documents are read, tokenized and written as they come.
//
//   PLAIT_ASSIGN_OR_RETURN(const PreparedTokens made,
//                          PrepareTokens({.input = "corpus", .bpe_folder = "gpt2", .out = "tokens"}));
//
//   out/train.bin, train.idx, val.bin, val.idx   data/text/token_file.h; uint16 of up to 65,536 tokens, else int32
//   out/vocab.json, merges.txt                   the tokenizer's files
//
// Behind each document is the tokenizer's end-of-text token, where it has one. A prompt and its text are tokenized each by
// itself. Local.
#ifndef PLAIT_DATA_TEXT_PREPARE_TOKENS_H_
#define PLAIT_DATA_TEXT_PREPARE_TOKENS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "data/text/document_reader.h"

namespace plait::data {

struct TokenOptions {
  std::string input;       // DocumentReader's path
  std::string bpe_folder;  // of GPT-2's two files, or others of their kind
  std::string out;         // made where it is missing
  DocumentOptions documents = {};
  // Of the documents, evenly: number n, from 0, where floor((n + 1) share) exceeds floor(n share). 0 < share < 1.
  double validation_share = 0.01;
  int threads = 1;
};

struct PreparedTokens {
  struct Part {
    std::int64_t documents = 0, tokens = 0;
  };
  Part train, validation;
  std::int64_t empty_documents = 0;  // left out
  std::int32_t vocabulary_size = 0;
  bool has_end_of_text = false;
};

// `progress` gets the bytes that are read, and those of all (0: not known). Errors of DocumentReader, of the tokenizer and of
// the disk; InvalidArgument where training or validation gets no document, or the share is out of its bounds. On an error
// all files are as they were; but if a file cannot be renamed, or the process is killed meanwhile, `out` may be left without
// train.bin, never with ids beside a vocabulary that is not theirs.
absl::StatusOr<PreparedTokens> PrepareTokens(
    const TokenOptions& options,
    const std::function<void(std::int64_t read, std::int64_t total)>& progress = {});

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PREPARE_TOKENS_H_
