// Pixels of what FFmpeg decoded.
#ifndef PLAIT_DATA_IMAGES_RGB_FRAME_H_
#define PLAIT_DATA_IMAGES_RGB_FRAME_H_

#include <memory>

#include "absl/status/statusor.h"
#include "data/images/image_source.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libswscale/swscale.h>
}

namespace plait::data {

struct FreeFfmpeg {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
template <typename T>
using FfmpegOwned = std::unique_ptr<T, FreeFfmpeg>;

// Red, green, blue. Luma and chroma are those of ITU-R BT.601, as JFIF's, unless the frame says BT.709. InvalidArgument:
// a format that cannot be converted. Local.
absl::StatusOr<Image> RgbOf(const AVFrame& frame);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_RGB_FRAME_H_
