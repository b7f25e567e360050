#include "tools/training/since_draw.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"

namespace plait::training {
namespace {

constexpr char kName[] = "since_draw", kMesh[] = "since_draw.mesh";

std::string AxesOf(const comm::DeviceMesh& mesh) {
  std::string axes;
  for (const comm::MeshAxis& axis : mesh.axes()) absl::StrAppend(&axes, axis.name, "=", axis.size, " ");
  return axes;
}

}  // namespace

double Since(const std::optional<SinceDraw>& sums, const std::string& name) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (!sums.has_value()) return kUnknown;
  const auto found = sums->find(name);
  return found == sums->end() ? kUnknown : found->second;
}

void SaveSinceDraw(const SinceDraw& sums, const comm::DeviceMesh& mesh, parallel::CheckpointState& state) {
  state.integers[kName] = static_cast<std::int64_t>(sums.size());
  if (sums.empty()) return;
  state.texts[kMesh] = AxesOf(mesh);
  std::string& text = state.rank_state[kName];
  for (const auto& [name, value] : sums)
    absl::StrAppend(&text, name, " ", absl::StrFormat("%.17g", value), "\n");
}

absl::StatusOr<std::optional<SinceDraw>> ReadSinceDraw(parallel::Checkpoint& checkpoint,
                                                       const comm::DeviceMesh& mesh) {
  const auto count = checkpoint.integers().find(kName);
  if (count == checkpoint.integers().end() || count->second == 0) return SinceDraw{};
  PLAIT_ASSIGN_OR_RETURN(const std::string axes, checkpoint.Text(kMesh));
  if (axes != AxesOf(mesh)) return std::nullopt;
  const int rank = mesh.world().rank();
  PLAIT_ASSIGN_OR_RETURN(const std::string text, checkpoint.RankState(rank, kName));
  SinceDraw sums;
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    double value = 0;
    if (words.size() != 2 || !absl::SimpleAtod(words[1], &value)) {
      return absl::DataLossError(
          absl::StrCat(checkpoint.folder(), ": ", kName, " of rank ", rank, ": ", line));
    }
    sums[words[0]] = value;
  }
  return sums;
}

}  // namespace plait::training
