// Training text from files, and a default text that every Debian system has.
//
//   PLAIT_ASSIGN_OR_RETURN(const TextInput input, ReadText(flag_text));    // "": the default text
//   LOG("text: " + input.source);         // "14 license texts of /usr/share/common-licenses, 237,056 bytes"
#ifndef PLAIT_DATA_TEXT_TEXT_FILES_H_
#define PLAIT_DATA_TEXT_TEXT_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace plait::data {

struct TextInput {
  std::string text;
  std::string source;  // for people: where it came from and how long it is
};

// The bytes of a file. InvalidArgument if it begins as gzip, bzip2, xz, zstd, zip or Parquet files do: byte pairs would
// take them for text. Otherwise as ReadWholeFile.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

// `path` is a file, or a folder whose *.txt files are concatenated in order of their names; empty: DefaultText().
// NotFound and PermissionDenied name the path; InvalidArgument if there is no text, or as
// ReadTextFile. Local.
absl::StatusOr<TextInput> ReadText(const std::string& path);

// The license texts of Debian's package base-files, concatenated in order of their names: about 200 kB of English.
// Symbolic links ("GPL", to the newest) are skipped, so that no license is repeated. NotFound on systems without
// them. The text depends on the Debian release; PreparedTextKey distinguishes them.
absl::StatusOr<TextInput> DefaultText(const std::string& folder = "/usr/share/common-licenses");

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TEXT_FILES_H_
