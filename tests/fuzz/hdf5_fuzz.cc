// HDF5 files by every reader that takes a stranger's: histories, MATLAB's version 7.3, prepared sequences and texts,
// features of frames, checkpoints without a table of addresses.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

#include "base/check.h"
#include "data/hdf5/addressed_file.h"
#include "data/hdf5/file.h"
#include "data/history/history_table.h"
#include "data/matlab/matlab.h"
#include "data/prepared.h"
#include "data/text/prepared_text.h"
#include "data/video/feature_file.h"
#include "tests/fuzz/memory_file.h"

namespace {

std::int64_t ElementsOf(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const absl::string_view bytes = plait::fuzz::TextOf(data, size);
  if (bytes.find("\x89HDF") == absl::string_view::npos) return 0;
  const plait::fuzz::MemoryFile file(bytes);
  // While it is open, readers open it once more for little.
  const auto open = plait::data::File::OpenForeign(file.path());
  const auto table = plait::data::HistoryTable::Open(file.path());
  for (std::size_t m = 0; table.ok() && m < table->metrics().size(); ++m) {
    table->Column(table->metrics()[m].name).status().IgnoreError();
  }
  const auto array = plait::data::ReadMatlabArray(file.path());
  if (array.ok()) PLAIT_CHECK(ElementsOf(array->shape) == std::ssize(array->values));
  const auto prepared = plait::data::ReadPrepared(file.path(), {});
  if (prepared.ok()) {
    const plait::data::SequenceSplit& train = prepared->train;
    PLAIT_CHECK(std::ssize(train.x) == train.samples() * train.steps * train.channels);
  }
  plait::data::ReadPreparedText(file.path()).status().IgnoreError();
  plait::data::ReadFeatures(file.path(), "m").status().IgnoreError();
  plait::data::AddressedFile::Open(file.path()).status().IgnoreError();
  return 0;
}
