// The frames of a video that a network takes: a fixed number, of one size.
#ifndef PLAIT_DATA_VIDEO_CLIP_H_
#define PLAIT_DATA_VIDEO_CLIP_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "data/images/image_source.h"

namespace plait::data {

// Longer videos are cut behind `frames` frames, shorter ones begin in black: what comes last is what a
// recurrent network remembers best.
struct ClipOptions {
  std::int64_t frames = 128;
  std::int64_t step = 1;    // every `step`-th frame of the video, from the first on
  std::int64_t size = 240;  // rows and columns; MiddleSquare of data/images/resize.h
};

// "frames=128 step=1 size=240": for who keeps what was made of a clip.
std::string TextOf(const ClipOptions& options);

struct Clip {
  std::int64_t frames = 0;  // those that the video has; black ones before them make up ClipOptions::frames
  std::int64_t size = 0;    // rows and columns
  std::vector<std::uint8_t> pixels;  // (frames, size, size, 3): red, green, blue
};

// Makes a clip of a video's frames, given in their order.
class ClipBuilder {
 public:
  explicit ClipBuilder(const ClipOptions& options) : options_(options), clip_{0, options.size, {}} {}

  bool complete() const { return clip_.frames == options_.frames; }
  // Whether the next frame is one of the clip's.
  bool takes_next() const { return !complete() && seen_ % options_.step == 0; }
  // The next frame that is; others are passed over.
  void Add(const Image& frame);
  void PassOver() { ++seen_; }
  Clip Take() { return std::move(clip_); }
  std::int64_t seen() const { return seen_; }  // frames of the video

 private:
  ClipOptions options_;
  Clip clip_;
  std::int64_t seen_ = 0;
};

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_CLIP_H_
