// Corpora of token ids in memory-mapped files, which may be larger than memory.
//
//   PLAIT_ASSIGN_OR_RETURN(const TokenCorpus corpus, OpenTokenCorpus("openwebtext"));
//   corpus.train.tokens[17];
//
//   FOLDER/train.bin, FOLDER/val.bin   as nanoGPT's (Karpathy 2022) and //tools:prepare_text's
//   FILE.bin                           one file: the first nine tenths (rounded down) for training, the rest for validation
//
// A .bin file is an array of ids, little-endian. FILE.idx beside it, Megatron-LM's index (document_index.h), gives the
// documents and the type of ids, uint16 or int32. Without it ids are uint16, and documents are unknown.
//
// Neither format has checksums or a vocabulary: ids are checked when they are used
// (tools/text_training/block_batches.h). If a file is truncated while it is mapped, reading it kills the process.
// Local.
#ifndef PLAIT_DATA_TEXT_TOKEN_FILE_H_
#define PLAIT_DATA_TEXT_TOKEN_FILE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "data/mapped_file.h"
#include "data/text/document_index.h"
#include "data/text/tokens.h"

namespace plait::data {

class TokenFile {
 public:
  // NotFound and other errors of the system name the file; DataLoss if the file is not whole ids, or the index is
  // damaged or does not match.
  static absl::StatusOr<std::shared_ptr<const TokenFile>> Open(const std::string& path);

  const std::string& path() const { return path_; }
  const Tokens& tokens() const { return tokens_; }
  const DocumentIndex* documents() const { return documents_.has_value() ? &*documents_ : nullptr; }

 private:
  TokenFile(std::string path, MappedFile ids) : path_(std::move(path)), ids_(std::move(ids)) {}
  absl::Status ReadIndex(const std::string& path);

  std::string path_;
  MappedFile ids_;
  std::optional<MappedFile> index_;
  Tokens tokens_;
  std::optional<DocumentIndex> documents_;
};

// Consecutive tokens, for training or validation.
struct TokenPart {
  Tokens tokens;
  const DocumentIndex* documents = nullptr;  // null: not known
  std::int64_t first = 0;                    // position of `tokens` in the file
  std::string name = {};                     // the file, for messages
};

struct TokenCorpus {
  std::vector<std::shared_ptr<const TokenFile>> files;
  TokenPart train, validation;
};

// Whether `path` is one of the two kinds above: it ends in .bin, or is a folder with train.bin.
bool IsTokenCorpus(const std::string& path);

// Errors of TokenFile::Open.
absl::StatusOr<TokenCorpus> OpenTokenCorpus(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKEN_FILE_H_
