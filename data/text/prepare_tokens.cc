#include "data/text/prepare_tokens.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/path.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/text/token_file_writer.h"
#include "data/text/tokenizer_folder.h"

namespace plait::data {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr const char* kTokenFileNames[] = {"train.bin", "val.bin", "train.idx", "val.idx"};

// Bytes of text tokenized at once: enough for all threads, little memory.
constexpr std::int64_t kBytesAtOnce = std::int64_t{1} << 24;

struct EncodedDocument {
  absl::StatusOr<Ids> prompt = Ids();
  absl::StatusOr<Ids> text = Ids();
};

std::vector<EncodedDocument> Encode(const Tokenizer& tokenizer, const std::vector<Document>& documents,
                                    int threads) {
  std::vector<EncodedDocument> encoded(documents.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < documents.size(); i = next++) {
      const Document& document = documents[i];
      encoded[i].text = tokenizer.Encode(document.text);
      if (document.prompt.empty()) continue;
      encoded[i].prompt = tokenizer.Encode(document.prompt);
      // A document begins once.
      const std::optional<std::int32_t> begin = tokenizer.begin_of_text();
      if (begin.has_value() && encoded[i].text.ok()) encoded[i].text->erase(encoded[i].text->begin());
    }
  };
  std::vector<std::future<void>> others;  // wait for their threads, also where an exception destroys them
  try {
    for (int t = 1; t < threads; ++t) others.push_back(std::async(std::launch::async, work));
  } catch (const std::system_error&) {
    // A limit (ulimit -u): the threads that have started do all of it.
  }
  work();
  for (std::future<void>& other : others) other.get();
  return encoded;
}

bool IsForValidation(std::int64_t document, double share) {
  const auto taken = [&](std::int64_t n) { return std::floor(static_cast<double>(n) * share); };
  return taken(document + 1) > taken(document);
}

bool IsSame(const std::string& path, const std::string& other) {
  std::error_code ignored;
  return std::filesystem::equivalent(path, other, ignored);
}

absl::Status CheckDocuments(const std::vector<std::string>& documents, const std::string& out) {
  std::set<std::string> names(std::begin(kTokenFileNames), std::end(kTokenFileNames));
  names.insert(std::begin(kTokenizerFileNames), std::end(kTokenizerFileNames));
  for (const std::string& document : documents) {
    const std::string name = std::filesystem::path(document).filename().string();
    if (names.count(name) == 0 || !IsSame(document, absl::StrCat(out, "/", name))) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        document,
        ": a document, but also a file that would be replaced; expected another directory for --out"));
  }
  return absl::OkStatus();
}

struct Writers {
  TokenFileWriter train, validation;
};

class Preparation {
 public:
  Preparation(const TokenOptions& options, const Tokenizer& tokenizer, Writers& writers)
      : options_(options), tokenizer_(tokenizer), writers_(writers) {}

  absl::Status Run(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    PLAIT_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(options_.input, options_.documents));
    PLAIT_RETURN_IF_ERROR(CheckDocuments(reader.paths(), options_.out));
    if (progress) progress(0, reader.total_bytes());
    for (bool more = true; more;) {
      std::vector<Document> documents;
      PLAIT_ASSIGN_OR_RETURN(more, Read(reader, documents));
      for (const EncodedDocument& document : Encode(tokenizer_, documents, options_.threads)) {
        PLAIT_RETURN_IF_ERROR(Write(document));
      }
      if (progress) progress(reader.read_bytes(), reader.total_bytes());
    }
    return absl::OkStatus();
  }

  std::int64_t empty_documents() const { return empty_; }

 private:
  // Whether more follow.
  absl::StatusOr<bool> Read(DocumentReader& reader, std::vector<Document>& documents) {
    for (std::int64_t bytes = 0; bytes < kBytesAtOnce;) {
      PLAIT_ASSIGN_OR_RETURN(std::optional<Document> document, reader.Next());
      if (!document.has_value()) return false;
      if (document->text.empty()) {
        ++empty_;
        continue;
      }
      bytes += std::ssize(document->prompt) + std::ssize(document->text);
      documents.push_back(*std::move(document));
    }
    return true;
  }

  absl::Status Write(const EncodedDocument& document) {
    PLAIT_RETURN_IF_ERROR(document.prompt);
    PLAIT_RETURN_IF_ERROR(document.text);
    const bool validation = IsForValidation(written_++, options_.validation_share);
    TokenFileWriter& writer = validation ? writers_.validation : writers_.train;
    if (!document.prompt->empty()) PLAIT_RETURN_IF_ERROR(writer.AddSequence(*document.prompt));
    Ids text = *document.text;
    if (tokenizer_.end_of_text().has_value()) text.push_back(*tokenizer_.end_of_text());
    PLAIT_RETURN_IF_ERROR(writer.AddSequence(text));
    writer.EndDocument();
    return absl::OkStatus();
  }

  const TokenOptions& options_;
  const Tokenizer& tokenizer_;
  Writers& writers_;
  std::int64_t written_ = 0, empty_ = 0;
};

