// Labelled videos by index, in sets for training and testing.
//
//   PLAIT_ASSIGN_OR_RETURN(VideoSets sets, FindVideos({.folder = "hmdb51", .splits = "splits", .split = 1}));
//   PLAIT_ASSIGN_OR_RETURN(const Clip clip, sets.train->Read(17, {}));
//   sets.class_names[sets.train->label(17)]                      // "brush_hair"
//
// Folders and splits are those of HMDB51 (Kuehne et al., HMDB: a large video database for human motion recognition, ICCV
// 2011; https://serre-lab.clps.brown.edu/resource/hmdb-a-large-human-motion-database, test_train_splits.rar and its
// readme):
//
//   FOLDER/CLASS/NAME.avi                  or a folder FOLDER/CLASS/NAME of images
//   SPLITS/CLASS_test_split1.txt           one video per line: "NAME.avi 1" for training, 2 for testing, 0 for neither
#ifndef PLAIT_DATA_VIDEO_VIDEO_SETS_H_
#define PLAIT_DATA_VIDEO_VIDEO_SETS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/video/clip.h"

namespace plait::data {

// The same on every rank; each reads the videos it needs. Local.
class VideoSource {
 public:
  virtual ~VideoSource() = default;
  virtual std::int64_t videos() const = 0;
  virtual std::int64_t label(std::int64_t index) const = 0;  // 0 <= label < classes
  // A relative path, unique in the set: "brush_hair/April_09.avi".
  virtual std::string name(std::int64_t index) const = 0;
  // Size and checksum of the video's files: a key for caches. InvalidArgument: no regular file;
  // else errors of the system.
  virtual absl::StatusOr<std::string> Fingerprint(std::int64_t index) const = 0;
  // Errors of ReadVideo.
  virtual absl::StatusOr<Clip> Read(std::int64_t index, const ClipOptions& options) const = 0;
};

struct VideoSets {
  std::shared_ptr<const VideoSource> train, test;
  std::vector<std::string> class_names;
  std::string source;  // where the videos come from, human-readable
  bool synthetic = false;
};

struct FindVideosOptions {
  std::string folder;
  std::string
      splits;  // empty: the last fifth of each class by name is for testing, at least one if it has two or more
  int split = 1;  // the number in the names of its files
};

// Classes are the folders' names in order. Lists videos (IsVideoName) and folders of images now; Read decodes them.
// NotFound: no class folders, a class without videos, a missing split file, a video in it that the folder does not
// have, or no videos for training or testing. InvalidArgument: an invalid line, or a video twice in a split. One line.
// Local.
absl::StatusOr<VideoSets> FindVideos(const FindVideosOptions& options);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_VIDEO_SETS_H_
