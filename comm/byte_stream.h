// Serialization of numbers and strings, for messages between processes of one job (same program, same byte order).
#ifndef PLAIT_COMM_BYTE_STREAM_H_
#define PLAIT_COMM_BYTE_STREAM_H_

#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace plait::comm {

class ByteWriter {
 public:
  template <typename T>
  void Write(T value) {
    static_assert(std::is_arithmetic_v<T> || std::is_enum_v<T>);
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void WriteText(absl::string_view text) {
    Write(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text.data(), text.size());
  }
  template <typename T>
  void WriteNumbers(const std::vector<T>& numbers) {
    Write(static_cast<std::uint32_t>(numbers.size()));
    for (const T number : numbers) Write(number);
  }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what ByteWriter wrote, in the same order. Reads past the end give zero or empty values and make ok() false.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    T value{};
    if (bytes_.size() < sizeof value) {
      Fail();
      return value;
    }
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_.remove_prefix(sizeof value);
    return value;
  }
  std::string ReadText() {
    const auto length = Read<std::uint32_t>();
    if (bytes_.size() < length) Fail();
    if (!ok_) return "";
    std::string text(bytes_.substr(0, length));
    bytes_.remove_prefix(length);
    return text;
  }
  template <typename T>
  std::vector<T> ReadNumbers() {
    std::vector<T> numbers;
    for (auto left = Read<std::uint32_t>(); left > 0 && ok_; --left) numbers.push_back(Read<T>());
    return numbers;
  }
  bool ok() const { return ok_; }
  bool at_end() const { return bytes_.empty(); }

 private:
  void Fail() {
    ok_ = false;
    bytes_ = absl::string_view();
  }
  absl::string_view bytes_;
  bool ok_ = true;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_BYTE_STREAM_H_