absl::Status Remove(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::remove(path, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot remove ", path.string(), ": ", error.message()));
}

// The file that a link points to: WriteAtomically replaces that, and the link stays. Also where power is lost.
absl::Status RemoveIds(const std::string& path) {
  std::error_code error;
  const std::filesystem::path file = std::filesystem::canonical(path, error);
  if (error) return absl::OkStatus();  // there is none
  PLAIT_RETURN_IF_ERROR(Remove(file));
  base::SyncFolder(file.parent_path().string());
  return absl::OkStatus();
}

// Files get their names one after the other. Ids of an earlier corpus would be read, without an error, by a new vocabulary
// or index: they go before one of these comes, also where power is lost; and so does a vocabulary of another kind, unless
// it is the user's, beside the one that was asked for.
absl::Status RemoveOther(const std::vector<TokenizerFile>& files, const TokenOptions& options) {
  const std::string& out = options.out;
  const auto in_out = [&](const std::string& name) { return absl::StrCat(out, "/", name); };
  for (const char* ids : {"train.bin", "val.bin"}) PLAIT_RETURN_IF_ERROR(RemoveIds(in_out(ids)));
  for (const char* name : kTokenizerFileNames) {
    if (IsSame(out, options.bpe_folder)) break;
    const bool comes =
        std::any_of(files.begin(), files.end(), [&](const TokenizerFile& file) { return file.name == name; });
    if (!comes) PLAIT_RETURN_IF_ERROR(Remove(in_out(name)));
  }
  base::SyncFolder(out);
  return absl::OkStatus();
}

// Whether the file is a link to one of the user's own, which WriteAtomically would replace.
bool LinksElsewhere(const std::string& path, const std::string& source) {
  std::error_code ignored;
  return std::filesystem::is_symlink(path, ignored) && !IsSame(path, source);
}

absl::Status Copy(const std::string& from, const std::string& to) {
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(from));
  return WriteWholeFile(to, bytes);
}

absl::Status ReplaceLinks(const std::vector<TokenizerFile>& files, const std::string& out) {
  for (const TokenizerFile& file : files) {
    const std::string path = absl::StrCat(out, "/", file.name);
    if (!LinksElsewhere(path, file.path)) continue;
    PLAIT_RETURN_IF_ERROR(Remove(path));
    PLAIT_RETURN_IF_ERROR(Copy(file.path, path));
  }
  return absl::OkStatus();
}

// Writes several files atomically, one by one: `write` fills temporary files; the last of them is renamed first.
absl::Status WriteTogether(const std::vector<std::string>& paths,
                           const std::function<absl::Status(const std::vector<std::string>& partial)>& write,
                           std::vector<std::string> partial = {}) {
  if (partial.size() == paths.size()) return write(partial);
  return WriteAtomically(paths[partial.size()], 0, [&](const std::string& path) {
    partial.push_back(path);
    return WriteTogether(paths, write, partial);
  });
}

absl::Status CheckParts(const PreparedTokens& made, const TokenOptions& options) {
  if (made.train.documents > 0 && made.validation.documents > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(options.input, ": ", made.train.documents, " documents for training and ",
                   made.validation.documents, " for validation, a share of ", options.validation_share,
                   ": give another share, or more documents; train_gpt splits a single text by itself"));
}

}  // namespace

absl::StatusOr<PreparedTokens> PrepareTokens(
    const TokenOptions& options, const std::function<void(std::int64_t, std::int64_t)>& progress) {
  if (!(options.validation_share > 0 && options.validation_share < 1)) {
    return absl::InvalidArgumentError(absl::StrCat("validation_share=", options.validation_share,
                                                   ": expected a share between 0 and 1, both excluded"));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::unique_ptr<Tokenizer> tokenizer, LoadTokenizer(options.bpe_folder));
  const std::vector<TokenizerFile> vocabulary = TokenizerFiles(options.bpe_folder);
  PLAIT_RETURN_IF_ERROR(MakeFolders(options.out));
  PreparedTokens made;
  made.vocabulary_size = tokenizer->vocabulary_size();
  made.has_end_of_text = tokenizer->end_of_text().has_value();
  const TokenType type = made.vocabulary_size <= 1 << 16 ? TokenType::kUint16 : TokenType::kInt32;
  // The .bin files are renamed last: without them there is no corpus.
  const auto file = [&](const std::string& name) { return absl::StrCat(options.out, "/", name); };
  std::vector<TokenizerFile> copied = vocabulary;
  std::erase_if(copied, [&](const TokenizerFile& one) { return LinksElsewhere(file(one.name), one.path); });
  const auto fill = [&](const std::vector<std::string>& partial) -> absl::Status {
    PLAIT_ASSIGN_OR_RETURN(TokenFileWriter of_train, TokenFileWriter::Create(partial[0], type));
    PLAIT_ASSIGN_OR_RETURN(TokenFileWriter of_validation, TokenFileWriter::Create(partial[1], type));
    Writers writers = {std::move(of_train), std::move(of_validation)};
    Preparation preparation(options, *tokenizer, writers);
    PLAIT_RETURN_IF_ERROR(preparation.Run(progress));
    made.train = {writers.train.documents(), writers.train.tokens()};
    made.validation = {writers.validation.documents(), writers.validation.tokens()};
    made.empty_documents = preparation.empty_documents();
    PLAIT_RETURN_IF_ERROR(CheckParts(made, options));
    for (std::size_t i = 0; i < copied.size(); ++i)
      PLAIT_RETURN_IF_ERROR(Copy(copied[i].path, partial[4 + i]));
    PLAIT_RETURN_IF_ERROR(writers.train.Finish(partial[2]));
    PLAIT_RETURN_IF_ERROR(writers.validation.Finish(partial[3]));
    PLAIT_RETURN_IF_ERROR(RemoveOther(vocabulary, options));
    return ReplaceLinks(vocabulary, options.out);
  };
  std::vector<std::string> paths;
  for (const char* name : kTokenFileNames) paths.push_back(file(name));
  for (const TokenizerFile& one : copied) paths.push_back(file(one.name));
  absl::Status filled;  // without the names of all files in front
  const absl::Status written =
      WriteTogether(paths, [&](const auto& partial) { return filled = fill(partial); });
  PLAIT_RETURN_IF_ERROR(filled);
  PLAIT_RETURN_IF_ERROR(written);
  return made;
}

}  // namespace plait::data
