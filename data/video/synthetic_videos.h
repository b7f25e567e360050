// Synthetic clips: a disc moves across a dark scene in the direction of its class. Labelled as synthetic in all output.
#ifndef PLAIT_DATA_VIDEO_SYNTHETIC_VIDEOS_H_
#define PLAIT_DATA_VIDEO_SYNTHETIC_VIDEOS_H_

#include <cstdint>

#include "data/video/video_sets.h"

namespace plait::data {

struct SyntheticVideoOptions {
  std::int64_t train_videos = 40, test_videos = 16;  // over all classes
  int classes = 4;                                   // 1 to 8
  std::uint64_t seed = 1;
};

// Classes are directions, multiples of an eighth of a turn: right, down, left, up for four classes. The disc reveals
// the scene's colours, red to the right and green to the bottom, plus noise; it passes near the middle. A video has
// between half and all of ClipOptions::frames; its frames are functions of seed, split, index and ClipOptions.
// `synthetic` is set. CHECK-fails unless 1 <= classes <= 8.
VideoSets SyntheticVideos(const SyntheticVideoOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_SYNTHETIC_VIDEOS_H_
