#include "data/images/testing/image_files.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

std::string BigEndian(std::uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  return bytes;
}

std::string Chunk(const std::string& type, const std::string& data) {
  const std::string body = type + data;
  const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return absl::StrCat(BigEndian(static_cast<std::uint32_t>(data.size())), body,
                      BigEndian(static_cast<std::uint32_t>(crc)));
}

std::string PngOf(std::int64_t rows, std::int64_t columns, std::int64_t channels, int bits,
                  const std::string& samples) {
  constexpr char kColourTypes[] = {0, 4, 2, 6};  // grey, grey with alpha, colour, colour with alpha
  const std::string header = absl::StrCat(
      BigEndian(static_cast<std::uint32_t>(columns)), BigEndian(static_cast<std::uint32_t>(rows)),
      std::string{static_cast<char>(bits), kColourTypes[channels - 1], 0, 0, 0});
  std::string lines;
  const std::int64_t width = columns * channels * bits / 8;
  for (std::int64_t row = 0; row < rows; ++row) {
    lines.push_back(0);  // no filter
    lines.append(samples, row * width, width);
  }
  std::string packed(compressBound(lines.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(lines.data()),
           lines.size());
  packed.resize(size);
  return absl::StrCat("\x89PNG\r\n\x1a\n", Chunk("IHDR", header), Chunk("IDAT", packed), Chunk("IEND", ""));
}

}  // namespace

Image PatternImage(std::int64_t rows, std::int64_t columns, std::int64_t channels) {
  Image image = {rows, columns, channels, {}};
  // 37 is odd: its multiples take every value before one comes again.
  for (std::int64_t at = 0; at < rows * columns * channels; ++at) {
    image.pixels.push_back(static_cast<std::uint8_t>(37 * at + at / 256));
  }
  return image;
}

std::string PngBytes(const Image& image) {
  return PngOf(image.rows, image.columns, image.channels, 8,
               std::string(image.pixels.begin(), image.pixels.end()));
}

std::string PngBytes16(std::int64_t rows, std::int64_t columns, std::int64_t channels,
                       const std::vector<std::uint16_t>& samples) {
  std::string bytes;
  for (const std::uint16_t sample : samples) {
    bytes.push_back(static_cast<char>(sample >> 8));
    bytes.push_back(static_cast<char>(sample));
  }
  return PngOf(rows, columns, channels, 16, bytes);
}

std::string CifarBytes(const std::vector<int>& labels) {
  std::string bytes;
  for (std::size_t k = 0; k < labels.size(); ++k) {
    const Image image = PatternImage(32, 32);
    bytes.push_back(static_cast<char>(labels[k]));
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t at = 0; at < 1024; ++at) {
        bytes.push_back(static_cast<char>(image.pixels[3 * at + c] + k));
      }
    }
  }
  return bytes;
}

void WriteFile(const std::string& path, absl::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace plait::data
