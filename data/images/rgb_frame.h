// RGB pixels of decoded FFmpeg frames, and ownership of FFmpeg's objects.
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

// Converts a frame to RGB, of any size in any subsampling of chroma. YCbCr is taken as ITU-R BT.601, as in JFIF, unless
// the frame says BT.709. 16 bits of grey or RGB are rounded to the nearest of 8. InvalidArgument: unsupported pixel
// format; ResourceExhausted. Local.
absl::StatusOr<Image> RgbOf(const AVFrame& frame);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_RGB_FRAME_H_
