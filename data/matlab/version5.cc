#include "data/matlab/version5.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "data/matlab/inflate.h"

namespace plait::data::matlab {
namespace {

constexpr std::size_t kHeaderBytes = 128, kVersionAt = 124, kOrderAt = 126;
constexpr std::size_t kAlignment = 8;
constexpr std::uint32_t kInt32 = 5, kUint32 = 6, kMatrix = 14, kCompressed = 15;
constexpr std::uint32_t kComplexFlag = 0x0800;

// Classes of arrays, and what those are that hold no plain numbers.
constexpr std::uint32_t kFirstNumericClass = 6, kLastNumericClass = 15;
constexpr const char* kOtherClasses[] = {
    "an array of no class", "a cell array", "a structure", "an object", "text", "a sparse array"};

absl::Status Cut(absl::string_view what) { return absl::DataLossError(absl::StrCat("cut short: ", what)); }

// Numbers in the byte order of the file.
template <typename T>
T Load(const char* at, bool swapped) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, at, sizeof(T));
  if (swapped) std::reverse(bytes, bytes + sizeof(T));
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

struct Element {
  std::uint32_t type = 0;
  absl::string_view data;
};

// Data elements in a row: a tag of type and size, then the data, padded to 8 bytes; up to 4 bytes of data may stand
// in the tag itself.
class Elements {
 public:
  Elements(absl::string_view bytes, bool swapped) : left_(bytes), swapped_(swapped) {}

  bool done() const { return left_.empty(); }
  bool swapped() const { return swapped_; }

  absl::StatusOr<Element> Next(absl::string_view what) {
    if (left_.size() < kAlignment) return Cut(absl::StrCat("no tag of ", what));
    const auto first = Load<std::uint32_t>(left_.data(), swapped_);
    const std::uint32_t small = first >> 16;
    if (small > 0) {
      if (small > 4)
        return absl::DataLossError(absl::StrCat("damaged: a small element of ", small, " bytes"));
      const Element element = {first & 0xffff, left_.substr(4, small)};
      left_.remove_prefix(kAlignment);
      return element;
    }
    const auto size = Load<std::uint32_t>(left_.data() + 4, swapped_);
    left_.remove_prefix(kAlignment);
    if (size > left_.size()) {
      return Cut(absl::StrCat(what, " has ", size, " bytes, but ", left_.size(), " are left in the file"));
    }
    const Element element = {first, left_.substr(0, size)};
    // Compressed elements are not padded.
    const std::size_t padded =
        first == kCompressed ? size : (size + kAlignment - 1) / kAlignment * kAlignment;
    left_.remove_prefix(std::min(padded, left_.size()));
    return element;
  }

 private:
  absl::string_view left_;
  bool swapped_;
};

struct Matrix {
  std::uint32_t array_class = 0;
  bool complex = false;
  MatlabArray array;  // without values
  Elements rest;      // values and what follows
};

template <typename T>
absl::Status Convert(absl::string_view data, bool swapped, std::vector<double>& values) {
  const std::size_t expected = values.size() * sizeof(T);
  if (data.size() != expected) {
    return absl::DataLossError(absl::StrCat("damaged: ", values.size(), " elements of ", sizeof(T),
                                            " bytes expected, but there are ", data.size(), " bytes"));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<double>(Load<T>(data.data() + i * sizeof(T), swapped));
  }
  return absl::OkStatus();
}

// Types of data elements. The type in which numbers are stored may be smaller than the array's class.
absl::Status ConvertElement(const Element& element, bool swapped, std::vector<double>& values) {
  switch (element.type) {
    case 1:
      return Convert<std::int8_t>(element.data, swapped, values);
    case 2:
      return Convert<std::uint8_t>(element.data, swapped, values);
    case 3:
      return Convert<std::int16_t>(element.data, swapped, values);
    case 4:
      return Convert<std::uint16_t>(element.data, swapped, values);
    case kInt32:
      return Convert<std::int32_t>(element.data, swapped, values);
    case kUint32:
      return Convert<std::uint32_t>(element.data, swapped, values);
    case 7:
      return Convert<float>(element.data, swapped, values);
    case 9:
      return Convert<double>(element.data, swapped, values);
    case 12:
      return Convert<std::int64_t>(element.data, swapped, values);
    case 13:
      return Convert<std::uint64_t>(element.data, swapped, values);
    default:
      return absl::DataLossError(absl::StrCat("damaged: numbers of the unknown type ", element.type));
  }
}

// Whether `shape` has at most `most` elements, and how many; each takes a byte or more in the file.
absl::StatusOr<std::int64_t> CountElements(const std::vector<std::int64_t>& shape, std::size_t most) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return absl::DataLossError(absl::StrCat("damaged: a dimension of ", size));
    if (size > 0 && count > static_cast<std::int64_t>(most) / size) {
      return absl::DataLossError(absl::StrCat("damaged: an array of ", absl::StrJoin(shape, " x "),
                                              " elements in ", most, " bytes"));
    }
    count *= size;
  }
  return count;
}

