#include "data/images/decode.h"

#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "base/status_macros.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/imgutils.h>
#include <libavutil/log.h>
#include <libswscale/swscale.h>
}

namespace plait::data {
namespace {

struct Free {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
  void operator()(AVFrame* frame) const { av_frame_free(&frame); }
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

absl::Status OutOfMemory() { return absl::ResourceExhaustedError("no memory to decode the image"); }

AVCodecID CodecOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return AV_CODEC_ID_MJPEG;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return AV_CODEC_ID_PNG;
  return AV_CODEC_ID_NONE;
}

// The one frame of the file.
absl::StatusOr<Owned<AVFrame>> FrameOf(absl::string_view bytes, AVCodecID id) {
  const Owned<AVCodecContext> context(avcodec_alloc_context3(avcodec_find_decoder(id)));
  const Owned<AVPacket> packet(av_packet_alloc());
  Owned<AVFrame> frame(av_frame_alloc());
  if (context == nullptr || packet == nullptr || frame == nullptr) return OutOfMemory();
  context->thread_count = 1;
  // Else a file that is cut short gives the part that is there.
  context->err_recognition = AV_EF_EXPLODE | AV_EF_CRCCHECK | AV_EF_BUFFER | AV_EF_BITSTREAM;
  if (avcodec_open2(context.get(), nullptr, nullptr) < 0) return OutOfMemory();
  // Decoders read some bytes beyond the end.
  if (av_new_packet(packet.get(), static_cast<int>(bytes.size())) < 0) return OutOfMemory();
  std::memcpy(packet->data, bytes.data(), bytes.size());
  if (avcodec_send_packet(context.get(), packet.get()) < 0 ||
      avcodec_send_packet(context.get(), nullptr) < 0 ||
      avcodec_receive_frame(context.get(), frame.get()) < 0 || frame->decode_error_flags != 0 ||
      (frame->flags & AV_FRAME_FLAG_CORRUPT) != 0) {
    return absl::DataLossError("the image is damaged or cut short");
  }
  return frame;
}

// JPEG's formats under the names that are not deprecated, and whether they use all of 0..255.
AVPixelFormat PlainFormat(AVPixelFormat format, bool* full_range) {
  constexpr std::pair<AVPixelFormat, AVPixelFormat> kFull[] = {{AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P},
                                                               {AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P},
                                                               {AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P},
                                                               {AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P}};
  for (const auto& [full, plain] : kFull) {
    if (format != full) continue;
    *full_range = true;
    return plain;
  }
  return format;
}

absl::StatusOr<Image> ToRgb(const AVFrame& frame) {
  bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
  const AVPixelFormat format = PlainFormat(static_cast<AVPixelFormat>(frame.format), &full_range);
  const Owned<SwsContext> convert(
      sws_getContext(frame.width, frame.height, format, frame.width, frame.height, AV_PIX_FMT_RGB24,
                     SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr, nullptr));
  if (convert == nullptr)
    return absl::InvalidArgumentError("the image's colours are of a kind that is not known");
  const int* jpeg = sws_getCoefficients(SWS_CS_ITU601);  // JFIF's
  sws_setColorspaceDetails(convert.get(), jpeg, full_range ? 1 : 0, jpeg, 1, 0, 1 << 16, 1 << 16);
  Image image = {frame.height, frame.width, 3, {}};
  // Vectors of the conversion may write a little beyond a row.
  const int stride = (3 * frame.width + 63) / 64 * 64;
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(stride) * frame.height + 64);
  std::uint8_t* const to[] = {rows.data()};
  const int strides[] = {stride};
  sws_scale(convert.get(), frame.data, frame.linesize, 0, frame.height, to, strides);
  image.pixels.resize(static_cast<std::size_t>(3) * frame.width * frame.height);
  for (int row = 0; row < frame.height; ++row) {
    std::memcpy(image.pixels.data() + std::size_t{3} * frame.width * row,
                rows.data() + static_cast<std::size_t>(stride) * row, std::size_t{3} * frame.width);
  }
  return image;
}

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view bytes) {
  const AVCodecID id = CodecOf(bytes);
  if (id == AV_CODEC_ID_NONE) return absl::InvalidArgumentError("neither a JPEG nor a PNG image");
  av_log_set_level(AV_LOG_QUIET);
  PLAIT_ASSIGN_OR_RETURN(const Owned<AVFrame> frame, FrameOf(bytes, id));
  return ToRgb(*frame);
}

}  // namespace plait::data
