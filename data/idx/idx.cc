#include "data/idx/idx.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "data/hdf5/atomic_file.h"
#include "data/idx/gzip.h"

namespace plait::data {
namespace {

constexpr std::uint32_t kImages = 2051, kLabels = 2049;
constexpr std::uint64_t kLargestSide = 65535;
// Deflate's highest compression ratio.
constexpr std::uint64_t kMostPacked = 1032;

// Number of samples, then their shape. The header has 4 bytes of magic number and 4 for each of these.
using Shape = std::vector<std::uint64_t>;

std::size_t HeaderBytes(std::uint32_t magic) { return 4 + 4 * (magic & 0xff); }

std::uint32_t BigEndian(absl::string_view bytes, std::size_t offset) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[offset + i]);
  return value;
}

std::string KindOf(std::uint32_t magic) {
  if (magic == kImages) return absl::StrCat("images (", kImages, ")");
  if (magic == kLabels) return absl::StrCat("labels (", kLabels, ")");
  return absl::StrFormat("type 0x%02x with %d dimensions", magic >> 8, magic & 0xff);
}

absl::Status CheckMagic(absl::string_view head, std::uint32_t expected) {
  const std::uint32_t magic = head.size() < 4 ? ~0u : BigEndian(head, 0);
  if (magic == expected) return absl::OkStatus();
  if (magic >> 16 == 0 && magic >> 8 >= 0x08 && magic >> 8 <= 0x0e && (magic & 0xff) > 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("an IDX file of ", KindOf(magic), ", expected ", KindOf(expected)));
  }
  const std::string found = absl::StrJoin(head.substr(0, 4), " ", [](std::string* text, char byte) {
    absl::StrAppendFormat(text, "%02x", static_cast<unsigned char>(byte));
  });
  return absl::InvalidArgumentError(
      absl::StrFormat("not an IDX file: expected 00 00 08 %02x at its begin, found %s", expected & 0xff,
                      found.empty() ? "nothing" : found));
}

// "60000 images of 28 x 28", "60000 labels".
std::string Promise(const Shape& shape) {
  if (shape.size() == 1) return absl::StrCat(shape[0], " labels");
  return absl::StrCat(shape[0], " images of ", shape[1], " x ", shape[2]);
}

absl::StatusOr<Shape> ParseHeader(absl::string_view head, std::uint32_t magic) {
  PLAIT_RETURN_IF_ERROR(CheckMagic(head, magic));
  if (head.size() < HeaderBytes(magic)) {
    return absl::DataLossError(absl::StrCat("cut short in its header: expected ", HeaderBytes(magic),
                                            " bytes, found ", head.size(), "; get the file again"));
  }
  Shape shape;
  for (std::size_t at = 4; at < HeaderBytes(magic); at += 4) shape.push_back(BigEndian(head, at));
  bool sound = shape[0] > 0;
  for (std::size_t i = 1; i < shape.size(); ++i) sound &= shape[i] >= 1 && shape[i] <= kLargestSide;
  if (sound) return shape;
  return absl::InvalidArgumentError(absl::StrCat("its header says ", Promise(shape),
                                                 "; expected at least one, of sides 1 to ", kLargestSide));
}

// At most 2^32 x 65535^2: below 2^64.
std::uint64_t SizeOf(const Shape& shape, std::uint32_t magic) {
  std::uint64_t bytes = 1;
  for (const std::uint64_t extent : shape) bytes *= extent;
  return HeaderBytes(magic) + bytes;
}

absl::Status CheckSize(const Shape& shape, std::uint64_t expected, std::uint64_t found) {
  if (found == expected) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      found < expected ? "cut short" : "too long", ": its header says ", Promise(shape), ", ", expected,
      " bytes; found ", found > expected ? "more" : absl::StrCat(found), "; get the file again"));
}

struct Contents {
  Shape shape;
  std::string samples;
};

absl::StatusOr<Contents> Parse(std::string bytes, std::uint32_t magic) {
  const bool gzip = IsGzip(bytes);
  std::string head = bytes.substr(0, HeaderBytes(magic));
  if (gzip) {
    PLAIT_ASSIGN_OR_RETURN(head, Gunzip(bytes, HeaderBytes(magic)));
  }
  Contents contents;
  PLAIT_ASSIGN_OR_RETURN(contents.shape, ParseHeader(head, magic));
  const std::uint64_t expected = SizeOf(contents.shape, magic);
  // One byte more than expected, to detect excess data.
  if (gzip) {
    if (expected / kMostPacked > bytes.size()) return CheckSize(contents.shape, expected, bytes.size());
    PLAIT_ASSIGN_OR_RETURN(bytes, Gunzip(bytes, expected + 1));
  }
  PLAIT_RETURN_IF_ERROR(CheckSize(contents.shape, expected, bytes.size()));
  contents.samples = std::move(bytes);
  contents.samples.erase(0, HeaderBytes(magic));
  return contents;
}

absl::StatusOr<Contents> ReadContents(const std::string& path, std::uint32_t magic) {
  PLAIT_ASSIGN_OR_RETURN(std::string bytes, ReadWholeFile(path));
  absl::StatusOr<Contents> contents = Parse(std::move(bytes), magic);
  if (!contents.ok()) return base::Prefixed(contents.status(), path);
  return contents;
}

}  // namespace

absl::StatusOr<IdxImages> ReadIdxImages(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(Contents contents, ReadContents(path, kImages));
  const auto extent = [&](int i) { return static_cast<std::int64_t>(contents.shape[i]); };
  return IdxImages{extent(0), extent(1), extent(2), std::move(contents.samples)};
}

absl::StatusOr<std::string> ReadIdxLabels(const std::string& path) {
  PLAIT_ASSIGN_OR_RETURN(Contents contents, ReadContents(path, kLabels));
  return std::move(contents.samples);
}

absl::StatusOr<ImageSplit> ReadIdxSplit(const std::string& images_path, const std::string& labels_path) {
  PLAIT_ASSIGN_OR_RETURN(const IdxImages images, ReadIdxImages(images_path));
  PLAIT_ASSIGN_OR_RETURN(const std::string labels, ReadIdxLabels(labels_path));
  if (images.samples != static_cast<std::int64_t>(labels.size())) {
    return absl::InvalidArgumentError(absl::StrCat(images_path, ": ", images.samples, " images, but ",
                                                   labels.size(), " labels in ", labels_path,
                                                   "; take both from the same set"));
  }
  return ImageSplit{images.rows,
                    images.columns,
                    {images.pixels.begin(), images.pixels.end()},
                    {labels.begin(), labels.end()}};
}

}  // namespace plait::data