// Flags, dimensions and name.
absl::StatusOr<Matrix> ReadHead(absl::string_view data, bool swapped) {
  Matrix matrix = {.array = {}, .rest = Elements(data, swapped)};
  PLAIT_ASSIGN_OR_RETURN(const Element flags, matrix.rest.Next("the flags of an array"));
  if (flags.type != kUint32 || flags.data.size() != 8)
    return absl::DataLossError("damaged: an array without flags");
  const auto word = Load<std::uint32_t>(flags.data.data(), swapped);
  matrix.array_class = word & 0xff;
  matrix.complex = (word & kComplexFlag) != 0;
  PLAIT_ASSIGN_OR_RETURN(const Element shape, matrix.rest.Next("the dimensions of an array"));
  if (shape.type != kInt32 || shape.data.size() < 8 || shape.data.size() % 4 != 0) {
    return absl::DataLossError("damaged: an array without dimensions");
  }
  for (std::size_t at = 0; at < shape.data.size(); at += 4) {
    matrix.array.shape.push_back(Load<std::int32_t>(shape.data.data() + at, swapped));
  }
  PLAIT_ASSIGN_OR_RETURN(const Element name, matrix.rest.Next("the name of an array"));
  matrix.array.name = std::string(name.data);
  return matrix;
}

absl::StatusOr<MatlabArray> ReadValues(Matrix matrix) {
  const std::string& name = matrix.array.name;
  if (matrix.array_class < kFirstNumericClass) return NotNumeric(name, kOtherClasses[matrix.array_class]);
  if (matrix.array_class > kLastNumericClass) return NotNumeric(name, "a function or an object");
  if (matrix.complex) return NotNumeric(name, "complex numbers");
  PLAIT_ASSIGN_OR_RETURN(const Element numbers, matrix.rest.Next(absl::StrCat("the numbers of ", name)));
  PLAIT_ASSIGN_OR_RETURN(const std::int64_t count, CountElements(matrix.array.shape, numbers.data.size()));
  matrix.array.values.resize(count);
  PLAIT_RETURN_IF_ERROR(
      base::Prefixed(ConvertElement(numbers, matrix.rest.swapped(), matrix.array.values), name));
  return std::move(matrix.array);
}

absl::StatusOr<bool> IsSwapped(absl::string_view file) {
  const absl::string_view order = file.size() < kHeaderBytes ? "" : file.substr(kOrderAt, 2);
  if (order != "IM" && order != "MI") {
    return absl::InvalidArgumentError(
        "not a MATLAB file of version 5 or 7.3; save it with save(..., \"-v7\")");
  }
  const bool swapped = order == "MI";  // on this machine, whose byte order is little-endian
  const auto version = Load<std::uint16_t>(file.data() + kVersionAt, swapped);
  if (version != 0x0100)
    return absl::InvalidArgumentError(absl::StrCat("a MATLAB file of the unknown version ", version));
  return swapped;
}

}  // namespace

absl::Status NotNumeric(const std::string& name, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("variable ", name, ": ", what, "; expected a real numeric array"));
}

absl::StatusOr<std::size_t> ChooseVariable(const std::vector<std::string>& names, const std::string& name) {
  const std::string there = names.empty() ? "no variables" : absl::StrJoin(names, ", ");
  if (name.empty()) {
    if (names.size() == 1) return 0;
    return absl::InvalidArgumentError(absl::StrCat("expected a single variable, but there are: ", there));
  }
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end())
    return absl::NotFoundError(absl::StrCat("no variable ", name, "; there are: ", there));
  return found - names.begin();
}

absl::StatusOr<MatlabArray> ReadVersion5Array(absl::string_view file, const std::string& name) {
  PLAIT_ASSIGN_OR_RETURN(const bool swapped, IsSwapped(file));
  Elements elements(file.substr(kHeaderBytes), swapped);
  std::deque<std::string> unpacked;  // what arrays are views of
  std::vector<Matrix> matrices;
  std::vector<std::string> names;
  while (!elements.done()) {
    PLAIT_ASSIGN_OR_RETURN(Element element, elements.Next("a variable"));
    if (element.type == kCompressed) {
      PLAIT_ASSIGN_OR_RETURN(unpacked.emplace_back(), Inflate(element.data));
      Elements inner(unpacked.back(), swapped);
      PLAIT_ASSIGN_OR_RETURN(element, inner.Next("a compressed variable"));
    }
    if (element.type != kMatrix) continue;
    PLAIT_ASSIGN_OR_RETURN(Matrix matrix, ReadHead(element.data, swapped));
    if (matrix.array.name.empty()) continue;  // MATLAB's own data on objects
    names.push_back(matrix.array.name);
    matrices.push_back(std::move(matrix));
  }
  PLAIT_ASSIGN_OR_RETURN(const std::size_t chosen, ChooseVariable(names, name));
  return ReadValues(std::move(matrices[chosen]));
}

}  // namespace plait::data::matlab
