#include "tools/video_training/video_features.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/path.h"
#include "base/seed.h"
#include "base/status_macros.h"
#include "comm/buffer.h"
#include "comm/long_barrier.h"
#include "data/cache_folder.h"
#include "data/sequence_set.h"
#include "data/video/feature_file.h"
#include "data/video/synthetic_videos.h"
#include "tools/video_training/frame_network.h"

namespace plait::video_training {
namespace {

struct Video {
  const data::VideoSource* source;
  std::int64_t index;
};

std::vector<Video> Chosen(const data::VideoSource& source, double share) {
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < source.videos(); ++i) labels.push_back(source.label(i));
  std::vector<Video> videos;
  for (const std::int64_t i : data::SubsampledIndices(labels, share)) videos.push_back({&source, i});
  return videos;
}

// Where the features of videos are, and what they must have been made from.
class Files {
 public:
  Files(std::string folder, std::string made_from)
      : folder_(std::move(folder)), made_from_(std::move(made_from)) {}

  std::string PathOf(const Video& video) const {
    return absl::StrCat(folder_, "/", video.source->name(video.index), ".h5");
  }
  absl::StatusOr<std::string> MadeFrom(const Video& video) const {
    PLAIT_ASSIGN_OR_RETURN(const std::string fingerprint, video.source->Fingerprint(video.index));
    return absl::StrCat(made_from_, ", video ", fingerprint);
  }
  absl::StatusOr<data::FrameFeatures> Read(const Video& video) const {
    PLAIT_ASSIGN_OR_RETURN(const std::string made_from, MadeFrom(video));
    return data::ReadFeatures(PathOf(video), made_from);
  }

 private:
  std::string folder_, made_from_;
};

// Whether they had to be computed.
absl::StatusOr<bool> Compute(const VideoSettings& settings, const Video& video, const Files& files,
                             FrameNetwork& network) {
  PLAIT_ASSIGN_OR_RETURN(const std::string made_from, files.MadeFrom(video));
  if (data::ReadFeatures(files.PathOf(video), made_from).ok()) return false;
  PLAIT_ASSIGN_OR_RETURN(const data::Clip clip, video.source->Read(video.index, settings.clip()));
  const absl::Status written =
      data::WriteFeatures(files.PathOf(video), network.FeaturesOf(clip, settings.sequence_length), made_from);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(data::CacheError(written, settings.features_dir), "--features-dir"));
  return true;
}

struct Work {
  std::array<std::int64_t, 2> done = {0, 0};  // videos found and computed
  std::array<std::int64_t, 1> signal = {0};   // that has stopped it
  absl::Status status;
};

// This rank's share of all videos: every size-th one, because neighbours are of one class.
Work ComputeShare(const VideoSettings& settings, const training::Run& run, const std::vector<Video>& videos,
                  const Files& files, FrameNetwork& network) {
  Work work;
  run.console.StartBar("frame features", static_cast<std::int64_t>(videos.size()));
  const auto goes_on = [&] { return work.status.ok() && run.session.StopSignal() == 0; };
  for (std::size_t i = run.world.rank(); i < videos.size() && goes_on(); i += run.world.size()) {
    const absl::StatusOr<bool> computed = Compute(settings, videos[i], files, network);
    work.status = computed.status();
    if (computed.ok()) ++work.done[*computed ? 1 : 0];
    run.console.Update(static_cast<std::int64_t>(i));
  }
  run.console.StopBar();
  work.signal[0] = run.session.StopSignal();
  return work;
}

absl::StatusOr<data::SequenceSplit> ReadSplit(const std::vector<Video>& videos, const Files& files) {
  data::SequenceSplit split;
  for (const Video& video : videos) {
    PLAIT_ASSIGN_OR_RETURN(const data::FrameFeatures features, files.Read(video));
    split.steps = features.frames;
    split.channels = features.features;
    split.x.insert(split.x.end(), features.values.begin(), features.values.end());
    split.y.push_back(video.source->label(video.index));
    split.subject.push_back(0);
  }
  return split;
}

