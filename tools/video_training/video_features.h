// Videos as sequences of frame features, for GRUs. Features are computed once and kept, a file a video
// (data/video/feature_file.h); they serve any split.
//
//   PLAIT_ASSIGN_OR_RETURN(const data::VideoSets videos, OpenVideos(settings, run.world));
//   PLAIT_ASSIGN_OR_RETURN(const VideoFeatures features, ComputeFeatures(settings, run, videos));
//
//   FEATURES/NETWORK-DIGEST/CLASS/NAME.avi.h5        digest of the network's weights and of the choice of frames
#ifndef PLAIT_TOOLS_VIDEO_TRAINING_VIDEO_FEATURES_H_
#define PLAIT_TOOLS_VIDEO_TRAINING_VIDEO_FEATURES_H_

#include <string>

#include "absl/status/statusor.h"
#include "comm/communicator.h"
#include "data/sequence_set.h"
#include "data/video/video_sets.h"
#include "tools/training/program.h"
#include "tools/video_training/settings.h"

namespace plait::video_training {

// Collective. An error of one rank is an error on all.
absl::StatusOr<data::VideoSets> OpenVideos(const VideoSettings& settings, const comm::Communicator& world);

struct VideoFeatures {
  data::SequenceSet set;  // (videos, frames, 1000)
  std::string made_from;  // network, weights and frames
};

// Collective. Each rank computes the features of its share of the videos where they are not kept, and then reads those of
// all: every rank has room for them (0.5 MB a video of 128 frames). An error of one rank is an error on all, once the
// others have computed their shares.
absl::StatusOr<VideoFeatures> ComputeFeatures(const VideoSettings& settings, const training::Run& run,
                                              const data::VideoSets& videos);

}  // namespace plait::video_training

#endif  // PLAIT_TOOLS_VIDEO_TRAINING_VIDEO_FEATURES_H_
