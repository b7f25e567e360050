// Reads frames of a video file, with FFmpeg's libraries, or of a folder of images.
//
//   PLAIT_ASSIGN_OR_RETURN(const Clip clip, ReadVideo("April_09.avi", {.frames = 128, .size = 240}));
//
// A file: the best video stream (av_find_best_stream), in any format that FFmpeg decodes (Debian's libavformat-dev,
// LGPL), frames of up to 2^26 pixels. A folder: its .jpg, .jpeg and .png files, shorter names (without the
// ending) first, then by name: frame2.jpeg comes before frame10.jpg. Time stamps, rotation and pixel aspect ratio are
// ignored. Uses one thread; silences FFmpeg's log in this process. Local.
#ifndef PLAIT_DATA_VIDEO_READ_VIDEO_H_
#define PLAIT_DATA_VIDEO_READ_VIDEO_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/video/clip.h"

namespace plait::data {

// NotFound: no such file, or a folder without images. InvalidArgument: no regular file, not a video that FFmpeg can
// decode, or no video stream. DataLoss: no frame, or a damaged one among those that are decoded; damage after the last
// frame of the clip is not detected. One line, "PATH: what, expected what"; of an image in a folder, with its own path.
absl::StatusOr<Clip> ReadVideo(const std::string& path, const ClipOptions& options);

// Whether the name has a video extension: avi, mkv, mov, mp4, mpeg, mpg, webm, in upper or lower case.
bool IsVideoName(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_READ_VIDEO_H_
