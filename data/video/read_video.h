// Frames of a video file, by FFmpeg's libraries, or of a folder of pictures.
//
//   PLAIT_ASSIGN_OR_RETURN(const Clip clip, ReadVideo("April_09.avi", {.frames = 128, .size = 240}));
//
// A file: its best video stream, whatever FFmpeg decodes (Debian's libavformat-dev, LGPL). A folder: its .jpg, .jpeg and
// .png files, shorter names first, then by name: frame2.jpg comes before frame10.jpg. Time stamps, rotation and the
// shape of pixels are not looked at. On one thread; silences FFmpeg's own messages in this process. Local.
#ifndef PLAIT_DATA_VIDEO_READ_VIDEO_H_
#define PLAIT_DATA_VIDEO_READ_VIDEO_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/video/clip.h"

namespace plait::data {

// NotFound: no such file, a folder without pictures. InvalidArgument: no video that FFmpeg knows, no video stream.
// DataLoss: no frame, or a damaged one among those that are looked at; a file that is cut short behind them is not
// noticed. One line, "PATH: what, expected what".
absl::StatusOr<Clip> ReadVideo(const std::string& path, const ClipOptions& options);

// Whether a file's name ends as those of videos do: avi, mkv, mov, mp4, mpeg, mpg, webm, in any case.
bool IsVideoName(const std::string& path);

}  // namespace plait::data

#endif  // PLAIT_DATA_VIDEO_READ_VIDEO_H_
