// Videos as sequences of frame features, for GRUs. Features are computed once and cached, one file per video
// (data/video/feature_file.h), for any split.
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

// Collective over `world`. An error on one rank is an error on all, and begins with "--data".
absl::StatusOr<data::VideoSets> OpenVideos(const VideoSettings& settings, const comm::Communicator& world);

struct VideoFeatures {
  data::SequenceSet set;  // (videos, frames, 1000)
  std::string made_from;  // network, weights and frames
};

// Collective. Each rank computes the missing features of its share of the videos, and then reads those of all videos,
// which must fit into every rank's memory (0.5 MB per video of 128 frames). An error on one rank is an error on all,
// once the others have computed their shares. If a signal stops a rank (run.stopped), `set` is empty.
absl::StatusOr<VideoFeatures> ComputeFeatures(const VideoSettings& settings, training::Run& run,
                                              const data::VideoSets& videos);

}  // namespace plait::video_training

#endif  // PLAIT_TOOLS_VIDEO_TRAINING_VIDEO_FEATURES_H_
