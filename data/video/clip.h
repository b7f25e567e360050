// A clip: a fixed number of frames of a video, of one size.
#ifndef PLAIT_DATA_VIDEO_CLIP_H_
#define PLAIT_DATA_VIDEO_CLIP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image_source.h"

namespace plait::data {

// Longer videos are truncated after `frames` frames; shorter ones are padded with black at the beginning, as a
// recurrent network remembers the last frames best.
struct ClipOptions {
  std::int64_t frames = 128;
  std::int64_t step = 1;    // every `step`-th frame of the video, from the first on
  std::int64_t size = 240;  // rows and columns; MiddleSquare of data/images/resize.h
};

// "frames=128 step=1 size=240 pixels=2": a key for caching what was computed from a clip.
std::string TextOf(const ClipOptions& options);

struct Clip {
  std::int64_t frames = 0;           // without padding: at most ClipOptions::frames
  std::int64_t size = 0;             // rows and columns
  std::vector<std::uint8_t> pixels;  // (frames, size, size, 3): red, green, blue
};

// Builds a clip from the frames of a video, given in order.
class ClipBuilder {
 public:
  explicit ClipBuilder(const ClipOptions& options) : options_(options), clip_{0, options.size, {}} {}

  bool complete() const { return clip_.frames == options_.frames; }
  // Whether the next frame belongs to the clip.
  bool takes_next() const { return !complete() && seen_ % options_.step == 0; }
  // Adds the next frame, of 3 channels; takes_next() must be true. PassOver() skips the next frame.
  void Add(const Image& frame);
  void PassOver() { ++seen_; }
  Clip Take() { return std::move(clip_); }
  std::int64_t seen() const { return seen_; }  // frames added or passed over

 private:
  ClipOptions options_;
  Clip clip_;
  std::int64_t seen_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_CLIP_H_
