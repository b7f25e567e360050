#include "data/text/document_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/json_depth.h"
#include "base/status_macros.h"
#include "data/text/text_files.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

constexpr char kStandardInput[] = "-";

bool HasLines(const std::string& path) {
  return path == kStandardInput || absl::EndsWith(path, ".jsonl") || absl::EndsWith(path, ".json");
}

struct Walk {
  std::vector<std::string> files = {};
  std::vector<std::string> links = {};  // to directories, to follow later
  std::set<fs::path> visited = {};      // canonical paths of directories
};

std::error_code VisitFolder(const std::string& folder, Walk& walk) {
  std::error_code error;
  const fs::path real = fs::canonical(folder, error);
  if (error || !walk.visited.insert(real).second) return error;
  fs::directory_iterator entry(folder, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string path = entry->path().string();
    std::error_code ignored;
    if (entry->is_directory(ignored)) {
      if (entry->is_symlink(ignored)) {
        walk.links.push_back(path);
      } else if (const std::error_code below = VisitFolder(path, walk)) {
        return below;
      }
    } else if (entry->is_regular_file(ignored) && (HasLines(path) || absl::EndsWith(path, ".txt"))) {
      walk.files.push_back(path);
    }
  }
  return error;
}

absl::StatusOr<std::vector<std::string>> FilesUnder(const std::string& folder) {
  Walk walk;
  std::vector<std::string> folders = {folder};
  std::error_code error;
  // Links after all other directories, and sorted: which path of a directory counts does not depend on the order in
  // which the system lists them.
  while (!error && !folders.empty()) {
    for (const std::string& next : folders) {
      if (!error) error = VisitFolder(next, walk);
    }
    folders = std::exchange(walk.links, {});
    std::sort(folders.begin(), folders.end());
  }
  if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat(folder, ": cannot be read"));
  if (walk.files.empty()) {
    return absl::NotFoundError(absl::StrCat(folder, ": no *.txt, *.jsonl or *.json in this folder"));
  }
  std::sort(walk.files.begin(), walk.files.end());
  return walk.files;
}

// Whether this is what keeps the line from being JSON.
bool HasLoneSurrogate(const std::string& line, const nlohmann::json& parsed) {
  if (!parsed.is_discarded()) return false;
  std::string mended;
  for (std::size_t i = 0; i < line.size(); ++i) {
    mended += line[i];
    if (line[i] != '\\' || i + 1 == line.size()) continue;
    mended += line[++i];
    if (line[i] != 'u' || i + 1 == line.size() || (line[i + 1] | 0x20) != 'd') continue;
    // Any \uDXXX becomes \u0XXX, which is a character by itself.
    mended += '0';
    ++i;
  }
  return nlohmann::json::accept(mended);
}

absl::StatusOr<std::string> TextOf(const nlohmann::json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) {
    return absl::InvalidArgumentError(absl::StrCat("no string \"", key, "\" in this object"));
  }
  return found->get<std::string>();
}

}  // namespace

absl::StatusOr<Document> ParseDocument(const std::string& line, const DocumentOptions& options) {
  const bool parses = base::JsonDepth(line) <= base::kDeepestJson;
  const nlohmann::json object =
      parses ? nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false) : nlohmann::json();
  if (parses && HasLoneSurrogate(line, object)) {
    return absl::InvalidArgumentError(
        "a \\uD800 to \\uDFFF without its other half is no character; expected a pair, such as "
        "\\ud83d\\ude00, or \\ufffd");
  }
  if (!object.is_object()) {
    return absl::InvalidArgumentError("expected a JSON object, such as {\"text\": \"...\"}, in each line");
  }
  Document document;
  PLAIT_ASSIGN_OR_RETURN(document.text, TextOf(object, options.text_key));
  if (!options.prompt_key.empty()) {
    PLAIT_ASSIGN_OR_RETURN(document.prompt, TextOf(object, options.prompt_key));
  }
  return document;
}

absl::StatusOr<DocumentReader> DocumentReader::Open(const std::string& path, DocumentOptions options) {
  DocumentReader reader(std::move(options));
  std::error_code ignored;
  reader.paths_ = {path};
  if (path == kStandardInput) return reader;
  if (fs::is_directory(path, ignored)) {
    PLAIT_ASSIGN_OR_RETURN(reader.paths_, FilesUnder(path));
  }
  for (const std::string& file : reader.paths_) {
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(file, error);
    if (error) return absl::ErrnoToStatus(error.value(), absl::StrCat(file, ": cannot be read"));
    reader.total_bytes_ += static_cast<std::int64_t>(bytes);
  }
  return reader;
}

absl::StatusOr<std::optional<Document>> DocumentReader::Next() {
  while (true) {
    if (lines_ != nullptr) {
      PLAIT_ASSIGN_OR_RETURN(std::optional<Document> document, NextLine());
      if (document.has_value()) return document;
      lines_.reset();
    }
    if (next_ == paths_.size()) return std::nullopt;
    const std::string& path = paths_[next_++];
    if (HasLines(path)) {
      PLAIT_RETURN_IF_ERROR(OpenLines(path));
    } else {
      PLAIT_ASSIGN_OR_RETURN(std::string text, ReadTextFile(path));
      read_bytes_ += static_cast<std::int64_t>(text.size());
      return Document{.prompt = "", .text = std::move(text)};
    }
  }
}

absl::Status DocumentReader::OpenLines(const std::string& path) {
  line_ = 0;
  if (path == kStandardInput) {
    lines_ = std::shared_ptr<std::istream>(&std::cin, [](std::istream*) {});
    return absl::OkStatus();
  }
  errno = 0;
  lines_ = std::make_shared<std::ifstream>(path, std::ios::binary);
  return lines_->good()
             ? absl::OkStatus()
             : absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat(path, ": cannot be read"));
}

absl::StatusOr<std::optional<Document>> DocumentReader::NextLine() {
  const std::string path = paths_[next_ - 1] == kStandardInput ? "standard input" : paths_[next_ - 1];
  std::string line;
  errno = 0;
  while (std::getline(*lines_, line)) {
    ++line_;
    read_bytes_ += static_cast<std::int64_t>(line.size()) + 1;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    absl::StatusOr<Document> document = ParseDocument(line, options_);
    PLAIT_RETURN_IF_ERROR(base::Prefixed(document.status(), absl::StrCat(path, ":", line_)));
    return *std::move(document);
  }
  // std::cin reads through stdin, and takes its errors for the end.
  if (lines_->bad() || (lines_.get() == &std::cin && std::ferror(stdin) != 0))
    return absl::ErrnoToStatus(errno == 0 ? EIO : errno, absl::StrCat(path, ": cannot be read"));
  return std::nullopt;
}

}  // namespace plait::data
