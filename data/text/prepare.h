// Text ready for training: found, tokenized once, kept in a cache, opened by all ranks.
//
//   // rank 0 alone:
//   PLAIT_ASSIGN_OR_RETURN(PreparedTextFile file, PrepareText({.text = flag_text, .tokenizer =
//   "characters"}));
//   // every rank, after the caller's barrier and a broadcast of file.path:
//   PLAIT_ASSIGN_OR_RETURN(PreparedText text, ReadPreparedText(file.path));
//   // where text is made from tokens again:
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
  std::string tokenizer = "characters";  // or "gpt2"
  std::string bpe_folder = "";           // of GPT-2's two files, for "gpt2" only
  std::string cache_dir = "";            // empty: data/ in base::CacheFolder()
};

struct PreparedTextFile {
  std::string path;                // of the prepared HDF5 file
  std::vector<std::string> notes;  // what was done, a line each
};

// Reuses a prepared file whose key names the present text and tokenizer and whose checksums hold; otherwise
// makes it, atomically; a damaged one is replaced, with a note. Errors of ReadText, of the tokenizers and of
// WritePreparedText; InvalidArgument for another tokenizer's name. Local.
absl::StatusOr<PreparedTextFile> PrepareText(const TextOptions& options);

// The tokenizer that the text was made with. FailedPrecondition where the files in bpe_folder are of another
// vocabulary than the text's.
absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(const PreparedText& text,
                                                         const std::string& bpe_folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_PREPARE_H_
