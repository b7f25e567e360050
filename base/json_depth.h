// How deep a JSON text is nested, found without a stack. Values that are nested a hundred thousand times parse, and end
// the program when they are copied or printed, which recurses.
#ifndef PLAIT_BASE_JSON_DEPTH_H_
#define PLAIT_BASE_JSON_DEPTH_H_

#include "absl/strings/string_view.h"

namespace plait::base {

// Deeper than anything that Plait reads.
inline constexpr int kDeepestJson = 64;

// Brackets open at once, at most, outside of strings; the text need not be JSON.
int JsonDepth(absl::string_view text);

}  // namespace plait::base

#endif  // PLAIT_BASE_JSON_DEPTH_H_
