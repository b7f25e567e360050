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
  const std::string header = absl::StrCat(
      BigEndian(static_cast<std::uint32_t>(image.columns)), BigEndian(static_cast<std::uint32_t>(image.rows)),
      std::string{8, static_cast<char>(image.channels == 1 ? 0 : 2), 0, 0, 0});
  std::string lines;
  const std::int64_t width = image.columns * image.channels;
  for (std::int64_t row = 0; row < image.rows; ++row) {
    lines.push_back(0);  // no filter
    lines.append(image.pixels.begin() + row * width, image.pixels.begin() + (row + 1) * width);
  }
  std::string packed(compressBound(lines.size()), '\0');
  uLongf size = packed.size();
  compress(reinterpret_cast<Bytef*>(packed.data()), &size, reinterpret_cast<const Bytef*>(lines.data()),
           lines.size());
  packed.resize(size);
  return absl::StrCat("\x89PNG\r\n\x1a\n", Chunk("IHDR", header), Chunk("IDAT", packed), Chunk("IEND", ""));
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
