// Texts as JSON writes them.
#ifndef PLAIT_DATA_TRACE_JSON_TEXT_H_
#define PLAIT_DATA_TRACE_JSON_TEXT_H_

#include <string>

#include "absl/strings/string_view.h"

namespace plait::data {

// In quotes, with escapes; bytes that are no UTF-8 become U+FFFD, so that the result is valid JSON whatever
// the text.
std::string JsonText(absl::string_view text);

}  // namespace plait::data

#endif  // PLAIT_DATA_TRACE_JSON_TEXT_H_
