// Prints a history or any other HDF5 file of one-dimensional numbers for the tests: "name v v v", a line per
// array, every bit of the numbers (%a).
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "data/hdf5/file.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const auto file = plait::data::File::Open(argv[1]);
  if (!file.ok()) {
    std::fprintf(stderr, "%s\n", file.status().ToString().c_str());
    return 1;
  }
  const auto names = file->Names("/");
  if (!names.ok()) return 1;
  for (const std::string& name : *names) {
    auto values = plait::data::ReadArray<double>(*file, "/" + name);
    if (!values.ok()) {
      const auto whole = plait::data::ReadArray<std::int64_t>(*file, "/" + name);
      if (!whole.ok()) continue;
      values = std::vector<double>(whole->begin(), whole->end());
    }
    std::printf("%s", name.c_str());
    for (const double value : *values) std::printf(std::isnan(value) ? " nan" : " %a", value);
    std::printf("\n");
  }
  return 0;
}
