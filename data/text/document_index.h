// The documents in a file of tokens, and which of their tokens are excluded from the loss.
//
//   PLAIT_ASSIGN_OR_RETURN(const DocumentIndex index, DocumentIndex::Parse(bytes, "train.idx"));
//   index.Ignore(IgnoredTargets::kDocuments, begin + 1, absl::MakeSpan(targets));
//
// The file is Megatron-LM's index (its IndexedDataset), little-endian, without gaps:
//
//   "MMIDIDX\0\0"                              9 bytes
//   1                                          uint64: version
//   8 or 4                                     uint8: tokens are uint16 or int32
//   sequences, documents + 1                   uint64 each
//   tokens of each sequence                    int32
//   byte at which each sequence begins         int64
//   first sequence of each document, and the number of sequences behind the last   int64
//   a mode for each sequence, or nothing       int8, not read
//
// A document consists of consecutive sequences, of which all but the last are prompts (token_file_writer.h);
// Megatron-LM's own documents usually have one sequence. Local.
#ifndef PLAIT_DATA_TEXT_DOCUMENT_INDEX_H_
#define PLAIT_DATA_TEXT_DOCUMENT_INDEX_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "data/text/tokens.h"

namespace plait::data {

// Targets that are excluded from the loss.
enum class IgnoredTargets {
  kNone,
  kDocuments,  // the first token of each document, which cannot be predicted
  kPrompts,    // the same, and the prompts of documents
};
inline constexpr std::int64_t kIgnoredTarget = -100;  // as PyTorch's ignore_index

class DocumentIndex {
 public:
  // Parses the contents of an index file, which must outlive the result. DataLoss, "NAME: what", if it is not such an
  // index or its numbers are inconsistent; reads all of them, 12 bytes per sequence and 8 per document.
  static absl::StatusOr<DocumentIndex> Parse(absl::string_view bytes, const std::string& name);

  TokenType type() const { return type_; }
  std::int64_t sequences() const { return sequences_; }
  std::int64_t documents() const { return documents_; }
  std::int64_t tokens() const { return tokens_; }

  // Sets targets to be ignored to kIgnoredTarget; targets[i] is token first + i of the file.
  void Ignore(IgnoredTargets ignored, std::int64_t first, absl::Span<std::int64_t> targets) const;

 private:
  DocumentIndex() = default;
  absl::Status ParseHeader(absl::string_view bytes, const std::string& name);
  absl::Status CheckNumbers(const std::string& name);
  std::int64_t Length(std::int64_t sequence) const;         // tokens
  std::int64_t Begin(std::int64_t sequence) const;          // token
  std::int64_t FirstSequence(std::int64_t document) const;  // also of `documents_`

  TokenType type_ = TokenType::kUint16;
  std::int64_t sequences_ = 0, documents_ = 0, tokens_ = 0;
  const char *lengths_ = nullptr, *pointers_ = nullptr, *first_sequences_ = nullptr;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_DOCUMENT_INDEX_H_
