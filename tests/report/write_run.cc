// write_run KIND FILE [DRAWS]: a history for the tests of report, from formulas that the tests repeat.
//
//   run      DRAWS draws (100) of two ranks' times, loss, traffic, with attributes; one outlier, NaN and Inf
//   changed  the same with other settings, times half as long
//   killed   10 draws in the file and 5 in the journal of a process that has ended
//   experts  loads of 16 experts in two layers, DRAWS draws; one NaN
//   late     `late` from the middle on, `gone` up to the middle, `rare` at every tenth draw, `never` at none
//   peers    as h5py writes it: arrays without coordinates or attributes
//   arrays   those that standard input describes: [{"name", "values", "width", "attributes", "is_coordinate"}, ...] in JSON,
//            where null is NaN and the coordinate is the one dimension scale of all
//   hostile  attributes and units with markup
//   hostile_names  a metric whose name ends the page's script
//   tokens   `iter` 10, 20, 30, and DRAWS tokens in each of the steps
//   close    `near` 1, 1.00001, ... 1.00009; `nearest` 1 and the next number, in turns
//   growing  a draw for each line of standard input, answered by a line; closed at its end
//   no_draws, newer (format version 99)
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "data/hdf5/dimension.h"
#include "data/hdf5/file.h"
#include "data/history/history.h"
#include "nlohmann/json.hpp"

namespace plait::data {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void Need(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "write_run: %s\n", std::string(status.message()).c_str());
  std::exit(1);
}

std::unique_ptr<History> Started(const std::string& path, std::map<std::string, std::string> attributes) {
  absl::StatusOr<std::unique_ptr<History>> history =
      History::Create(path, {.attributes = std::move(attributes), .commit_seconds = 1e6});
  Need(history.status());
  return *std::move(history);
}

std::map<std::string, std::string> Attributes(const std::string& settings) {
  return {{"program", "test_dist"},
          {"command", "test_dist --nproc=2"},
          {"host", "node17"},
          {"ranks", "2"},
          {"started", "2026-11-21T15:30:00Z"},
          {"revision", "0123abc"},
          {"trace", "trace.json"},
          {"settings", settings}};
}

void WriteRun(const std::string& path, std::int64_t draws, double scale, const std::string& settings) {
  auto history = Started(path, Attributes(settings));
  Need(history->Declare({"loss", "1", "sum of squared differences", "mean over ranks"}));
  Need(history->Declare({"dt", "s", "time of a step", "mean over ranks"}));
  Need(history->Declare({"dt_min", "s", "time of a step", "minimum over ranks"}));
  Need(history->Declare({"dt_max", "s", "time of a step", "maximum over ranks"}));
  Need(history->Declare({"dtf", "s", "forward and loss", "mean over ranks"}));
  Need(history->Declare({"dtb", "s", "backward and optimizer", "mean over ranks"}));
  Need(history->Declare({"comm_bytes_dp", "bytes", "sent by a rank"}));
  Need(history->Declare({"comm_in_flight_dp", "s", "all-reduce under way"}));
  Need(history->Declare({"comm_exposed_dp", "s", "of it, not behind other work"}));
  // Of an axis of one rank.
  Need(history->Declare({"comm_bytes_tp", "bytes", "sent by a rank", "mean over ranks"}));
  Need(history->Declare({"comm_bytes_tp_max", "bytes", "sent by a rank", "maximum over ranks"}));
  Need(history->Declare({"comm_in_flight_tp", "s", "in flight"}));
  Need(history->Declare({.name = "dt_per_rank", .units = "s", .dimension = "rank", .length = 2}));
  for (std::int64_t i = 0; i < draws; ++i) {
    // 1.0, 1.1, ... 1.9 ms, again and again.
    const double dt = scale * (i == 0 ? 0.25 : 1e-3 + 1e-4 * static_cast<double>(i % 10));
    const double loss = i == draws / 2 ? kNaN : i == draws / 2 + 1 ? kInfinity : 2000.0 / double(i + 1) + 300;
    const double per_rank[] = {dt, 1.25 * dt};
    Need(history->Append({{"loss", loss},
                          {"dt", dt},
                          {"dt_min", 0.875 * dt},
                          {"dt_max", 1.125 * dt},
                          {"dtf", 0.25 * dt},
                          {"dtb", 0.75 * dt},
                          {"sps", 64 / dt},
                          {"sps_world", 128 / dt},
                          {"comm_bytes_dp", 3350528},
                          {"comm_in_flight_dp", 0.5 * dt},
                          {"comm_exposed_dp", 0.125 * dt},
                          {"comm_bytes_tp", 0},
                          {"comm_bytes_tp_max", 0},
                          {"comm_in_flight_tp", 0}},
                         {{"dt_per_rank", per_rank}}));
  }
  Need(history->Close());
}

