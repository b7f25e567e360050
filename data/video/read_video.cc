#include "data/video/read_video.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/folder_listing.h"
#include "data/images/decode.h"
#include "data/images/regular_file.h"
#include "data/images/rgb_frame.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>
}

namespace plait::data {
namespace {

namespace fs = std::filesystem;

// Largest frame: 8192 x 8192.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 26;

struct CloseInput {
  void operator()(AVFormatContext* format) const { avformat_close_input(&format); }
};
using Input = std::unique_ptr<AVFormatContext, CloseInput>;

std::string ErrorText(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = "";
  av_strerror(error, text, sizeof(text));
  return text;
}

std::string EndingOf(const fs::path& path) { return absl::AsciiStrToLower(path.extension().string()); }

absl::Status Damaged(std::int64_t frame, const std::string& what) {
  return absl::DataLossError(absl::StrCat("damaged or cut short at frame ", frame + 1, " (", what, ")"));
}

absl::StatusOr<Input> OpenInput(const std::string& path) {
  AVFormatContext* format = nullptr;
  const int error = avformat_open_input(&format, path.c_str(), nullptr, nullptr);
  if (error == AVERROR(ENOENT)) return absl::NotFoundError("no such file");
  if (error < 0) {
    return absl::InvalidArgumentError(absl::StrCat("cannot be read as a video (", ErrorText(error),
                                                   "); expected a file that FFmpeg knows"));
  }
  return Input(format);
}

// The frames of one stream, one after the other.
class VideoStream {
 public:
  static absl::StatusOr<VideoStream> Open(const std::string& path) {
    VideoStream video;
    PLAIT_ASSIGN_OR_RETURN(video.input_, OpenInput(path));
    for (unsigned i = 0; i < video.input_->nb_streams; ++i) {
      video.has_index_ |= avformat_index_get_entries_count(video.input_->streams[i]) > 0;
    }
    const AVCodec* codec = nullptr;
    if (avformat_find_stream_info(video.input_.get(), nullptr) >= 0) {
      video.stream_ = av_find_best_stream(video.input_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
    }
    if (video.stream_ == AVERROR_DECODER_NOT_FOUND) {
      return absl::InvalidArgumentError("this FFmpeg has no decoder for its video stream");
    }
    if (video.stream_ < 0) return absl::InvalidArgumentError("has no video stream");
    video.codec_.reset(avcodec_alloc_context3(codec));
    video.packet_.reset(av_packet_alloc());
    video.frame_.reset(av_frame_alloc());
    AVCodecContext* context = video.codec_.get();
    if (context == nullptr || video.packet_ == nullptr || video.frame_ == nullptr ||
        avcodec_parameters_to_context(context, video.input_->streams[video.stream_]->codecpar) < 0) {
      return absl::ResourceExhaustedError("no memory to decode the video");
    }
    context->thread_count = 1;
    context->max_pixels = kMostPixels;
    const int error = avcodec_open2(context, codec, nullptr);
    if (error < 0)
      return absl::InvalidArgumentError(absl::StrCat("cannot be decoded (", ErrorText(error), ")"));
    return video;
  }

  // Null behind the last frame; valid until the next call.
  absl::StatusOr<const AVFrame*> Next() {
    while (true) {
      const int error = avcodec_receive_frame(codec_.get(), frame_.get());
      if (error == AVERROR_EOF) return nullptr;
      if (error != AVERROR(EAGAIN)) {
        if (error < 0) return Damaged(count_, ErrorText(error));
        if (frame_->decode_error_flags != 0 || (frame_->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
          return Damaged(count_, "the decoder reports errors");
        }
        ++count_;
        return frame_.get();
      }
      PLAIT_RETURN_IF_ERROR(Feed());
    }
  }

 private:
  // The stream's next packet to the decoder, or the end.
  absl::Status Feed() {
    int error = 0;
    do {
      av_packet_unref(packet_.get());
      error = av_read_frame(input_.get(), packet_.get());
      // In every stream: a file that is cut in its sound lacks the frames behind.
      if (error >= 0 && (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0) {
        return Damaged(packets_, "a damaged packet");
      }
    } while (error >= 0 && packet_->stream_index != stream_);
    if (error < 0 && error != AVERROR_EOF) return Damaged(packets_, ErrorText(error));
    if (error < 0 && EndsEarly()) return Damaged(packets_, "the file ends before its last frame");
    if (error >= 0) ++packets_;
    error = avcodec_send_packet(codec_.get(), error < 0 ? nullptr : packet_.get());
    return error < 0 ? Damaged(count_, ErrorText(error)) : absl::OkStatus();
  }

  // Whether the file announces frames behind its end.
  bool EndsEarly() const {
    AVStream* stream = input_->streams[stream_];
    // AVI headers may count dropped frames too, but a whole AVI file has an index at its end.
    if (!has_index_ && packets_ < stream->nb_frames - stream->nb_frames / 100) return true;
    const std::int64_t bytes = avio_size(input_->pb);
    for (int i = avformat_index_get_entries_count(stream) - 1; bytes > 0 && i >= 0; --i) {
      const AVIndexEntry* entry = avformat_index_get_entry(stream, i);
      if (entry->pos + entry->size > bytes) return true;
    }
    return false;
  }

  Input input_;
  int stream_ = -1;
  FfmpegOwned<AVCodecContext> codec_;
  FfmpegOwned<AVPacket> packet_;
  FfmpegOwned<AVFrame> frame_;
  bool has_index_ = false;  // before any packet is read, which may add to it
  std::int64_t packets_ = 0, count_ = 0;
};

absl::StatusOr<Clip> ReadFile(const std::string& path, const ClipOptions& options) {
  av_log_set_level(AV_LOG_QUIET);
  PLAIT_ASSIGN_OR_RETURN(VideoStream video, VideoStream::Open(path));
  ClipBuilder clip(options);
  while (!clip.complete()) {
    PLAIT_ASSIGN_OR_RETURN(const AVFrame* frame, video.Next());
    if (frame == nullptr) break;
    if (!clip.takes_next()) {
      clip.PassOver();
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(const Image image, RgbOf(*frame));
    clip.Add(image);
  }
  if (clip.seen() == 0) return absl::DataLossError("the video stream has no frame");
  return clip.Take();
}

// Shorter names first, so that frame 10 follows frame 9; without their endings, as .jpeg is longer than .jpg.
absl::StatusOr<std::vector<std::string>> PicturesIn(const std::string& folder) {
  PLAIT_ASSIGN_OR_RETURN(std::vector<std::string> pictures,
                         NamesIn(folder, [](const fs::directory_entry& entry) {
                           const std::string ending = EndingOf(entry.path());
                           return ending == ".jpg" || ending == ".jpeg" || ending == ".png";
                         }));
  const auto length = [](const std::string& picture) { return fs::path(picture).stem().native().size(); };
  std::stable_sort(pictures.begin(), pictures.end(),
                   [&](const std::string& a, const std::string& b) { return length(a) < length(b); });
  return pictures;
}

absl::StatusOr<Clip> ReadFolder(const std::string& folder, const ClipOptions& options) {
  ClipBuilder clip(options);
  PLAIT_ASSIGN_OR_RETURN(const std::vector<std::string> pictures, PicturesIn(folder));
  for (const std::string& picture : pictures) {
    if (!clip.takes_next()) {
      clip.PassOver();
      continue;
    }
    PLAIT_ASSIGN_OR_RETURN(const Image image, ReadImage(absl::StrCat(folder, "/", picture)));
    clip.Add(image);
  }
  if (clip.seen() == 0) {
    return absl::NotFoundError(
        absl::StrCat(folder, ": a folder without frames; expected .jpg or .png files"));
  }
  return clip.Take();
}

}  // namespace

absl::StatusOr<Clip> ReadVideo(const std::string& path, const ClipOptions& options) {
  std::error_code error;
  if (fs::is_directory(path, error)) return ReadFolder(path, options);
  PLAIT_RETURN_IF_ERROR(CheckRegularFile(path));
  absl::StatusOr<Clip> clip = ReadFile(path, options);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(clip.status(), path));
  return clip;
}

bool IsVideoName(const std::string& path) {
  static constexpr const char* kEndings[] = {".avi", ".mkv", ".mov", ".mp4", ".mpeg", ".mpg", ".webm"};
  const std::string ending = EndingOf(path);
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* known) { return ending == known; });
}

}  // namespace plait::data
