#include "data/text/text_files.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"

namespace plait::data {
namespace {

namespace fs = std::filesystem;

enum class Links { kLeaveOut, kFollow };

// Regular files in the folder with this extension (empty: any), by name.
std::vector<std::string> FilesOf(const std::string& folder, const std::string& extension, Links links) {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code ignored;
    if (!entry->is_regular_file(ignored) || (links == Links::kLeaveOut && entry->is_symlink(ignored)))
      continue;
    if (extension.empty() || entry->path().extension() == extension) files.push_back(entry->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

absl::StatusOr<std::string> Joined(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) {
    PLAIT_ASSIGN_OR_RETURN(const std::string part, ReadTextFile(file));
    text += part;
  }
  return text;
}

std::string Bytes(const std::string& text) { return absl::StrCat(text.size(), " bytes"); }

struct Format {
  absl::string_view name, first_bytes;
};
constexpr Format kNoText[] = {{"gzip", "\x1f\x8b"},
                              {"bzip2", "BZh"},
                              {"xz",
                               "\xfd"
                               "7zXZ"},
                              {"zstd", "\x28\xb5\x2f\xfd"},
                              {"zip", "PK\x03\x04"},
                              {"Parquet", "PAR1"}};

}  // namespace

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(std::string text, ReadWholeFile(path));
  for (const Format& format : kNoText) {
    if (!absl::StartsWith(text, format.first_bytes)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a ", format.name, " file; expected text: unpack or convert it first"));
  }
  return text;
}

absl::StatusOr<TextInput> DefaultText(const std::string& folder) {
  const std::vector<std::string> files = FilesOf(folder, "", Links::kLeaveOut);
  PLAIT_ASSIGN_OR_RETURN(std::string text, Joined(files));
  if (text.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": no license texts here to take as the default text; name a text file"));
  }
  const std::string source = absl::StrCat(files.size(), " license texts of ", folder, ", ", Bytes(text));
  return TextInput{std::move(text), source};
}

absl::StatusOr<TextInput> ReadText(const std::string& path) {
  if (path.empty()) return DefaultText();
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const std::vector<std::string> files =
      is_folder ? FilesOf(path, ".txt", Links::kFollow) : std::vector<std::string>{path};
  PLAIT_ASSIGN_OR_RETURN(std::string text, Joined(files));
  if (text.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, is_folder ? ": no text in the *.txt files of this folder" : ": the file is empty"));
  }
  const std::string source = is_folder ? absl::StrCat(files.size(), " files of ", path, ", ", Bytes(text))
                                       : absl::StrCat(path, ", ", Bytes(text));
  return TextInput{std::move(text), source};
}

}  // namespace plait::data
