// Text to train on: files as one string, and the text that every Debian machine has.
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

// `path` is a file, or a folder whose *.txt files are joined in order of their names; empty: DefaultText().
// NotFound or PermissionDenied names the path; InvalidArgument where there is no text in it. Local.
absl::StatusOr<TextInput> ReadText(const std::string& path);

// The license texts that Debian's package base-files puts on every machine, joined in order of their names: some
// 200 kB of English. Links ("GPL", to the newest) are left out, so no licence comes twice. NotFound on
// systems without them: give a text. The text follows the release of Debian; PreparedText's key tells.
absl::StatusOr<TextInput> DefaultText(const std::string& folder = "/usr/share/common-licenses");

}  // namespace plait::data

#endif  // PLAIT_DATA_TEXT_TEXT_FILES_H_
