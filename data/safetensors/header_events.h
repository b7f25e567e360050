// The grammar of a header over the events of a JSON parser: no tree is built of a text that nobody has
// checked yet.
#ifndef PLAIT_DATA_SAFETENSORS_HEADER_EVENTS_H_
#define PLAIT_DATA_SAFETENSORS_HEADER_EVENTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "data/safetensors/header.h"
#include "nlohmann/json.hpp"

namespace plait::data::safetensors {

// Feed it to nlohmann::json::sax_parse; then status() says what is wrong, or header() has every entry, in the
// order of the text and with offsets that nobody has compared yet.
class HeaderEvents final : public nlohmann::json_sax<nlohmann::json> {
 public:
  const absl::Status& status() const { return status_; }
  Header& header() { return header_; }

  bool null() override { return Unexpected("null"); }
  bool boolean(bool) override { return Unexpected("a truth value"); }
  bool number_integer(number_integer_t) override { return Unexpected("a negative number"); }
  bool number_unsigned(number_unsigned_t value) override;
  bool number_float(number_float_t, const string_t&) override {
    return Unexpected("no whole number of 64 bits");
  }
  bool string(string_t& text) override;
  bool binary(binary_t&) override { return Unexpected("binary data"); }
  bool start_object(std::size_t) override;
  bool key(string_t& text) override;
  bool end_object() override;
  bool start_array(std::size_t) override;
  bool end_array() override;
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override;

 private:
  enum class Place { kStart, kRoot, kMetadata, kTensor, kNumbers, kEnd };
  bool Unexpected(const std::string& found);
  bool Refuse(const std::string& problem);
  std::string Where() const;
  bool BeginTensor();

  absl::Status status_;
  Header header_;
  Place place_ = Place::kStart;
  std::string name_;   // of the tensor, or "__metadata__"
  std::string field_;  // last key inside it
  absl::flat_hash_set<std::string> names_;
  absl::flat_hash_set<std::string> fields_;
  std::vector<std::int64_t> numbers_;
};

}  // namespace plait::data::safetensors

#endif  // PLAIT_DATA_SAFETENSORS_HEADER_EVENTS_H_
