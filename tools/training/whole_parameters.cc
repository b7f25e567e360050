#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "comm/gathered_text.h"
#include "comm/tensor_collectives.h"
#include "tools/training/sharded_model.h"

namespace plait::training {
namespace {

struct Part {
  std::string name;
  at::Tensor values;  // in the host's memory
  models::Placement placement;
};

// "NAME TYPE 8,6 0,2,8,2 ...": shape of the whole, then begin and size of each box.
std::string Describe(const Part& part) {
  const bool whole = part.placement.boxes.empty();
  std::vector<std::string> words = {
      part.name, absl::StrCat(static_cast<int>(part.values.scalar_type())),
      absl::StrJoin(whole ? part.values.sizes().vec() : part.placement.shape, ",")};
  for (const models::Box& box : part.placement.boxes) {
    words.push_back(absl::StrCat(absl::StrJoin(box.begin, ","), ",", absl::StrJoin(box.size, ",")));
  }
  return absl::StrJoin(words, " ");
}

std::vector<std::int64_t> Numbers(absl::string_view text) {
  std::vector<std::int64_t> numbers;
  for (const absl::string_view word : absl::StrSplit(text, ',', absl::SkipEmpty())) {
    numbers.push_back(std::stoll(std::string(word)));
  }
  return numbers;
}

// With memory for the values.
Part Parse(absl::string_view text) {
  const std::vector<std::string> words = absl::StrSplit(text, ' ');
  const auto type = static_cast<at::ScalarType>(Numbers(words[1])[0]);
  Part part = {.name = words[0], .values = {}, .placement = {.shape = Numbers(words[2])}};
  for (std::size_t i = 3; i < words.size(); ++i) {
    const std::vector<std::int64_t> n = Numbers(words[i]);
    const auto middle = n.begin() + static_cast<std::ptrdiff_t>(n.size() / 2);
    part.placement.boxes.push_back({{n.begin(), middle}, {middle, n.end()}});
  }
  const auto whole = at::empty(part.placement.shape, at::TensorOptions(at::kMeta).dtype(type));
  part.values = at::empty(models::LocalPart(whole, part.placement).sizes(), at::TensorOptions().dtype(type));
  return part;
}

void Insert(const Part& part, std::map<std::string, at::Tensor>& whole) {
  at::Tensor& values = whole[part.name];
  if (!values.defined()) values = at::empty(part.placement.shape, part.values.options());
  if (part.placement.boxes.empty()) {
    values.copy_(part.values);
    return;
  }
  std::int64_t first = 0;  // along dimension 0 of the part
  for (const models::Box& box : part.placement.boxes) {
    at::Tensor target = values;
    for (std::int64_t d = 0; d < values.dim(); ++d) target = target.narrow(d, box.begin[d], box.size[d]);
    target.copy_(part.values.narrow(0, first, box.size[0]));
    first += box.size[0];
  }
}

// Whether `rank` is the first along every axis that neither stages nor splits the model.
bool HasAnOwnPart(const comm::DeviceMesh& mesh, int rank) {
  for (std::size_t axis = 0; axis < mesh.axes().size(); ++axis) {
    const std::string& name = mesh.axes()[axis].name;
    if (name != "pp" && name != "lp" && name != "tp" && mesh.Coordinates(rank)[axis] != 0) return false;
  }
  return true;
}

}  // namespace

std::map<std::string, at::Tensor> ShardedModel::WholeParameters() {
  const comm::Communicator& world = mesh_.world();
  std::vector<Part> mine;
  engine_->VisitUnsharded([&](const models::ParameterUnit& unit) {
    if (!HasAnOwnPart(mesh_, world.rank())) return;
    for (const models::ParameterSpec& spec : unit.parameters) {
      mine.push_back({spec.name, spec.tensor.detach().cpu().contiguous().clone(), spec.placement});
    }
  });
  std::map<std::string, at::Tensor> whole;
  for (int owner = 0; owner < world.size(); ++owner) {
    if (!HasAnOwnPart(mesh_, owner)) continue;
    std::vector<std::string> lines;
    for (const Part& part : mine) lines.push_back(Describe(part));
    const std::string text = comm::BroadcastText(world, absl::StrJoin(lines, "\n"), owner);
    std::size_t next = 0;
    for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
      Part part = Parse(line);
      if (owner == world.rank()) part.values = mine[next++].values;
      comm::Broadcast(world, part.values, owner);
      if (world.rank() == 0) Insert(part, whole);
    }
  }
  return whole;
}

}  // namespace plait::training
