// Trains a GRU network on frame features of videos, layer-parallel: tools/video_training/README.md.
#include "base/status_macros.h"
#include "tools/gru_training/train.h"
#include "tools/training/program.h"
#include "tools/video_training/settings.h"
#include "tools/video_training/video_features.h"

namespace plait::video_training {
namespace {

absl::Status Train(VideoSettings& settings, training::Run& run) {
  gru_training::PrintSettings(run);
  PLAIT_ASSIGN_OR_RETURN(const data::VideoSets videos, OpenVideos(settings, run.world));
  PLAIT_ASSIGN_OR_RETURN(const VideoFeatures features, ComputeFeatures(settings, run, videos));
  if (run.stopped) return absl::OkStatus();
  return gru_training::TrainOnSequences(
      settings, run,
      {.set = features.set, .name = "frame features", .facts = {{"frame_features", features.made_from}}});
}

}  // namespace
}  // namespace plait::video_training

int main(int argc, char** argv) {
  using namespace plait;
  video_training::VideoSettings settings;
  return training::RunProgram(
      argc, argv,
      {.name = "train_video",
       .summary = "Trains a GRU network on videos: a ResNet makes features of their frames once, and the "
                  "frames of a video "
                  "are spread over ranks and solved in parallel by multigrid in time.",
       .examples =
           {"train_video --data=hmdb51 --splits=test_train_splits --weights=resnet18.safetensors --nproc=4",
            "train_video --frame-size=32 --sequence-length=16 --hidden-size=32 --batch-size=5 --epochs=20 "
            "--lr=0.005",
            "mpirun -n 4 train_video --data=frames --lp-levels=3 --history=run.h5"},
       .settings = settings,
       .run = [&](training::Run& run) { return video_training::Train(settings, run); }});
}
