// Documents of files, one by one, so that a corpus may be larger than the memory.
//
//   PLAIT_ASSIGN_OR_RETURN(DocumentReader reader, DocumentReader::Open("corpus", {.text_key = "text"}));
//   while (true) {
//     PLAIT_ASSIGN_OR_RETURN(const std::optional<Document> document, reader.Next());
//     if (!document.has_value()) break;
//     ...
//   }
//
// A path is a file, or a folder, of which all files with the endings below are taken, those of its folders too, in the order
// of their paths; or "-", standard input, as lines of JSON:
//
//   .jsonl, .json   a line is an object, a document; empty lines are left out
//   .txt            a file is a document; a file that is named itself may have any other ending
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
  std::string text_key = "text";  // of the objects: a string
  std::string prompt_key = {};    // empty: documents have no prompts
};

// "{"text": "..."}" with the keys of `options`. InvalidArgument where the line is no object, or lacks one of the strings.
absl::StatusOr<Document> ParseDocument(const std::string& line, const DocumentOptions& options);

class DocumentReader {
 public:
  // Errors name the path: of the system, or NotFound where a folder has no such file.
  static absl::StatusOr<DocumentReader> Open(const std::string& path, DocumentOptions options);

  // nullopt behind the last. Errors as ParseDocument's, behind "FILE:LINE: "; of the system name the file.
  absl::StatusOr<std::optional<Document>> Next();

  std::int64_t total_bytes() const { return total_bytes_; }  // 0: not known
  std::int64_t read_bytes() const { return read_bytes_; }
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
