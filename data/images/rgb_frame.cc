#include "data/images/rgb_frame.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status_macros.h"

extern "C" {
#include <libavutil/common.h>
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

// Also with alpha.
bool IsGrey(const AVPixFmtDescriptor& kind) {
  return kind.nb_components <= 2 && (kind.flags & AV_PIX_FMT_FLAG_RGB) == 0;
}

// Decoders say nothing of grey images, which are full range in all formats of images.
bool IsFullRange(const AVFrame& frame, const AVPixFmtDescriptor& kind) {
  return frame.color_range == AVCOL_RANGE_JPEG ||
         (IsGrey(kind) && frame.color_range == AVCOL_RANGE_UNSPECIFIED);
}

// libswscale rounds 16 bits to the nearest multiple of 256, not of 257: white is 65535.
bool IsRoundedHere(const AVFrame& frame, const AVPixFmtDescriptor& kind) {
  const bool is_rgb = (kind.flags & AV_PIX_FMT_FLAG_RGB) != 0;
  return kind.comp[0].depth == 16 && (is_rgb || (IsGrey(kind) && IsFullRange(frame, kind)));
}

Image Of16Bits(const AVFrame& frame, const AVPixFmtDescriptor& kind) {
  Image image = {frame.height, frame.width, 3, {}};
  image.pixels.resize(static_cast<std::size_t>(3) * frame.width * frame.height);
  const std::uint8_t* planes[4];
  std::copy_n(frame.data, 4, planes);
  std::vector<std::uint16_t> line(frame.width);
  for (int row = 0; row < frame.height; ++row) {
    std::uint8_t* const to = image.pixels.data() + std::size_t{3} * frame.width * row;
    for (int c = 0; c < 3; ++c) {
      av_read_image_line2(line.data(), planes, frame.linesize, &kind, 0, row, IsGrey(kind) ? 0 : c,
                          frame.width, /*read_pal_component=*/0, sizeof(line[0]));
      for (int column = 0; column < frame.width; ++column) {
        to[3 * column + c] = static_cast<std::uint8_t>((line[column] + 128) / 257);
      }
    }
  }
  return image;
}

// Size in whole steps of chroma: of 2 in 4:2:0.
struct WholeSteps {
  int width, height;
};
WholeSteps WholeStepsOf(const AVFrame& frame, const AVPixFmtDescriptor& kind) {
  const auto up = [](int size, int log2) { return AV_CEIL_RSHIFT(size, log2) * (1 << log2); };
  return {up(frame.width, kind.log2_chroma_w), up(frame.height, kind.log2_chroma_h)};
}

// The frame with room for `size`; what is in the rows and columns behind its own is not set.
absl::StatusOr<FfmpegOwned<AVFrame>> Enlarged(const AVFrame& frame, WholeSteps size) {
  FfmpegOwned<AVFrame> larger(av_frame_alloc());
  if (larger == nullptr) return absl::ResourceExhaustedError("no memory for a frame");
  larger->format = frame.format;
  larger->width = size.width;
  larger->height = size.height;
  if (av_frame_get_buffer(larger.get(), 0) < 0 || av_frame_copy(larger.get(), &frame) < 0) {
    return absl::ResourceExhaustedError("no memory for a frame");
  }
  return larger;
}

// The pixels of `frame`, whose planes are in `planes`, of its size or larger.
absl::StatusOr<Image> Converted(const AVFrame& frame, const AVFrame& planes, const AVPixFmtDescriptor& kind) {
  bool full_range = IsFullRange(frame, kind);
  const AVPixelFormat format = PlainFormat(static_cast<AVPixelFormat>(frame.format), &full_range);
  // Not SWS_BILINEAR: where the size stays, it repeats rows of chroma instead of interpolating them.
  const FfmpegOwned<SwsContext> convert(
      sws_getContext(planes.width, planes.height, format, planes.width, planes.height, AV_PIX_FMT_RGB24,
                     SWS_BICUBIC | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr, nullptr));
  if (convert == nullptr) return absl::InvalidArgumentError("unsupported pixel format");
  const int* colours =
      sws_getCoefficients(frame.colorspace == AVCOL_SPC_BT709 ? SWS_CS_ITU709 : SWS_CS_ITU601);
  sws_setColorspaceDetails(convert.get(), colours, full_range ? 1 : 0, colours, 1, 0, 1 << 16, 1 << 16);
  Image image = {frame.height, frame.width, 3, {}};
  // SIMD code of the conversion may write beyond the end of a row.
  const int stride = (3 * planes.width + 63) / 64 * 64;
  std::vector<std::uint8_t> rows(static_cast<std::size_t>(stride) * planes.height + 64);
  std::uint8_t* const to[] = {rows.data()};
  const int strides[] = {stride};
  sws_scale(convert.get(), planes.data, planes.linesize, 0, planes.height, to, strides);
  image.pixels.resize(static_cast<std::size_t>(3) * frame.width * frame.height);
  for (int row = 0; row < frame.height; ++row) {
    std::memcpy(image.pixels.data() + std::size_t{3} * frame.width * row,
                rows.data() + static_cast<std::size_t>(stride) * row, std::size_t{3} * frame.width);
  }
  return image;
}

}  // namespace

absl::StatusOr<Image> RgbOf(const AVFrame& frame) {
  const auto format = static_cast<AVPixelFormat>(frame.format);
  const AVPixFmtDescriptor* const kind = av_pix_fmt_desc_get(format);
  if (kind == nullptr || sws_isSupportedInput(format) == 0) {
    return absl::InvalidArgumentError("unsupported pixel format");
  }
  if (IsRoundedHere(frame, *kind)) return Of16Bits(frame, *kind);
  const WholeSteps size = WholeStepsOf(frame, *kind);
  if (size.width == frame.width && size.height == frame.height) return Converted(frame, frame, *kind);
  // Otherwise libswscale would stretch the chroma of the last, cut step over the size: shifted against luma.
  PLAIT_ASSIGN_OR_RETURN(const FfmpegOwned<AVFrame> whole, Enlarged(frame, size));
  return Converted(frame, *whole, *kind);
}

}  // namespace plait::data
