// Writes token files with their index, sequence by sequence, as token_file.h reads them.
//
//   PLAIT_ASSIGN_OR_RETURN(TokenFileWriter writer, TokenFileWriter::Create("train.bin", TokenType::kUint16));
//   PLAIT_RETURN_IF_ERROR(writer.AddSequence(prompt));     // optional
//   PLAIT_RETURN_IF_ERROR(writer.AddSequence(ids));
//   writer.EndDocument();
//   PLAIT_RETURN_IF_ERROR(writer.Finish("train.idx"));
//
// Takes 4 bytes of memory per sequence and 8 per document. Errors of the disk name the file. Local.
#ifndef PLAIT_DATA_TEXT_TOKEN_FILE_WRITER_H_
#define PLAIT_DATA_TEXT_TOKEN_FILE_WRITER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/file_descriptor.h"
#include "data/text/tokens.h"

namespace plait::data {

class TokenFileWriter {
 public:
  static absl::StatusOr<TokenFileWriter> Create(const std::string& path, TokenType type);

  // Ids must fit the type (not checked). InvalidArgument for 2^31 or more of them.
  absl::Status AddSequence(absl::Span<const std::int32_t> ids);
  void EndDocument();

  std::int64_t documents() const { return static_cast<std::int64_t>(first_sequences_.size()) - 1; }
  std::int64_t tokens() const { return tokens_; }

  // Writes the remaining ids and the index, replacing an existing one. Nothing may be added afterwards.
  absl::Status Finish(const std::string& index);

 private:
  // Buffered sequential output.
  class Output {
   public:
    explicit Output(base::FileDescriptor file) : file_(std::move(file)) {}
    template <typename Number>
    absl::Status Add(Number number) {
      bytes_.append(reinterpret_cast<const char*>(&number), sizeof(number));
      return bytes_.size() < kAtOnce ? absl::OkStatus() : Flush();
    }
    absl::Status Flush();

   private:
    static constexpr std::size_t kAtOnce = std::size_t{1} << 20;
    base::FileDescriptor file_;
    std::string bytes_;
    std::int64_t written_ = 0;
  };

  TokenFileWriter(base::FileDescriptor file, TokenType type) : output_(std::move(file)), type_(type) {}
  absl::Status WriteIndex(const std::string& path) const;

  Output output_;
  TokenType type_;
  std::int64_t tokens_ = 0;
  std::vector<std::int32_t> lengths_;                // of sequences
  std::vector<std::int64_t> first_sequences_ = {0};  // of documents, and of the next
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TOKEN_FILE_WRITER_H_
