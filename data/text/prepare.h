// Text ready for training: found, tokenized once, kept in a cache, opened by all ranks.
//
//   // rank 0 only:
//   PLAIT_ASSIGN_OR_RETURN(PreparedTextFile file, PrepareText({.text = flag_text, .tokenizer = "characters"}));
//   // every rank, after the caller's barrier and a broadcast of file.path:
//   PLAIT_ASSIGN_OR_RETURN(PreparedText text, ReadPreparedText(file.path));
//   // to decode tokens:
//   PLAIT_ASSIGN_OR_RETURN(std::unique_ptr<Tokenizer> tokenizer, OpenTokenizer(text, flag_bpe_folder));
#ifndef PLAIT_DATA_TEXT_PREPARE_H_
#define PLAIT_DATA_TEXT_PREPARE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/text/prepared_text.h"
#include "data/text/tokenizer.h"

namespace plait::data {

struct TextOptions {
  std::string text = "";                 // as ReadText: a file, a folder, or empty for the default text
  std::string tokenizer = "characters";  // or "gpt2", "sentencepiece"
  std::string bpe_folder = "";           // with the tokenizer's files, but for "characters"
  std::string cache_dir = "";            // empty: data/ in base::CacheFolder()
};

struct PreparedTextFile {
  std::string path;                // of the prepared HDF5 file
  std::vector<std::string> notes;  // what was done, one line each, for the log
};

// Tokenizes the text into an HDF5 file in the cache, or reuses the file if its key matches text and tokenizer and its
// checksums are correct; a damaged file is replaced, with a note. Errors of ReadText, the tokenizers and
// WritePreparedText; InvalidArgument for an unknown tokenizer. Local; written atomically.
absl::StatusOr<PreparedTextFile> PrepareText(const TextOptions& options);

// Returns the tokenizer that the text was prepared with; `bpe_folder` is not used for characters. Errors of
// LoadTokenizer; FailedPrecondition if its files are not those of the text.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const PreparedText& text,
                                                         const std::string& bpe_folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PREPARE_H_
