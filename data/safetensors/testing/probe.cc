// What formats_test.py asks of the library: probe COMMAND ARGUMENT...
//   formula OUT           writes tensors whose values the test computes on its own
//   values FILE           prints types, shapes and values as JSON
//   copy FILE OUT         reads a file, writes it again
//   shard FILE FOLDER N   reads a file, writes it as a model in shards of N bytes
//   join FOLDER OUT       reads a model, writes it as one file
//   verdicts LIST         for each path in the lines of LIST: "ok" or why it cannot be opened
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "data/safetensors/file.h"
#include "data/safetensors/model.h"
#include "data/safetensors/writer.h"
#include "nlohmann/json.hpp"

namespace plait::data::safetensors {
namespace {

using Json = nlohmann::json;
using Arguments = std::vector<std::string>;

// Exact: 17 digits tell a double, 9 a float; NaN and infinity are no JSON.
template <typename T>
Json JsonOf(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.17g", static_cast<double>(value));
    return text;
  }
  return value;
}

template <typename T>
Json ValuesAs(const TensorView& tensor) {
  Json values = Json::array();
  const auto* bytes = static_cast<const char*>(tensor.data);
  for (std::int64_t i = 0; i < *ByteCount(tensor.info); i += sizeof(T)) {
    T value;
    std::memcpy(&value, bytes + i, sizeof(T));
    values.push_back(JsonOf(value));
  }
  return values;
}

// Bits where C++ has no such type.
Json Values(const TensorView& tensor) {
  switch (tensor.info.dtype) {
    case DType::kBool:
    case DType::kU8:
    case DType::kF8E5M2:
    case DType::kF8E4M3:
      return ValuesAs<std::uint8_t>(tensor);
    case DType::kI8:
      return ValuesAs<std::int8_t>(tensor);
    case DType::kI16:
      return ValuesAs<std::int16_t>(tensor);
    case DType::kU16:
    case DType::kF16:
    case DType::kBF16:
      return ValuesAs<std::uint16_t>(tensor);
    case DType::kI32:
      return ValuesAs<std::int32_t>(tensor);
    case DType::kU32:
      return ValuesAs<std::uint32_t>(tensor);
    case DType::kF32:
      return ValuesAs<float>(tensor);
    case DType::kF64:
      return ValuesAs<double>(tensor);
    case DType::kI64:
      return ValuesAs<std::int64_t>(tensor);
    case DType::kU64:
      break;
  }
  return ValuesAs<std::uint64_t>(tensor);
}

std::vector<TensorView> AllOf(const File& file) {
  std::vector<TensorView> tensors;
  for (const Header::Entry& entry : file.entries()) tensors.push_back(*file.Find(entry.name));
  return tensors;
}

absl::Status PrintValues(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const File file, File::Open(arguments.at(0)));
  Json out = {{"metadata", Json(file.metadata())}, {"tensors", Json::object()}};
  for (const TensorView& tensor : AllOf(file)) {
    out["tensors"][tensor.name] = {{"dtype", std::string(NameOf(tensor.info.dtype))},
                                   {"shape", tensor.info.shape},
                                   {"values", Values(tensor)}};
  }
  std::cout << out.dump() << "\n";
  return absl::OkStatus();
}

absl::Status Copy(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const File file, File::Open(arguments.at(0)));
  return WriteFile(arguments.at(1), AllOf(file), file.metadata());
}

absl::Status Shard(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const File file, File::Open(arguments.at(0)));
  ModelOptions options;
  PLAIT_CHECK(absl::SimpleAtoi(arguments.at(2), &options.max_shard_bytes)) << arguments[2];
  return WriteModel(arguments.at(1), AllOf(file), options);
}

absl::Status Join(const Arguments& arguments) {
  PLAIT_ASSIGN_OR_RETURN(const Model model, Model::Open(arguments.at(0)));
  std::vector<TensorView> tensors;
  for (const std::string& name : model.Names()) tensors.push_back(*model.Find(name));
  return WriteFile(arguments.at(1), tensors, {});
}

absl::Status PrintVerdicts(const Arguments& arguments) {
  std::ifstream list(arguments.at(0));
  for (std::string path; std::getline(list, path);) {
    const absl::Status status = File::Open(path).status();
    std::cout << (status.ok() ? "ok" : std::string(status.message())) << "\n";
  }
  return absl::OkStatus();
}

template <typename T>
std::vector<T> Ramp(T first, T step) {
  std::vector<T> values = {first};
  while (values.size() < 6) values.push_back(static_cast<T>(values.back() + step));
  return values;
}

absl::Status WriteFormula(const Arguments& arguments) {
  const auto i8 = Ramp<std::int8_t>(-128, 50);
  const auto i16 = Ramp<std::int16_t>(-32768, 13000);
  const auto i32 = Ramp<std::int32_t>(-2147483647, 800000000);
  const auto i64 = Ramp<std::int64_t>(-9000000000000000001, 3600000000000000000);
  const auto u64 = Ramp<std::uint64_t>(7, 3600000000000000000);
  const auto u8 = Ramp<std::uint8_t>(0, 51);
  const auto f32 = Ramp<float>(-1.5F, 0.1F);
  const auto f64 = Ramp<double>(-1.5, 0.1);
  const std::vector<std::uint16_t> halves = {0x3c00, 0xc000, 0x7bff, 0x0001, 0x7c00, 0x8000};
  const std::vector<std::uint8_t> truths = {1, 0, 0, 1, 1, 0};
  const std::vector<std::int64_t> shape = {2, 3};
  const std::vector<TensorView> tensors = {
      {"i8", {DType::kI8, shape}, i8.data()},       {"f64", {DType::kF64, shape}, f64.data()},
      {"i16", {DType::kI16, shape}, i16.data()},    {"i32", {DType::kI32, shape}, i32.data()},
      {"i64", {DType::kI64, shape}, i64.data()},    {"u64", {DType::kU64, shape}, u64.data()},
      {"u8", {DType::kU8, shape}, u8.data()},       {"f32", {DType::kF32, {3, 1, 2}}, f32.data()},
      {"f16", {DType::kF16, shape}, halves.data()}, {"bool", {DType::kBool, shape}, truths.data()},
      {"scalar", {DType::kF64, {}}, f64.data()},    {"none", {DType::kF32, {0, 4}}, nullptr}};
  return WriteFile(arguments.at(0), tensors, {{"format", "np"}, {"note", "two\nlines, \u00e9"}});
}

int Run(int argc, char** argv) {
  const std::map<std::string, absl::Status (*)(const Arguments&)> commands = {
      {"formula", WriteFormula}, {"values", PrintValues}, {"copy", Copy},
      {"shard", Shard},          {"join", Join},          {"verdicts", PrintVerdicts}};
  PLAIT_CHECK(argc > 1 && commands.contains(argv[1])) << "probe COMMAND ARGUMENT...";
  const absl::Status status = commands.at(argv[1])(Arguments(argv + 2, argv + argc));
  if (!status.ok()) std::cerr << status.message() << "\n";
  return status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace plait::data::safetensors

int main(int argc, char** argv) { return plait::data::safetensors::Run(argc, argv); }
