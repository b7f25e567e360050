// Made-up clips: a disc that moves across a dark scene in a direction of its class. Named synthetic wherever they appear.
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

// Classes are directions, an eighth of a turn apart: right, down, left, up for four. The disc lights the scene's
// colours, red to the right and green to the bottom, under noise; it passes near the middle. A video has between half
// and all of the frames that are asked for, and its frames are functions of seed, split, index and ClipOptions.
// `synthetic` is set.
VideoSets SyntheticVideos(const SyntheticVideoOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_SYNTHETIC_VIDEOS_H_
