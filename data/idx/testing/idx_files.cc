#include "data/idx/testing/idx_files.h"

#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <initializer_list>

#include "absl/strings/str_cat.h"

namespace plait::data {
namespace {

// Samples `first` and on of one series.
ImageSplit SmallSplit(std::int64_t first, std::int64_t samples) {
  ImageSplit split{6, 4, {}, {}};
  for (std::int64_t i = first; i < first + samples; ++i) {
    // 37 is odd: its multiples take every grey before one comes again.
    for (std::int64_t k = 0; k < split.pixels(); ++k) split.images.push_back(37 * (i * split.pixels() + k));
    split.labels.push_back(i % 10);
  }
  return split;
}

std::string BigEndianNumbers(std::initializer_list<std::int64_t> numbers) {
  std::string bytes;
  for (const std::int64_t number : numbers) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  }
  return bytes;
}

}  // namespace

ImageSet SmallImageSet() {
  ImageSet set;
  set.train = SmallSplit(0, 7);
  set.test = SmallSplit(7, 5);
  for (int i = 0; i < 10; ++i) set.class_names.push_back(absl::StrCat(i));
  return set;
}

std::string IdxImageBytes(const ImageSplit& split) {
  return BigEndianNumbers({2051, split.samples(), split.rows, split.columns}) +
         std::string(split.images.begin(), split.images.end());
}

std::string IdxLabelBytes(const ImageSplit& split) {
  return BigEndianNumbers({2049, split.samples()}) + std::string(split.labels.begin(), split.labels.end());
}

std::string GzipOf(absl::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = bytes.size();
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = packed.size();
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

void WriteBytes(const std::string& path, absl::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void WriteImageFolder(const ImageSet& set, const std::string& folder, bool gzip) {
  std::filesystem::create_directories(folder);
  const auto write = [&](const std::string& name, const std::string& bytes) {
    WriteBytes(absl::StrCat(folder, "/", name, gzip ? ".gz" : ""), gzip ? GzipOf(bytes) : bytes);
  };
  write("train-images-idx3-ubyte", IdxImageBytes(set.train));
  write("train-labels-idx1-ubyte", IdxLabelBytes(set.train));
  write("t10k-images-idx3-ubyte", IdxImageBytes(set.test));
  write("t10k-labels-idx1-ubyte", IdxLabelBytes(set.test));
}

}  // namespace plait::data
