#include "base/testing/power_loss.h"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/check.h"
#include "base/path.h"
#include "base/seed.h"

namespace plait::base::testing {
namespace {

namespace fs = std::filesystem;
using Kind = FileOperation::Kind;

constexpr int kNone = -1;

// An inode: a file or a directory.
struct Node {
  bool is_folder = false;
  std::map<std::string, int> entries = {};  // of a folder: nodes by name
  std::string content = {};                 // of a file
};
using Disk = std::vector<Node>;  // [0] is the recorded folder

// A change of one node, which reaches the disk entirely or not at all (of a write, possibly half).
struct Change {
  int node = 0;
  std::map<std::string, int> entries = {};  // of a folder: kNone removes the name
  std::size_t size = 0, begin = 0;          // of a file: its size then, and where `bytes` go
  std::string bytes = {};
  std::string what = {};  // for messages
  int operation = 0;      // its number, from 0
};

void Apply(const Change& change, Disk& disk, bool half = false) {
  Node& node = disk[change.node];
  for (const auto& [name, entry] : change.entries) {
    if (entry == kNone) {
      node.entries.erase(name);
    } else {
      node.entries[name] = entry;
    }
  }
  if (node.is_folder) return;
  const std::string bytes = half ? change.bytes.substr(0, change.bytes.size() / 2) : change.bytes;
  node.content.resize(std::max(change.size, change.begin + bytes.size()));
  node.content.replace(change.begin, bytes.size(), bytes);
}

// Appends the folder's tree; returns its node.
int ReadTree(const fs::path& folder, Disk& disk) {
  const int node = static_cast<int>(disk.size());
  disk.push_back({.is_folder = true});
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    const int child = static_cast<int>(disk.size());
    if (entry.is_directory()) {
      ReadTree(entry.path(), disk);
    } else {
      std::ifstream file(entry.path(), std::ios::binary);
      disk.push_back({.content = std::string(std::istreambuf_iterator<char>(file), {})});
    }
    disk[node].entries[entry.path().filename().string()] = child;
  }
  return node;
}

void WriteTree(const Disk& disk, int node, const std::string& path) {
  if (!disk[node].is_folder) {
    std::ofstream(path, std::ios::binary) << disk[node].content;
    return;
  }
  fs::create_directory(path);
  for (const auto& [name, entry] : disk[node].entries) WriteTree(disk, entry, path + "/" + name);
}

// The tree as text; equal for trees that a reader cannot distinguish.
std::string TextOf(const Disk& disk, int node = 0) {
  if (!disk[node].is_folder) return absl::StrCat("f", disk[node].content.size(), ":", disk[node].content);
  std::string text = "d(";
  for (const auto& [name, entry] : disk[node].entries) absl::StrAppend(&text, name, "/", TextOf(disk, entry));
  return text + ")";
}

// The files as the running program sees them: turns operations on paths into changes of nodes.
class Live {
 public:
  explicit Live(Disk disk) : disk_(std::move(disk)) {}

  // The node at `path`; kNone if there is none.
  int Find(const std::string& path) const;
  // Applies the operation. False if it changes nothing.
  bool Do(const FileOperation& operation, Change& change);
  const Disk& disk() const { return disk_; }

 private:
  int New(bool is_folder) {
    disk_.push_back({.is_folder = is_folder});
    return static_cast<int>(disk_.size()) - 1;
  }
  Change OfNames(const FileOperation& operation);
  Change OfContent(const FileOperation& operation) const;