void WriteKilled(const std::string& path) {
  auto history = Started(path, Attributes(""));
  for (int i = 0; i < 15; ++i) {
    Need(history->Append({{"loss", 1.0 * i}}));
    if (i == 9) Need(history->Commit());
  }
  std::fflush(nullptr);
  _exit(0);
}

void WriteLate(const std::string& path) {
  auto history = Started(path, Attributes(""));
  for (int i = 0; i < 100; ++i) {
    std::vector<Scalar> scalars = {{"loss", 1.0 * i}, {"never", kNaN}};
    scalars.push_back({i < 50 ? "gone" : "late", 1.0 * i});
    if (i % 10 == 9) scalars.push_back({"rare", 1.0 * i});
    Need(history->Append(scalars));
  }
  Need(history->Close());
}

// Loads of 16 experts of two layers, at 256 on the average; the second layer is unequal.
void WriteExperts(const std::string& path, std::int64_t draws) {
  constexpr std::int64_t kExperts = 16;
  auto history = Started(path, Attributes(""));
  for (const char* name : {"expert_load_1", "expert_load_3"}) {
    Need(history->Declare(
        {.name = name, .long_name = "rows of an expert", .dimension = "expert", .length = kExperts}));
  }
  for (std::int64_t i = 0; i < draws; ++i) {
    std::vector<double> equal, unequal;
    for (std::int64_t expert = 0; expert < kExperts; ++expert) {
      equal.push_back(256 + static_cast<double>((i * 7 + expert * 5) % 11 - 5));
      unequal.push_back(512.0 * static_cast<double>(expert) / (kExperts - 1));
    }
    if (i == draws / 2) equal[3] = kNaN;
    Need(history->Append({{"loss", 10.0 - 0.01 * double(i)}},
                         {{"expert_load_1", equal}, {"expert_load_3", unequal}}));
  }
  Need(history->Close());
}

void WritePeers(const std::string& path) {
  absl::StatusOr<File> file = File::Create(path);
  Need(file.status());
  std::vector<std::int64_t> iterations;
  std::vector<double> loss, dt;
  for (int i = 0; i < 40; ++i) {
    iterations.push_back(i);
    loss.push_back(10.0 - 0.1 * i);
    dt.push_back(0.4);
  }
  Need(WriteArray<std::int64_t>(*file, "/train_iter", iterations, {40}));
  Need(WriteArray<double>(*file, "/train_loss", loss, {40}));
  Need(WriteArray<double>(*file, "/train_dt", dt, {40}));
  Need(WriteArray<double>(*file, "/train_dt_per_rank", {}, {40, 0}));
  Need(file->Close());
}

void WriteArrays(const std::string& path) {
  absl::StatusOr<File> file = File::Create(path);
  Need(file.status());
  std::string coordinate;
  const nlohmann::json arrays = nlohmann::json::parse(std::cin);
  for (const nlohmann::json& array : arrays) {
    const std::string name = array.at("name");
    std::vector<double> values;
    for (const nlohmann::json& value : array.at("values")) {
      values.push_back(value.is_null() ? kNaN : value.get<double>());
    }
    const std::int64_t width = array.at("width");
    std::vector<std::int64_t> shape = {static_cast<std::int64_t>(values.size()) / width};
    if (width > 1) shape.push_back(width);
    Need(WriteArray<double>(*file, "/" + name, values, shape));
    for (const auto& [attribute, text] : array.at("attributes").items()) {
      Need(SetAttribute(*file, "/" + name, attribute, text.get<std::string>()));
    }
    if (array.at("is_coordinate")) coordinate = name;
  }
  if (!coordinate.empty()) Need(MakeDimension(*file, coordinate));
  for (const nlohmann::json& array : arrays) {
    const std::string name = array.at("name");
    if (!coordinate.empty() && name != coordinate)
      Need(AttachDimension(*file, "/" + name, "/" + coordinate, 0));
  }
  Need(file->Close());
}

