#include "data/text/token_file_writer.h"

#include <iterator>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace plait::data {

using base::FileDescriptor;

absl::Status TokenFileWriter::Output::Flush() {
  PLAIT_RETURN_IF_ERROR(file_.WriteAt(bytes_.data(), std::ssize(bytes_), written_));
  written_ += std::ssize(bytes_);
  bytes_.clear();
  return absl::OkStatus();
}

absl::StatusOr<TokenFileWriter> TokenFileWriter::Create(const std::string& path, TokenType type) {
  PLAIT_ASSIGN_OR_RETURN(FileDescriptor file, FileDescriptor::Open(path, FileDescriptor::Mode::kCreate));
  return TokenFileWriter(std::move(file), type);
}

absl::Status TokenFileWriter::AddSequence(absl::Span<const std::int32_t> ids) {
  if (ids.size() > std::numeric_limits<std::int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat("a sequence of ", ids.size(), " tokens, at most ",
                                                   std::numeric_limits<std::int32_t>::max(),
                                                   " fit the index: cut it into several"));
  }
  for (const std::int32_t id : ids) {
    PLAIT_RETURN_IF_ERROR(type_ == TokenType::kUint16 ? output_.Add(static_cast<std::uint16_t>(id))
                                                      : output_.Add(id));
  }
  lengths_.push_back(static_cast<std::int32_t>(ids.size()));
  tokens_ += std::ssize(ids);
  return absl::OkStatus();
}

void TokenFileWriter::EndDocument() { first_sequences_.push_back(std::ssize(lengths_)); }

absl::Status TokenFileWriter::Finish(const std::string& index) {
  PLAIT_RETURN_IF_ERROR(output_.Flush());
  return WriteIndex(index);
}

absl::Status TokenFileWriter::WriteIndex(const std::string& path) const {
  PLAIT_ASSIGN_OR_RETURN(FileDescriptor file, FileDescriptor::Open(path, FileDescriptor::Mode::kCreate));
  Output output(std::move(file));
  for (const char byte : {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'}) {
    PLAIT_RETURN_IF_ERROR(output.Add(byte));
  }
  PLAIT_RETURN_IF_ERROR(output.Add(std::uint64_t{1}));
  PLAIT_RETURN_IF_ERROR(output.Add(static_cast<std::uint8_t>(type_ == TokenType::kUint16 ? 8 : 4)));
  PLAIT_RETURN_IF_ERROR(output.Add(std::uint64_t{lengths_.size()}));
  PLAIT_RETURN_IF_ERROR(output.Add(std::uint64_t{first_sequences_.size()}));
  for (const std::int32_t length : lengths_) PLAIT_RETURN_IF_ERROR(output.Add(length));
  std::int64_t begin = 0;  // byte
  for (const std::int32_t length : lengths_) {
    PLAIT_RETURN_IF_ERROR(output.Add(begin));
    begin += length * BytesOf(type_);
  }
  for (const std::int64_t first : first_sequences_) PLAIT_RETURN_IF_ERROR(output.Add(first));
  return output.Flush();
}

}  // namespace plait::data
