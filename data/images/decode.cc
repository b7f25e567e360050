#include "data/images/decode.h"

#include <cstdint>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/images/regular_file.h"
#include "data/images/rgb_frame.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/log.h>
}

namespace plait::data {
namespace {

// Bound on the size that the header may claim: deflate expands at most 1032:1, and a PNG byte holds at most 8 pixels; a
// JPEG block of 64 pixels takes at least 2 bits.
constexpr std::int64_t kMostPixelsPerByte = std::int64_t{8} * 1032, kSmall = 1 << 16;

static_assert(kMostImageBytes <= std::numeric_limits<int>::max() - AV_INPUT_BUFFER_PADDING_SIZE);

absl::Status OutOfMemory() { return absl::ResourceExhaustedError("no memory to decode the image"); }

AVCodecID CodecOf(absl::string_view bytes) {
  if (absl::StartsWith(bytes, "\xff\xd8\xff")) return AV_CODEC_ID_MJPEG;
  if (absl::StartsWith(bytes, "\x89PNG\r\n\x1a\n")) return AV_CODEC_ID_PNG;
  return AV_CODEC_ID_NONE;
}

// The one frame of the file.
absl::StatusOr<FfmpegOwned<AVFrame>> FrameOf(absl::string_view bytes, AVCodecID id) {
  const FfmpegOwned<AVCodecContext> context(avcodec_alloc_context3(avcodec_find_decoder(id)));
  const FfmpegOwned<AVPacket> packet(av_packet_alloc());
  FfmpegOwned<AVFrame> frame(av_frame_alloc());
  if (context == nullptr || packet == nullptr || frame == nullptr) return OutOfMemory();
  context->thread_count = 1;
  context->max_pixels = kSmall + kMostPixelsPerByte * static_cast<std::int64_t>(bytes.size());
  // Otherwise a truncated file would be decoded as far as it goes.
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

}  // namespace

absl::StatusOr<Image> DecodeImage(absl::string_view bytes) {
  const AVCodecID id = CodecOf(bytes);
  if (id == AV_CODEC_ID_NONE) return absl::InvalidArgumentError("neither a JPEG nor a PNG image");
  if (bytes.size() > static_cast<std::size_t>(kMostImageBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("has ", bytes.size(), " bytes; expected no more than ", kMostImageBytes));
  }
  av_log_set_level(AV_LOG_QUIET);
  PLAIT_ASSIGN_OR_RETURN(const FfmpegOwned<AVFrame> frame, FrameOf(bytes, id));
  return RgbOf(*frame);
}

absl::StatusOr<Image> ReadImage(const std::string& path) {
  PLAIT_RETURN_IF_ERROR(CheckRegularFile(path, kMostImageBytes));
  PLAIT_ASSIGN_OR_RETURN(const std::string bytes, ReadWholeFile(path, kMostImageBytes));
  absl::StatusOr<Image> image = DecodeImage(bytes);
  PLAIT_RETURN_IF_ERROR(base::Prefixed(image.status(), path));
  return image;
}

}  // namespace plait::data
