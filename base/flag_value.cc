#include "base/flag_value.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "absl/flags/marshalling.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/text.h"

namespace plait::base::internal {
namespace {

template <typename Integer>
std::string Range() {
  using Limits = std::numeric_limits<Integer>;
  if (!Limits::is_signed) return absl::StrCat("an integer from 0 to ", Limits::max());
  return sizeof(Integer) == sizeof(std::int64_t) ? "an integer"
                                                 : absl::StrCat("an integer up to ", Limits::max());
}

// Python writes powers of ten from -4 to 15 without an exponent.
template <typename Float>
std::string Shortest(Float value) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
  char text[512];  // the longest: a fixed form of 16 digits before the point
  const auto scientific = std::to_chars(text, text + sizeof(text), value, std::chars_format::scientific);
  std::string result(text, scientific.ptr);
  const int exponent = std::atoi(result.c_str() + result.find('e') + 1);
  if (exponent < -4 || exponent >= 16) return result;
  const auto fixed = std::to_chars(text, text + sizeof(text), value, std::chars_format::fixed);
  result.assign(text, fixed.ptr);
  if (result.find('.') == std::string::npos) result += ".0";
  return result;
}

template <typename... Types>
bool IsOneOf(const absl::CommandLineFlag& flag) {
  return (flag.IsOfType<Types>() || ...);
}

}  // namespace

std::string PythonFloat(double value) { return Shortest(value); }
std::string PythonFloat(float value) { return Shortest(value); }

std::string PythonString(const std::string& text) {
  const char quote = text.find('\'') != std::string::npos && text.find('"') == std::string::npos ? '"' : '\'';
  std::string result(1, quote);
  for (absl::string_view rest = text; !rest.empty();) {
    const CodePoint point = FirstCodePoint(rest);
    const absl::string_view bytes = rest.substr(0, static_cast<std::size_t>(point.bytes));
    if (point.value < 0) {  // checkpoints and histories hold UTF-8
      absl::StrAppendFormat(&result, "\\x%02x", static_cast<unsigned char>(bytes[0]));
    } else if (point.value == '\n') {
      result += "\\n";
    } else {
      if (bytes[0] == quote || bytes[0] == '\\') result += '\\';
      absl::StrAppend(&result, bytes);
    }
    rest.remove_prefix(bytes.size());
  }
  return result + quote;
}

std::string ExpectedValue(const absl::CommandLineFlag& flag) {
  if (flag.IsOfType<bool>()) return "true or false";
  if (flag.IsOfType<std::int16_t>()) return Range<std::int16_t>();
  if (flag.IsOfType<std::uint16_t>()) return Range<std::uint16_t>();
  if (flag.IsOfType<std::int32_t>()) return Range<std::int32_t>();
  if (flag.IsOfType<std::uint32_t>()) return Range<std::uint32_t>();
  if (IsOneOf<std::int64_t, long long>(flag)) return Range<std::int64_t>();
  if (IsOneOf<std::uint64_t, unsigned long long>(flag)) return Range<std::uint64_t>();
  if (IsOneOf<double, float>(flag)) return "a number";
  return "";
}

std::string ShownValue(const absl::CommandLineFlag& flag) {
  std::string value = flag.CurrentValue();
  if (flag.IsOfType<bool>()) return value == "true" ? "True" : "False";
  if (flag.IsOfType<double>()) {
    double number = 0;
    if (absl::SimpleAtod(value, &number)) return PythonFloat(number);
  }
  if (flag.IsOfType<float>()) {
    float number = 0;
    if (absl::SimpleAtof(value, &number)) return PythonFloat(number);
  }
  if (!ExpectedValue(flag).empty()) return value;
  return PythonString(value);
}

std::string ExpectedValue(const BoundFlag::Value& value) {
  return std::visit(
      [](const auto* typed) -> std::string {
        using Type = std::remove_cvref_t<decltype(*typed)>;
        if constexpr (std::is_same_v<Type, bool>) return "true or false";
        if constexpr (std::is_same_v<Type, double>) return "a number";
        if constexpr (std::is_same_v<Type, std::string>) return "text";
        if constexpr (std::is_same_v<Type, std::vector<int>>) return "an integer, or a list such as 4,2";
        if constexpr (std::is_integral_v<Type>) return Range<Type>();
      },
      value);
}

std::string ShownValue(const BoundFlag::Value& value) {
  const std::string text = ValueText(value);
  if (const auto* truth = std::get_if<bool*>(&value)) return **truth ? "True" : "False";
  if (const auto* number = std::get_if<double*>(&value)) return PythonFloat(**number);
  if (std::holds_alternative<std::string*>(value)) return PythonString(text);
  const auto* list = std::get_if<std::vector<int>*>(&value);
  return list == nullptr || (*list)->size() == 1 ? text : absl::StrCat("[", text, "]");
}

}  // namespace plait::base::internal

namespace plait::base {

std::string ValueText(const BoundFlag::Value& value) {
  return std::visit(
      [](const auto* typed) -> std::string {
        using Type = std::remove_cvref_t<decltype(*typed)>;
        if constexpr (std::is_same_v<Type, std::vector<int>>) return absl::StrJoin(*typed, ",");
        if constexpr (std::is_same_v<Type, double>) return internal::PythonFloat(*typed);
        if constexpr (!std::is_same_v<Type, std::vector<int>>) return absl::UnparseFlag(*typed);
      },
      value);
}

absl::Status SetFromText(BoundFlag& flag, const std::string& text) {
  const auto parse = [&text](auto* typed) {
    std::string error;
    std::remove_cvref_t<decltype(*typed)> parsed = {};
    if constexpr (std::is_same_v<decltype(parsed), std::vector<int>>) {
      for (const absl::string_view part : absl::StrSplit(text, ',')) {
        if (!absl::SimpleAtoi(part, &parsed.emplace_back())) return false;
      }
    } else {
      if (!absl::ParseFlag(text, &parsed, &error)) return false;
    }
    *typed = parsed;
    return true;
  };
  if (std::visit(parse, flag.value)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--", absl::StrReplaceAll(flag.name, {{"_", "-"}}), "=",
                                                 text, ": expected ", internal::ExpectedValue(flag.value)));
}

}  // namespace plait::base
