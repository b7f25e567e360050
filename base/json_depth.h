// Nesting depth of a JSON text, computed without recursion. Check it before using a parsed value: values nested a
// hundred thousand levels deep parse, but overflow the stack when they are copied or printed, which recurses.
#ifndef PLAIT_BASE_JSON_DEPTH_H_
#define PLAIT_BASE_JSON_DEPTH_H_

#include "absl/strings/string_view.h"

namespace plait::base {

// Readers of JSON reject texts that are nested deeper.
inline constexpr int kDeepestJson = 64;

// The largest number of brackets and braces open at once, outside of strings. The text need not be valid JSON.
int JsonDepth(absl::string_view text);

}  // namespace plait::base

#endif  // PLAIT_BASE_JSON_DEPTH_H_