  Disk disk_;
};

int Live::Find(const std::string& path) const {
  int node = 0;
  for (const fs::path& name : fs::path(path)) {
    const auto found = disk_[node].entries.find(name.string());
    if (found == disk_[node].entries.end()) return kNone;
    node = found->second;
  }
  return node;
}

Change Live::OfNames(const FileOperation& operation) {
  const fs::path path(operation.path), to(operation.to);
  const bool two = !operation.to.empty();
  PLAIT_CHECK(!two || path.parent_path() == to.parent_path()) << Describe(operation) << ": between folders";
  Change change{.node = Find(path.parent_path().string())};
  PLAIT_CHECK(change.node != kNone) << Describe(operation) << ": no such folder known";
  const std::string name = path.filename().string(), other = to.filename().string();
  switch (operation.kind) {
    case Kind::kMakeFile:
      change.entries[name] = New(false);
      break;
    case Kind::kMakeFolder:
      change.entries[name] = New(true);
      break;
    case Kind::kLink:
      change.entries[other] = Find(operation.path);
      break;
    case Kind::kExchange:
      change.entries = {{name, Find(operation.to)}, {other, Find(operation.path)}};
      break;
    case Kind::kRename:
      change.entries = {{name, kNone}, {other, Find(operation.path)}};
      break;
    default:
      change.entries[name] = kNone;
  }
  return change;
}

Change Live::OfContent(const FileOperation& operation) const {
  const int node = Find(operation.path);
  PLAIT_CHECK(node != kNone) << Describe(operation) << ": not known";
  const std::string &before = disk_[node].content, &after = operation.content;
  const std::size_t common = std::min(before.size(), after.size());
  const std::size_t begin =
      std::mismatch(before.begin(), before.begin() + common, after.begin()).first - before.begin();
  std::size_t end = after.size();
  while (after.size() == before.size() && end > begin && before[end - 1] == after[end - 1]) --end;
  return {.node = node, .size = after.size(), .begin = begin, .bytes = after.substr(begin, end - begin)};
}

bool Live::Do(const FileOperation& operation, Change& change) {
  if (operation.kind == Kind::kMakeFile && Find(operation.path) != kNone) return false;
  const bool of_content = operation.kind == Kind::kContent;
  change = of_content ? OfContent(operation) : OfNames(operation);
  if (of_content && change.bytes.empty() && change.size == disk_[change.node].content.size()) return false;
  change.what = Describe(operation);
  Apply(change, disk_);
  return true;
}

bool Share(const Change& a, const Change& b) {
  return a.node == b.node && std::any_of(a.entries.begin(), a.entries.end(),
                                         [&](const auto& entry) { return b.entries.contains(entry.first); });
}

// Which of the pending changes reach the disk.
using Choice = std::vector<bool>;

// Drops changes of a name whose earlier changes are not chosen.
Choice Possible(const std::vector<Change>& pending, Choice choice) {
  for (std::size_t later = 0; later < pending.size(); ++later) {
    for (std::size_t i = 0; i < later; ++i) {
      if (!choice[i] && Share(pending[i], pending[later])) choice[later] = false;
    }
  }
  return choice;
}

// One change, with the earlier ones of the same names.
Choice Alone(const std::vector<Change>& pending, std::size_t chosen) {
  Choice choice(pending.size(), false);
  choice[chosen] = true;
  for (std::size_t later = chosen + 1; later-- > 0;) {
    for (std::size_t i = 0; i < later && choice[later]; ++i) {
      if (Share(pending[i], pending[later])) choice[i] = true;
    }
  }
  return choice;
}

std::set<Choice> Choices(const std::vector<Change>& pending, RandomStream& draw) {
  constexpr std::size_t kAllOf = 5;
  constexpr int kRandom = 16;
  const std::size_t count = pending.size();
  std::set<Choice> choices;
  const auto add = [&](const std::function<bool(std::size_t)>& chosen) {
    Choice choice(count);
    for (std::size_t i = 0; i < count; ++i) choice[i] = chosen(i);
    choices.insert(Possible(pending, std::move(choice)));
  };
  if (count <= kAllOf) {
    for (std::size_t bits = 0; bits < std::size_t{1} << count; ++bits)
      add([&](std::size_t i) { return (bits >> i & 1) != 0; });
    return choices;
  }
  for (std::size_t k = 0; k <= count; ++k) add([&](std::size_t i) { return i < k; });
  for (std::size_t k = 0; k < count; ++k) add([&](std::size_t i) { return i != k; });
  for (std::size_t k = 0; k < count; ++k) choices.insert(Alone(pending, k));
  for (int i = 0; i < kRandom; ++i) add([&](std::size_t) { return draw.Below(2) == 1; });
  return choices;
}

// The durable state while the program runs, and the checks of what a power loss leaves.
class Cuts {
 public:
  Cuts(Disk disk, std::string scratch, const AfterPowerLoss& check)
      : safe_(std::move(disk)), scratch_(std::move(scratch)), check_(check) {}

