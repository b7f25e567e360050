#include "comm/device_mesh.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/check.h"

namespace plait::comm {
namespace {

std::string Shape(const std::vector<MeshAxis>& axes) {
  return absl::StrJoin(axes, " x ", [](std::string* out, const MeshAxis& axis) {
    absl::StrAppend(out, axis.name, "=", axis.size);
  });
}

absl::Status CheckNames(const std::vector<MeshAxis>& axes) {
  std::set<std::string> names;
  for (const MeshAxis& axis : axes) {
    if (axis.name.empty()) return absl::InvalidArgumentError("mesh " + Shape(axes) + ": an axis has no name");
    if (!names.insert(axis.name).second) {
      return absl::InvalidArgumentError("mesh " + Shape(axes) + ": axis " + axis.name + " appears twice");
    }
  }
  return absl::OkStatus();
}

// Makes the sizes' product `ranks`, through the axis of size -1 if there is one.
absl::Status FitSizes(int ranks, std::vector<MeshAxis>* axes) {
  std::int64_t product = 1;
  MeshAxis* open = nullptr;
  for (MeshAxis& axis : *axes) {
    if (axis.size == -1 && open == nullptr) {
      open = &axis;
    } else if (axis.size < 1) {
      return absl::InvalidArgumentError("mesh " + Shape(*axes) +
                                        ": sizes must be positive, one of them may be -1");
    } else {
      product *= axis.size;
    }
    if (product > ranks) break;
  }
  if (open != nullptr && product <= ranks && ranks % product == 0)
    open->size = static_cast<int>(ranks / product);
  else if (open != nullptr || product != ranks) {
    return absl::InvalidArgumentError(absl::StrCat("mesh ", Shape(*axes),
                                                   " does not have one place for each of ", ranks,
                                                   " ranks: the product of the sizes must be ", ranks));
  }
  return absl::OkStatus();
}

std::vector<int> Unflatten(int index, const std::vector<MeshAxis>& axes) {
  std::vector<int> coordinates(axes.size());
  for (int i = static_cast<int>(axes.size()) - 1; i >= 0; --i) {
    coordinates[i] = index % axes[i].size;
    index /= axes[i].size;
  }
  return coordinates;
}

}  // namespace

DeviceMesh::DeviceMesh(Communicator world, std::vector<MeshAxis> axes,
                       std::vector<std::vector<int>> coordinates)
    : world_(std::move(world)),
      axes_(std::move(axes)),
      coordinates_(std::move(coordinates)),
      follows_(axes_.size(), false) {}

absl::StatusOr<DeviceMesh> DeviceMesh::Create(const Communicator& world, std::vector<MeshAxis> axes) {
  if (absl::Status names = CheckNames(axes); !names.ok()) return names;
  if (absl::Status sizes = FitSizes(world.size(), &axes); !sizes.ok()) return sizes;
  std::vector<std::vector<int>> coordinates;
  for (int rank = 0; rank < world.size(); ++rank) coordinates.push_back(Unflatten(rank, axes));
  DeviceMesh mesh(world, std::move(axes), std::move(coordinates));
  for (int i = 0; i < static_cast<int>(mesh.axes_.size()); ++i)
    mesh.communicators_.push_back(mesh.MakeAxis(i));
  return mesh;
}

absl::StatusOr<DeviceMesh> DeviceMesh::Fold(const std::vector<std::string>& from,
                                            std::vector<MeshAxis> into) const {
  std::vector<int> sources;
  int ranks = 1;
  for (const std::string& name : from) {
    sources.push_back(IndexOf(name));
    const bool known =
        sources.back() >= 0 && !follows_[sources.back()] && std::count(from.begin(), from.end(), name) == 1;
    if (!known) return absl::InvalidArgumentError("mesh " + Shape(axes_) + ": cannot fold axis " + name);
    ranks *= axes_[sources.back()].size;
  }
  if (sources.empty())
    return absl::InvalidArgumentError("mesh " + Shape(axes_) + ": no axis to fold was given");
  if (absl::Status sizes = FitSizes(ranks, &into); !sizes.ok()) return sizes;

  DeviceMesh view(world_, {}, std::vector<std::vector<int>>(world_.size()));
  std::vector<int> old_index;  // of each axis of the view; -1: new
  for (int i = 0; i < static_cast<int>(axes_.size()); ++i) {
    const bool folded = std::count(sources.begin(), sources.end(), i) > 0;
    if (i == sources.front()) {
      view.axes_.insert(view.axes_.end(), into.begin(), into.end());
      view.follows_.resize(view.axes_.size(), false);
      old_index.insert(old_index.end(), into.size(), -1);
    } else if (!folded) {
      view.axes_.push_back(axes_[i]);
      view.follows_.push_back(follows_[i]);
      old_index.push_back(i);
    }
  }
  if (absl::Status names = CheckNames(view.axes_); !names.ok()) return names;
  for (int rank = 0; rank < world_.size(); ++rank) {
    int flat = 0;
    for (const int source : sources) flat = flat * axes_[source].size + coordinates_[rank][source];
    const std::vector<int> folded = Unflatten(flat, into);
    auto next = folded.begin();
    for (const int old : old_index)
      view.coordinates_[rank].push_back(old < 0 ? *next++ : coordinates_[rank][old]);
  }
  for (int i = 0; i < static_cast<int>(view.axes_.size()); ++i) {
    view.communicators_.push_back(old_index[i] < 0 ? view.MakeAxis(i) : communicators_[old_index[i]]);
  }
  return view;
}

absl::StatusOr<DeviceMesh> DeviceMesh::WithView(const std::vector<std::string>& from,
                                                std::vector<MeshAxis> into) const {
  std::vector<MeshAxis> both = axes_;
  both.insert(both.end(), into.begin(), into.end());
  if (absl::Status names = CheckNames(both); !names.ok()) return names;
  const absl::StatusOr<DeviceMesh> folded = Fold(from, into);
  if (!folded.ok()) return folded.status();
  DeviceMesh view = *this;
  for (const MeshAxis& axis : into) {
    const int index = folded->IndexOf(axis.name);
    view.axes_.push_back(folded->axes_[index]);
    view.follows_.push_back(true);
    view.communicators_.push_back(folded->communicators_[index]);
    for (int rank = 0; rank < world_.size(); ++rank) {
      view.coordinates_[rank].push_back(folded->coordinates_[rank][index]);
    }
  }
  return view;
}

absl::StatusOr<DeviceMesh> DeviceMesh::WithSubset(absl::string_view axis, const std::vector<int>& members,
                                                  const std::string& name) const {
  const int along = IndexOf(axis);
  const auto is_bad = [&](int member) {
    return member < 0 || member >= axes_[along].size ||
           std::count(members.begin(), members.end(), member) > 1;
  };
  if (along < 0 || follows_[along] || Has(name) || std::any_of(members.begin(), members.end(), is_bad)) {
    return absl::InvalidArgumentError(absl::StrCat("mesh ", Shape(axes_), ": cannot make axis ", name,
                                                   " of the coordinates ", absl::StrJoin(members, ", "),
                                                   " of ", axis));
  }
  DeviceMesh view = *this;
  const auto place = [&](int rank) {
    const auto found = std::find(members.begin(), members.end(), coordinates_[rank][along]);
    return found == members.end() ? -1 : static_cast<int>(found - members.begin());
  };
  for (int rank = 0; rank < world_.size(); ++rank)
    view.coordinates_[rank].push_back(std::max(place(rank), 0));
  const int mine = place(world_.rank());
  int color = mine < 0 ? -1 : 0;
  for (int i = 0; mine >= 0 && i < static_cast<int>(axes_.size()); ++i) {
    if (i != along && !follows_[i]) color = color * axes_[i].size + Coordinates()[i];
  }
  view.follows_.push_back(true);
  view.axes_.push_back({name, mine < 0 ? 1 : static_cast<int>(members.size())});
  view.communicators_.push_back(world_.Split(color, mine, name));
  return view;
}

Communicator DeviceMesh::MakeAxis(int index) const {
  // The other coordinates, as one number, are the same for all ranks of the group.
  int color = 0;
  for (int i = 0; i < static_cast<int>(axes_.size()); ++i) {
    if (i != index && !follows_[i]) color = color * axes_[i].size + Coordinates()[i];
  }
  return world_.Split(color, Coordinates()[index], axes_[index].name);
}

int DeviceMesh::IndexOf(absl::string_view name) const {
  const auto found =
      std::find_if(axes_.begin(), axes_.end(), [&](const MeshAxis& axis) { return axis.name == name; });
  return found == axes_.end() ? -1 : static_cast<int>(found - axes_.begin());
}

bool DeviceMesh::Has(absl::string_view name) const { return IndexOf(name) >= 0; }

const Communicator& DeviceMesh::axis(absl::string_view name) const {
  const int index = IndexOf(name);
  PLAIT_CHECK(index >= 0) << "mesh " << Shape(axes_) << " has no axis " << name;
  return communicators_[index];
}

std::string DeviceMesh::Describe() const {
  const auto field = [](int value, int size) {
    const std::string largest = absl::StrCat(size - 1);
    return absl::StrFormat("%*d/%s", static_cast<int>(largest.size()), value, largest);
  };
  std::string text = absl::StrCat("[", field(world_.rank(), world_.size()), "] ");
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    absl::StrAppend(&text, "[", axes_[i].name, ":", field(Coordinates()[i], axes_[i].size), "]");
  }
  return text;
}

}  // namespace plait::comm
