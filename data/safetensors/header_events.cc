#include "data/safetensors/header_events.h"

#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace plait::data::safetensors {
namespace {

constexpr absl::string_view kMetadataKey = "__metadata__";

bool IsTensorField(absl::string_view field) {
  return field == "dtype" || field == "shape" || field == "data_offsets";
}

}  // namespace

bool HeaderEvents::Refuse(const std::string& problem) {
  status_ = absl::DataLossError(problem);
  return false;
}

std::string HeaderEvents::Where() const {
  switch (place_) {
    case Place::kStart:
    case Place::kEnd:
      return "the header";
    case Place::kRoot:
      return Quoted(name_);
    case Place::kMetadata:
      return absl::StrCat(kMetadataKey, " ", Quoted(field_));
    case Place::kTensor:
    case Place::kNumbers:
      break;
  }
  return absl::StrCat("tensor ", Quoted(name_), ": ", field_);
}

bool HeaderEvents::Unexpected(const std::string& found) {
  std::string expected = "a JSON object";
  if (place_ == Place::kMetadata) expected = "a text";
  if (place_ == Place::kNumbers) expected = "whole numbers from 0 to 2^63 - 1";
  if (place_ == Place::kTensor) expected = field_ == "dtype" ? "a text" : "a list of numbers";
  return Refuse(absl::StrCat(Where(), " is ", found, ", expected ", expected));
}

bool HeaderEvents::number_unsigned(number_unsigned_t value) {
  if (place_ != Place::kNumbers) return Unexpected("a number");
  if (value > static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
    return Unexpected("a number beyond 2^63 - 1");
  }
  numbers_.push_back(static_cast<std::int64_t>(value));
  return true;
}

bool HeaderEvents::string(string_t& text) {
  if (place_ == Place::kMetadata) {
    header_.metadata[field_] = std::move(text);
    return true;
  }
  if (place_ != Place::kTensor || field_ != "dtype") return Unexpected("a text");
  const auto dtype = DTypeNamed(text);
  if (!dtype) {
    return Refuse(absl::StrCat("tensor ", Quoted(name_), ": unknown dtype ", Quoted(text),
                               ", expected one of ", DTypeNames()));
  }
  header_.entries.back().info.dtype = *dtype;
  return true;
}

bool HeaderEvents::start_object(std::size_t) {
  if (place_ == Place::kStart) {
    place_ = Place::kRoot;
    return true;
  }
  if (place_ != Place::kRoot) return Unexpected("an object");
  fields_.clear();
  if (name_ == kMetadataKey) {
    place_ = Place::kMetadata;
    return true;
  }
  place_ = Place::kTensor;
  header_.entries.push_back({.name = name_, .info = {}});
  return true;
}

bool HeaderEvents::key(string_t& text) {
  if (place_ == Place::kRoot) {
    name_ = text;
    if (names_.insert(text).second) return true;
    return Refuse(absl::StrCat("the name ", Quoted(text), " stands there twice, expected every name once"));
  }
  field_ = text;
  if (!fields_.insert(text).second) {
    return Refuse(
        absl::StrCat(Quoted(name_), " has the key ", Quoted(text), " twice, expected every key once"));
  }
  if (place_ == Place::kMetadata || IsTensorField(text)) return true;
  return Refuse(absl::StrCat("tensor ", Quoted(name_), " has the key ", Quoted(text),
                             ", expected dtype, shape and data_offsets only"));
}

bool HeaderEvents::end_object() {
  if (place_ == Place::kRoot) {
    place_ = Place::kEnd;
    return true;
  }
  if (place_ == Place::kTensor && fields_.size() != 3) {
    return Refuse(
        absl::StrCat("tensor ", Quoted(name_), " is incomplete, expected dtype, shape and data_offsets"));
  }
  place_ = Place::kRoot;
  return true;
}

bool HeaderEvents::start_array(std::size_t) {
  if (place_ != Place::kTensor || field_ == "dtype") return Unexpected("a list");
  place_ = Place::kNumbers;
  numbers_.clear();
  return true;
}

bool HeaderEvents::end_array() {
  place_ = Place::kTensor;
  Header::Entry& entry = header_.entries.back();
  if (field_ == "shape") {
    entry.info.shape = numbers_;
    return true;
  }
  if (numbers_.size() != 2) {
    return Refuse(absl::StrCat(Where(), " has ", numbers_.size(), " numbers, expected begin and end"));
  }
  entry.begin = numbers_[0];
  entry.end = numbers_[1];
  return true;
}

bool HeaderEvents::parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) {
  return Refuse(
      absl::StrCat("the header is not JSON at its byte ", position, ", expected a JSON object in UTF-8"));
}

}  // namespace plait::data::safetensors
