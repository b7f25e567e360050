#include "base/profile.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace plait::base {
namespace {

double SecondsOn(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct Line {
  double seconds;
  std::string label;
  int node;  // -1: no node
};

}  // namespace

ProfileClocks SystemClocks() {
  return {.wall = [] { return SecondsOn(CLOCK_MONOTONIC); },
          .processor = [] { return SecondsOn(CLOCK_PROCESS_CPUTIME_ID); }};
}

Profile::Profile(std::string_view root, ProfileClocks clocks)
    : clocks_(std::move(clocks)), processor_at_start_(clocks_.processor()) {
  nodes_.push_back({.name = root, .entered = 1, .since = clocks_.wall(), .open = true});
}

int Profile::Child(int parent, std::string_view name) const {
  for (const int child : nodes_[parent].children) {
    if (nodes_[child].name == name) return child;
  }
  return -1;
}

Profile::Scope::Scope(Profile& profile, std::string_view name) : profile_(profile) {
  int child = profile.Child(profile.current_, name);
  if (child < 0) {
    child = static_cast<int>(profile.nodes_.size());
    profile.nodes_.push_back({.name = name, .parent = profile.current_});
    profile.nodes_[profile.current_].children.push_back(child);
  }
  Node& node = profile.nodes_[child];
  ++node.entered;
  node.open = true;
  profile.current_ = child;
  node.since = profile.clocks_.wall();
}

Profile::Scope::~Scope() {
  Node& node = profile_.nodes_[profile_.current_];
  node.seconds += profile_.clocks_.wall() - node.since;
  node.open = false;
  profile_.current_ = node.parent;
}

double Profile::Seconds(int node) const {
  const Node& n = nodes_[node];
  return n.seconds + (n.open ? clocks_.wall() - n.since : 0);
}

double Profile::wall_seconds() const { return Seconds(0); }

double Profile::processor_seconds() const { return clocks_.processor() - processor_at_start_; }

double Profile::SecondsOf(std::string_view path) const {
  int node = 0;
  const std::vector<std::string> names = absl::StrSplit(std::string(path), '/');
  for (const std::string& name : names) {
    node = Child(node, name);
    if (node < 0) return 0;
  }
  return Seconds(node);
}

void Profile::Print(int node, const std::string& indent, const TreeStyle& style, std::string& text) const {
  const double least = style.least_share * Seconds(0);
  std::vector<Line> lines;
  double covered = 0, others = 0;
  for (const int child : nodes_[node].children) {
    const double seconds = Seconds(child);
    covered += seconds;
    if (seconds < least) {
      others += seconds;
      continue;
    }
    const std::string times =
        nodes_[child].entered > 1 ? absl::StrCat("  ", nodes_[child].entered, " x") : "";
    lines.push_back({seconds, absl::StrCat(std::string(nodes_[child].name), times), child});
  }
  const double self = Seconds(node) - covered;
  if (!nodes_[node].children.empty() && self >= least) lines.push_back({self, "[self]", -1});
  if (others >= least) lines.push_back({others, "[others]", -1});
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.seconds > b.seconds; });
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool last = i + 1 == lines.size();
    const char* branch = style.utf8 ? (last ? "└─ " : "├─ ") : (last ? "`- " : "|- ");
    absl::StrAppend(&text, indent, branch, absl::StrFormat("%.3f ", lines[i].seconds), lines[i].label, "\n");
    if (lines[i].node < 0) continue;
    Print(lines[i].node, indent + (last ? "   " : style.utf8 ? "│  " : "|  "), style, text);
  }
}

std::string Profile::Tree(const TreeStyle& style) const {
  std::string text = absl::StrFormat("%.3f ", Seconds(0)) + std::string(nodes_[0].name) + "\n";
  Print(0, "", style, text);
  return text;
}

}  // namespace plait::base
