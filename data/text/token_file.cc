#include "data/text/token_file.h"

#include <filesystem>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace plait::data {
namespace {

constexpr char kBin[] = ".bin", kTrain[] = "/train.bin", kValidation[] = "/val.bin";

bool Exists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

TokenPart Whole(const TokenFile& file) {
  return {.tokens = file.tokens(), .documents = file.documents(), .first = 0, .name = file.path()};
}

}  // namespace

absl::StatusOr<std::shared_ptr<const TokenFile>> TokenFile::Open(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(MappedFile ids, MappedFile::Open(path));
  const std::shared_ptr<TokenFile> file(new TokenFile(path, std::move(ids)));
  const std::string index = absl::StrCat(absl::StripSuffix(path, kBin), ".idx");
  if (Exists(index)) PLAIT_RETURN_IF_ERROR(file->ReadIndex(index));
  const TokenType type = file->documents_.has_value() ? file->documents_->type() : TokenType::kUint16;
  const std::int64_t bytes = std::ssize(file->ids_.bytes());
  if (bytes % BytesOf(type) != 0) {
    return absl::DataLossError(absl::StrCat(path, ": ", bytes, " bytes are not a multiple of the token size ",
                                            BytesOf(type), ": truncated"));
  }
  file->tokens_ = Tokens(type, file->ids_.bytes());
  if (file->documents_.has_value() && file->documents_->tokens() != file->tokens_.size()) {
    return absl::DataLossError(absl::StrCat(path, ": ", file->tokens_.size(), " tokens, but ", index,
                                            " lists ", file->documents_->tokens(),
                                            ": one of them is cut short, or of another corpus"));
  }
  return file;
}

absl::Status TokenFile::ReadIndex(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(index_, MappedFile::Open(path));
  PLAIT_ASSIGN_OR_RETURN(documents_, DocumentIndex::Parse(index_->bytes(), path));
  return absl::OkStatus();
}

bool IsTokenCorpus(const std::string& path) {
  return absl::EndsWith(path, kBin) || (!path.empty() && Exists(absl::StrCat(path, kTrain)));
}

absl::StatusOr<TokenCorpus> OpenTokenCorpus(const std::string& path) {
  TokenCorpus corpus;
  if (!absl::EndsWith(path, kBin)) {
    for (const char* name : {kTrain, kValidation}) {
      PLAIT_ASSIGN_OR_RETURN(auto file, TokenFile::Open(absl::StrCat(path, name)));
      corpus.files.push_back(std::move(file));
    }
    corpus.train = Whole(*corpus.files[0]);
    corpus.validation = Whole(*corpus.files[1]);
    return corpus;
  }
  PLAIT_ASSIGN_OR_RETURN(auto file, TokenFile::Open(path));
  const std::int64_t size = file->tokens().size(), train = size - (size + 9) / 10;
  corpus.train = corpus.validation = Whole(*file);
  corpus.train.tokens = file->tokens().Part(0, train);
  corpus.validation.tokens = file->tokens().Part(train, size - train);
  corpus.validation.first = train;
  corpus.files.push_back(std::move(file));
  return corpus;
}

}  // namespace plait::data
