// Streams the documents of a corpus, which may be larger than memory.
//
//   PLAIT_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open("corpus", {.text_key = "text"}));
//   while (true) {
//     PLAIT_ASSIGN_OR_RETURN(const std::optional<Document> document, reader.Next());
//     if (!document.has_value()) break;
//     ...
//   }
//
// A path is a file; a directory, of which all files with the extensions below are read, recursively, in the order of
// their paths; or "-", JSON lines from standard input. Symbolic links are followed. A directory that can be reached on
// several ways is read once: by the path without links below the given one, else by the first of the links, sorted.
//
//   .jsonl, .json   one JSON object per line, each a document; blank lines are skipped
//   .txt            the whole file is a document; so is a file given as the path itself, with any other extension
//
// Local.
#ifndef PLAIT_DATA_TEXT_DOCUMENT_READER_H_
#define PLAIT_DATA_TEXT_DOCUMENT_READER_H_

#include <cstdint>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace plait::data {

struct Document {
  std::string prompt;  // empty where there is none
  std::string text;
};

struct DocumentOptions {
  std::string text_key = "text";  // of a string in each JSON object
  std::string prompt_key = {};    // likewise; empty: documents have no prompts
};

// Parses a line such as {"text": "..."}. InvalidArgument if it is not a JSON object, or lacks one of the keys.
absl::StatusOr<Document> ParseDocument(const std::string& line, const DocumentOptions& options);

class DocumentReader {
 public:
  // NotFound also if a directory has no such file; else the system's error. Both name the path.
  static absl::StatusOr<DocumentReader> Open(const std::string& path, DocumentOptions options);

  // Returns the next document, nullopt after the last. Errors of ParseDocument, prefixed with "FILE:LINE: ", or of the
  // system.
  absl::StatusOr<std::optional<Document>> Next();

  std::int64_t total_bytes() const { return total_bytes_; }  // of all files; 0: unknown (standard input)
  std::int64_t read_bytes() const { return read_bytes_; }
  const std::vector<std::string>& paths() const { return paths_; }  // of all files
  std::int64_t files() const { return static_cast<std::int64_t>(paths_.size()); }

 private:
  explicit DocumentReader(DocumentOptions options) : options_(std::move(options)) {}
  absl::Status OpenLines(const std::string& path);
  absl::StatusOr<std::optional<Document>> NextLine();

  DocumentOptions options_;
  std::vector<std::string> paths_;
  std::size_t next_ = 0;                 // of the paths
  std::shared_ptr<std::istream> lines_;  // of paths_[next_ - 1]; null: none is open
  std::int64_t line_ = 0;
  std::int64_t total_bytes_ = 0, read_bytes_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_DOCUMENT_READER_H_