void WriteTokens(const std::string& path, std::int64_t tokens) {
  auto history = Started(path, {});
  for (int i = 1; i <= 3; ++i) {
    Need(history->Append({{"iter", 10.0 * i}, {"tokens", double(tokens)}, {"loss", 1.0 / i}}));
  }
  Need(history->Close());
}

void WriteClose(const std::string& path) {
  auto history = Started(path, {});
  for (int i = 0; i < 10; ++i) {
    Need(history->Append({{"near", 1 + 1e-5 * i}, {"nearest", i % 2 == 0 ? 1 : std::nextafter(1.0, 2.0)}}));
  }
  Need(history->Close());
}

void WriteGrowing(const std::string& path) {
  auto history = Started(path, Attributes(""));
  std::puts("started");
  std::fflush(stdout);
  for (int i = 0, c; (c = std::getchar()) != EOF;) {
    if (c != '\n') continue;
    Need(history->Append({{"loss", 1.0 / (1 + i)}, {"dt", 0.1}}));
    // Some draws are in the file, some in the journal.
    if (++i % 3 == 0) Need(history->Commit());
    std::puts("appended");
    std::fflush(stdout);
  }
  Need(history->Close());
}

void WriteHostileNames(const std::string& path) {
  absl::StatusOr<File> file = File::Create(path);
  Need(file.status());
  const std::vector<double> values = {1, 2, 4};
  // In HDF5 the slash makes it an array in a group.
  Need(WriteArray<double>(*file, "/x</script><img src=x onerror=document.title=2>", values, {3}));
  Need(WriteArray<double>(*file, "/__proto__", values, {3}));
  Need(file->Close());
}

void WriteHostile(const std::string& path) {
  auto history = Started(
      path, {{"program", "<script>document.title='taken'</script>"},
             {"host", "\" onmouseover=\"document.title='taken'"},
             {"note", "</style><img src=x onerror=document.title='taken'> \xff\xfe \x1b[2J | `x` &amp;"},
             {"settings", "name='</script><script>document.title=1</script>'"}});
  Need(history->Declare({"loss", "<b>nats</b>", "</h3><script>document.title='taken'</script>"}));
  for (int i = 0; i < 20; ++i) Need(history->Append({{"loss", 1.0 * i}}));
  Need(history->Close());
}

int Main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string kind = argv[1], path = argv[2];
  const std::int64_t draws = argc > 3 ? std::atoll(argv[3]) : 100;
  if (kind == "run")
    WriteRun(path, draws, 1, "Namespace(batch_size=64, dtype='float32', layers=[1024, 512], seed=1)");
  if (kind == "changed") {
    WriteRun(path, draws, 0.5, "Namespace(batch_size=64, dtype='bfloat16', layers=[1024, 512], seed=2)");
  }
  if (kind == "experts") WriteExperts(path, draws);
  if (kind == "killed") WriteKilled(path);
  if (kind == "late") WriteLate(path);
  if (kind == "peers") WritePeers(path);
  if (kind == "arrays") WriteArrays(path);
  if (kind == "hostile") WriteHostile(path);
  if (kind == "hostile_names") WriteHostileNames(path);
  if (kind == "tokens") WriteTokens(path, draws);
  if (kind == "close") WriteClose(path);
  if (kind == "growing") WriteGrowing(path);
  if (kind == "no_draws") Need(Started(path, {})->Close());
  if (kind == "newer") {
    WriteRun(path, 10, 1, "");
    absl::StatusOr<File> file = File::Open(path, File::Mode::kReadWrite);
    Need(file.status());
    Need(SetAttribute(*file, "/", "format_version", std::int64_t{99}));
    Need(file->Close());
  }
  return 0;
}

}  // namespace
}  // namespace plait::data

int main(int argc, char** argv) { return plait::data::Main(argc, argv); }