  void Add(const Change& change) { pending_.push_back(change); }
  // Makes the changes of a node by operations before number `covers` durable.
  void Sync(int node, int covers);
  // Simulates a power loss after this operation.
  void Cut(const FileOperation& last, const Disk& live, int mark, PowerLossReport& report);

 private:
  void CheckOne(const Choice& choice, bool halves, const std::string& where, int mark,
                PowerLossReport& report);

  Disk safe_;  // what is certainly on the disk
  std::vector<Change> pending_;
  std::string scratch_;
  const AfterPowerLoss& check_;
  std::set<std::string> seen_;
  RandomStream draw_{DeriveSeed(1, "power loss")};
};

void Cuts::Sync(int node, int covers) {
  const auto synced = [&](const Change& change) { return change.node == node && change.operation < covers; };
  for (const Change& change : pending_) {
    if (synced(change)) Apply(change, safe_);
  }
  std::erase_if(pending_, synced);
}

void Cuts::Cut(const FileOperation& last, const Disk& live, int mark, PowerLossReport& report) {
  for (std::size_t node = safe_.size(); node < live.size(); ++node)
    safe_.push_back({.is_folder = live[node].is_folder});
  const std::string where = absl::StrCat("after ", report.operations, ", ", Describe(last));
  for (const Choice& choice : Choices(pending_, draw_)) {
    CheckOne(choice, false, where, mark, report);
    CheckOne(choice, true, where, mark, report);
  }
}

void Cuts::CheckOne(const Choice& choice, bool halves, const std::string& where, int mark,
                    PowerLossReport& report) {
  Disk disk = safe_;
  std::vector<std::string> lost;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const bool half = halves && pending_[i].entries.empty() && draw_.Below(2) == 1;
    if (choice[i]) Apply(pending_[i], disk, half);
    if (!choice[i] || half) lost.push_back(pending_[i].what);
  }
  if (!seen_.insert(absl::StrCat(mark, TextOf(disk))).second) return;
  RemoveTree(scratch_);
  WriteTree(disk, 0, scratch_);
  ++report.states;
  const std::string wrong = check_(scratch_, mark);
  if (!wrong.empty())
    report.faults.push_back(absl::StrCat(where, ", without [", absl::StrJoin(lost, ", "), "]: ", wrong));
}

}  // namespace

PowerLossReport LosePower(const std::string& folder, const std::function<bool(const Mark&)>& body,
                          const AfterPowerLoss& check) {
  Disk before, after;
  ReadTree(folder, before);
  const std::vector<FileOperation> operations = RecordFileOperations(folder, body);
  Live live(before);
  Cuts cuts(std::move(before), folder + ".after", check);
  PowerLossReport report;
  int mark = 0;
  for (const FileOperation& operation : operations) {
    const int number = report.operations++;
    Change change;
    if (operation.kind == Kind::kMark) {
      mark = operation.mark;
    } else if (operation.kind == Kind::kSync) {
      if (const int node = live.Find(operation.path); node != kNone) cuts.Sync(node, operation.covers);
    } else if (live.Do(operation, change)) {
      change.operation = number;
      cuts.Add(change);
    }
    cuts.Cut(operation, live.disk(), mark, report);
  }
  ReadTree(folder, after);
  PLAIT_CHECK(TextOf(after) == TextOf(live.disk()))
      << "operations on " << folder << " that were not recorded";
  RemoveTree(folder + ".after");
  return report;
}

}  // namespace plait::base::testing