absl::StatusOr<data::SequenceSet> ReadAll(const data::VideoSets& videos, const std::vector<Video>& train,
                                          const std::vector<Video>& test, const Files& files) {
  data::SequenceSet set = {.train = {},
                           .test = {},
                           .class_names = videos.class_names,
                           .source = videos.source,
                           .synthetic = videos.synthetic};
  PLAIT_ASSIGN_OR_RETURN(set.train, ReadSplit(train, files));
  PLAIT_ASSIGN_OR_RETURN(set.test, ReadSplit(test, files));
  return set;
}

absl::StatusOr<std::string> FolderFor(const VideoSettings& settings, const std::string& made_from) {
  std::string folder = base::FromUser(settings.features_dir);
  if (folder.empty()) {
    PLAIT_ASSIGN_OR_RETURN(folder, base::CacheFolder());
    absl::StrAppend(&folder, "/video-features");
  }
  return absl::StrCat(folder, "/", settings.network, "-",
                      absl::Hex(base::DeriveSeed(0, made_from), absl::kZeroPad16));
}

}  // namespace

absl::StatusOr<data::VideoSets> OpenVideos(const VideoSettings& settings, const comm::Communicator& world) {
  absl::StatusOr<data::VideoSets> videos = data::VideoSets();
  if (settings.synthetic()) {
    videos = data::SyntheticVideos({.train_videos = settings.synthetic_videos,
                                    .test_videos = std::max(1, settings.synthetic_videos * 2 / 5),
                                    .classes = settings.synthetic_classes,
                                    .seed = settings.seed});
  } else {
    videos =
        data::FindVideos({base::FromUser(settings.data), base::FromUser(settings.splits), settings.split});
  }
  PLAIT_RETURN_IF_ERROR(world.Agree(base::Prefixed(videos.status(), "--data")));
  return videos;
}

absl::StatusOr<VideoFeatures> ComputeFeatures(const VideoSettings& settings, training::Run& run,
                                              const data::VideoSets& videos) {
  const auto begin = std::chrono::steady_clock::now();
  absl::StatusOr<FrameNetwork> network = FrameNetwork::Open(settings, run.device);
  PLAIT_RETURN_IF_ERROR(run.world.Agree(network.status()));
  const std::string made_from = absl::StrCat(network->text(), ", ", data::TextOf(settings.clip()));
  const absl::StatusOr<std::string> folder = FolderFor(settings, made_from);
  PLAIT_RETURN_IF_ERROR(run.world.Agree(folder.status()));
  const Files files(*folder, made_from);
  const std::vector<Video> train = Chosen(*videos.train, settings.percent_data),
                           test = Chosen(*videos.test, settings.percent_data);
  std::vector<Video> all = train;
  all.insert(all.end(), test.begin(), test.end());
  Work work = ComputeShare(settings, run, all, files, *network);
  // Shares may take hours and differ by more than a call may wait.
  comm::LongBarrier(run.world, std::numeric_limits<double>::infinity());
  PLAIT_RETURN_IF_ERROR(run.world.Agree(work.status));
  run.world.AllReduce(comm::BufferOf(absl::MakeSpan(work.done)));
  run.world.AllReduce(comm::BufferOf(absl::MakeSpan(work.signal)), comm::ReduceOp::kMax);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  run.console.Print(absl::StrFormat(
      "Frame features by %s: %d videos computed, %d found, in %.1f s%s\nkept in %s", made_from, work.done[1],
      work.done[0], seconds.count(), videos.synthetic ? "\t(synthetic data)" : "", *folder));
  if (const auto signal = static_cast<int>(work.signal[0]); signal != 0) {
    run.stopped = training::StoppedBy(signal);
    run.log.Warning(absl::StrCat("Stopped (SIG", sigabbrev_np(signal),
                                 ") before the features of all videos were there; the same command goes on"));
    return VideoFeatures{{}, made_from};
  }
  absl::StatusOr<data::SequenceSet> set = ReadAll(videos, train, test, files);
  PLAIT_RETURN_IF_ERROR(run.world.Agree(base::Prefixed(set.status(), "--features-dir")));
  return VideoFeatures{*std::move(set), made_from};
}

}  // namespace plait::video_training
