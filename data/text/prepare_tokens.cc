#include "data/text/prepare_tokens.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/text/byte_pair_tokenizer.h"
#include "data/text/token_file_writer.h"

namespace plait::data {
namespace {

using Ids = std::vector<std::int32_t>;

// Bytes of text tokenized at once: enough for all threads, little memory.
constexpr std::int64_t kBytesAtOnce = std::int64_t{1} << 24;

struct EncodedDocument {
  absl::StatusOr<Ids> prompt, text;
};

std::vector<EncodedDocument> Encode(const Tokenizer& tokenizer, const std::vector<Document>& documents,
                                    int threads) {
  std::vector<EncodedDocument> encoded(documents.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < documents.size(); i = next++) {
      encoded[i] = {tokenizer.Encode(documents[i].prompt), tokenizer.Encode(documents[i].text)};
    }
  };
  std::vector<std::thread> others;
  for (int t = 1; t < threads; ++t) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
  return encoded;
}

bool IsForValidation(std::int64_t document, double share) {
  const auto taken = [&](std::int64_t n) { return std::floor(static_cast<double>(n) * share); };
  return taken(document + 1) > taken(document);
}

struct Writers {
  TokenFileWriter train, validation;
};

class Preparation {
 public:
  Preparation(const TokenOptions& options, const BytePairTokenizer& tokenizer, Writers& writers)
      : options_(options), tokenizer_(tokenizer), writers_(writers) {}

  absl::Status Run(const std::function<void(std::int64_t, std::int64_t)>& progress) {
    PLAIT_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open(options_.input, options_.documents));
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
  const BytePairTokenizer& tokenizer_;
  Writers& writers_;
  std::int64_t written_ = 0, empty_ = 0;
};

constexpr char kVocabulary[] = "/vocab.json", kMerges[] = "/merges.txt";  // Hugging Face's names

// Into files `vocabulary` and `merges`.
absl::Status CopyTokenizer(const std::string& from, const std::string& vocabulary,
                           const std::string& merges) {
  std::error_code ignored;
  const bool renamed = !std::filesystem::exists(absl::StrCat(from, kVocabulary), ignored);
  const std::pair<std::string, std::string> files[] = {{renamed ? "/encoder.json" : kVocabulary, vocabulary},
                                                       {renamed ? "/vocab.bpe" : kMerges, merges}};
  for (const auto& [name, copy] : files) {
    PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(absl::StrCat(from, name)));
    PLAIT_RETURN_IF_ERROR(WriteWholeFile(copy, bytes));
  }
  return absl::OkStatus();
}

bool SameBytes(const std::string& a, const std::string& b) {
  const absl::StatusOr<std::string> of_a = ReadWholeFile(a), of_b = ReadWholeFile(b);
  return of_a.ok() && of_b.ok() && *of_a == *of_b;
}

// Files get their names one after the other. Ids of an earlier vocabulary would be read, without an error, as text of the new
// one: they go before it comes.
absl::Status RemoveIdsOfOther(const std::string& vocabulary, const std::string& merges,
                              const std::string& out) {
  if (SameBytes(vocabulary, out + kVocabulary) && SameBytes(merges, out + kMerges)) return absl::OkStatus();
  for (const char* ids : {"/train.bin", "/val.bin"}) {
    std::error_code error;
    std::filesystem::remove(out + ids, error);
    if (error) return absl::UnavailableError(absl::StrCat("cannot remove ", out, ids, ": ", error.message()));
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
    return absl::InvalidArgumentError(absl::StrCat("a share of ", options.validation_share,
                                                   " for validation; expected one between 0 and 1"));
  }
  PLAIT_ASSIGN_OR_RETURN(const BytePairTokenizer tokenizer, BytePairTokenizer::Load(options.bpe_folder));
  PLAIT_RETURN_IF_ERROR(MakeFolders(options.out));
  PreparedTokens made;
  made.vocabulary_size = tokenizer.vocabulary_size();
  made.has_end_of_text = tokenizer.end_of_text().has_value();
  const TokenType type = made.vocabulary_size <= 1 << 16 ? TokenType::kUint16 : TokenType::kInt32;
  // The .bin files are renamed last: without them there is no corpus, and those of an earlier one do not match the
  // index.
  const auto file = [&](const char* name) { return absl::StrCat(options.out, "/", name); };
  const auto fill = [&](const std::vector<std::string>& partial) -> absl::Status {
    PLAIT_ASSIGN_OR_RETURN(TokenFileWriter of_train, TokenFileWriter::Create(partial[0], type));
    PLAIT_ASSIGN_OR_RETURN(TokenFileWriter of_validation, TokenFileWriter::Create(partial[1], type));
    Writers writers = {std::move(of_train), std::move(of_validation)};
    Preparation preparation(options, tokenizer, writers);
    PLAIT_RETURN_IF_ERROR(preparation.Run(progress));
    made.train = {writers.train.documents(), writers.train.tokens()};
    made.validation = {writers.validation.documents(), writers.validation.tokens()};
    made.empty_documents = preparation.empty_documents();
    PLAIT_RETURN_IF_ERROR(CheckParts(made, options));
    PLAIT_RETURN_IF_ERROR(CopyTokenizer(options.bpe_folder, partial[4], partial[5]));
    PLAIT_RETURN_IF_ERROR(writers.train.Finish(partial[2]));
    PLAIT_RETURN_IF_ERROR(writers.validation.Finish(partial[3]));
    return RemoveIdsOfOther(partial[4], partial[5], options.out);
  };
  absl::Status filled;  // without the names of the six files in front
  const absl::Status written = WriteTogether({file("train.bin"), file("val.bin"), file("train.idx"),
                                              file("val.idx"), file("vocab.json"), file("merges.txt")},
                                             [&](const auto& partial) { return filled = fill(partial); });
  PLAIT_RETURN_IF_ERROR(filled);
  PLAIT_RETURN_IF_ERROR(written);
  return made;
}

}  // namespace plait::data
