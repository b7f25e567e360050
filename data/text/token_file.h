// Corpora of token ids in files that are mapped into memory, so that they may be larger than it.
//
//   PLAIT_ASSIGN_OR_RETURN(const TokenCorpus corpus, OpenTokenCorpus("openwebtext"));
//   corpus.train.tokens[17];
//
//   FOLDER/train.bin, FOLDER/val.bin   as nanoGPT's (Karpathy 2022) and //tools:prepare_text's
//   FILE.bin                           one file, whose first nine tenths (rounded down) are for training
//
// A .bin file has ids one behind another, little-endian. FILE.idx beside it, Megatron-LM's index (data/text/document_index.h),
// says where documents begin, and whether ids are uint16 or int32. Without it they are uint16, and documents are not known.
//
// Neither format has checksums or a vocabulary: ids are checked as they are used (tools/text_training/block_batches.h). A
// file that is cut short while it is read ends the process. Local.
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
  // NotFound and other errors of the system name the file; DataLoss where ids are cut, or the index is damaged or of another
  // file.
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

// Tokens that follow each other, of which training or validation takes blocks.
struct TokenPart {
  Tokens tokens;
  const DocumentIndex* documents = nullptr;  // null: not known
  std::int64_t first = 0;                    // of the tokens, in the file of the documents
  std::string name = {};                     // for people: the file
};

struct TokenCorpus {
  std::vector<std::shared_ptr<const TokenFile>> files;
  TokenPart train, validation;
};

// Whether `path` is one of the two kinds above, by its name and, of a folder, by the presence of train.bin.
bool IsTokenCorpus(const std::string& path);

absl::StatusOr<TokenCorpus> OpenTokenCorpus(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKEN_FILE_H_
