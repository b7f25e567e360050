#include "data/images/rgb_frame.h"

#include <cstring>
#include <utility>
#include <vector>

extern "C" {
#include <libavutil/pixdesc.h>
}

namespace plait::data {
namespace {

// Maps the deprecated YUVJ formats of JPEG to the YUV ones, which then are full range (0..255).
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

}  // namespace

absl::StatusOr<Image> RgbOf(const AVFrame& frame) {
  // The decoder of JPEG says nothing of grey images, which are full range in all formats of images.
  const AVPixFmtDescriptor* const kind = av_pix_fmt_desc_get(static_cast<AVPixelFormat>(frame.format));
  const bool is_grey =
      kind != nullptr && kind->nb_components == 1 && (kind->flags & AV_PIX_FMT_FLAG_RGB) == 0;
  bool full_range =
      frame.color_range == AVCOL_RANGE_JPEG || (is_grey && frame.color_range == AVCOL_RANGE_UNSPECIFIED);
  const AVPixelFormat format = PlainFormat(static_cast<AVPixelFormat>(frame.format), &full_range);
  // Not SWS_BILINEAR: where the size stays, it repeats rows of chroma instead of interpolating them.
  const FfmpegOwned<SwsContext> convert(
      sws_getContext(frame.width, frame.height, format, frame.width, frame.height, AV_PIX_FMT_RGB24,
                     SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr, nullptr));
  if (convert == nullptr) return absl::InvalidArgumentError("unsupported pixel format");
  const int* colours =
      sws_getCoefficients(frame.colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
  sws_setColorspaceDetails(convert.get(), colours, full_range ? 1 : 0, colours, 1, 0, 1 << 16, 1 << 16);
  Image image = {frame.height, frame.width, 3, {}};
  // SIMD code of the conversion may write beyond the end of a row.
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

}  // namespace plait::data
