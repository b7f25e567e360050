#include "data/video/clip.h"

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "data/images/resize.h"

namespace plait::data {

std::string TextOf(const ClipOptions& options) {
  // Of how a frame's file becomes pixels: increased with every change that another pixel comes of.
  constexpr int kPixels = 2;
  return absl::StrCat("frames=", options.frames, " step=", options.step, " size=", options.size,
                      " pixels=", kPixels);
}

void ClipBuilder::Add(const Image& frame) {
  PLAIT_CHECK(takes_next() && frame.channels == 3)
      << "frame " << seen_ << " of " << frame.channels << " channels";
  const Image square = MiddleSquare(frame, options_.size);
  clip_.pixels.insert(clip_.pixels.end(), square.pixels.begin(), square.pixels.end());
  ++clip_.frames;
  ++seen_;
}

}  // namespace plait::data
