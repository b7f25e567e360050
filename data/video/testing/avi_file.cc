#include "data/video/testing/avi_file.h"

#include <cstdint>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

constexpr int kFramesPerSecond = 25;

// Little-endian.
std::string Word(std::uint32_t value, int bytes = 4) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text.push_back(static_cast<char>(value >> (8 * i) & 0xff));
  return text;
}

std::string Words(const std::vector<std::uint32_t>& values) {
  std::string text;
  for (const std::uint32_t value : values) text += Word(value);
  return text;
}

std::string Chunk(const std::string& name, const std::string& content) {
  return absl::StrCat(name, Word(content.size()), content,
                      content.size() % 2 == 1 ? std::string(1, '\0') : "");
}

std::string List(const std::string& kind, const std::string& content) {
  return Chunk("LIST", kind + content);
}

// Blue, green, red; the last row first; rows of whole 4 bytes.
std::string Bitmap(const Image& frame) {
  std::string bytes;
  for (std::int64_t i = frame.rows - 1; i >= 0; --i) {
    for (std::int64_t j = 0; j < frame.columns; ++j) {
      for (const int c : {2, 1, 0}) {
        bytes.push_back(static_cast<char>(frame.pixels[(i * frame.columns + j) * 3 + c]));
      }
    }
    bytes.resize((bytes.size() + 3) / 4 * 4);
  }
  return bytes;
}

// A stream of 16-bit samples, one channel.
std::string SoundHeader(std::uint32_t bytes) {
  constexpr std::uint32_t kRate = 8000;
  const std::string stream =
      absl::StrCat("auds", Words({1, 0, 0, 0, 1, kRate, 0, bytes / 2, 2 * kRate, 0, 2}), Words({0, 0}));
  const std::string format =
      Word(1, 2) + Word(1, 2) + Words({kRate, 2 * kRate}) + Word(2, 2) + Word(16, 2) + Word(0, 2);
  return List("strl", Chunk("strh", stream) + Chunk("strf", format));
}

}  // namespace

std::string AviBytes(const std::vector<Image>& frames, std::int64_t sound) {
  const auto count = static_cast<std::uint32_t>(frames.size());
  const auto rows = static_cast<std::uint32_t>(frames.at(0).rows),
             columns = static_cast<std::uint32_t>(frames[0].columns);
  const auto size = static_cast<std::uint32_t>(Bitmap(frames[0]).size());
  const std::string main_header = Words({1000000 / kFramesPerSecond, size * kFramesPerSecond, 0, 0x10, count,
                                         0, sound > 0 ? 2u : 1u, size, columns, rows, 0, 0, 0, 0});
  const std::string stream_header = "vidsDIB " + Words({0, 0, 0, 1, kFramesPerSecond, 0, count, size, 0, 0}) +
                                    Word(0) + Word(columns | rows << 16);
  const std::string format =
      Words({40, columns, rows}) + Word(1, 2) + Word(24, 2) + Words({0, size, 0, 0, 0, 0});
  std::string movie, index;
  for (const Image& frame : frames) {
    index += "00db" + Words({0x10, static_cast<std::uint32_t>(movie.size() + 4), size});
    movie += Chunk("00db", Bitmap(frame));
    if (sound == 0) continue;
    index += "01wb" +
             Words({0x10, static_cast<std::uint32_t>(movie.size() + 4), static_cast<std::uint32_t>(sound)});
    movie += Chunk("01wb", std::string(sound, '\0'));
  }
  const std::string header =
      List("hdrl", Chunk("avih", main_header) +
                       List("strl", Chunk("strh", stream_header) + Chunk("strf", format)) +
                       (sound > 0 ? SoundHeader(count * sound) : ""));
  return Chunk("RIFF", "AVI " + header + List("movi", movie) + Chunk("idx1", index));
}

std::string WavBytes() {
  constexpr std::uint32_t kRate = 8000;
  return Chunk(
      "RIFF",
      "WAVE" + Chunk("fmt ", Word(1, 2) + Word(1, 2) + Words({kRate, 2 * kRate}) + Word(2, 2) + Word(16, 2)) +
          Chunk("data", std::string(2 * kRate, '\0')));
}

}  // namespace plait::data
