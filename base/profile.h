// Where a program's time goes: nested scopes, summed up into a tree.
//
//   Profile profile("main");
//   {
//     Profile::Scope step(profile, "step");
//     { Profile::Scope forward(profile, "forward"); ... }
//   }
//   std::fputs(profile.Tree({}).c_str(), stdout);
//
//   2.946 main
//   ├─ 2.043 set-up
//   └─ 0.903 step  100 x
//      ├─ 0.326 forward  100 x
//      └─ 0.577 [self]
//
// Each line has the total seconds, the name and, above 1, the number of calls; children are sorted by time, and [self]
// is the time in no child. A scope costs two clock reads and a look-up among its siblings. Not thread-safe; scopes must
// be nested. Names must outlive the profile (string literals).
#ifndef PLAIT_BASE_PROFILE_H_
#define PLAIT_BASE_PROFILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace plait::base {

struct TreeStyle {
  double least_share = 0.01;  // of the total: smaller nodes are summed up in "[others]"
  bool utf8 = true;           // ASCII branches otherwise
};

// Seconds since an arbitrary origin: wall-clock time, and CPU time of all threads of this process.
struct ProfileClocks {
  std::function<double()> wall;
  std::function<double()> processor;
};
ProfileClocks SystemClocks();

class Profile {
 public:
  // The root's clock starts here.
  explicit Profile(std::string_view root, ProfileClocks clocks = SystemClocks());

  class Scope {
   public:
    Scope(Profile& profile, std::string_view name);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Profile& profile_;
  };

  // Wall-clock and CPU seconds since construction; CPU time is summed over all threads.
  double wall_seconds() const;
  double processor_seconds() const;

  // Seconds in a path below the root, such as "step/forward"; 0 if it was never entered. Open scopes count up to now.
  double SecondsOf(std::string_view path) const;

  // One node per line, as above.
  std::string Tree(const TreeStyle& style) const;

 private:
  struct Node {
    std::string_view name;
    int parent = -1;
    std::vector<int> children = {};
    std::int64_t entered = 0;
    double seconds = 0;
    double since = 0;
    bool open = false;
  };
  int Child(int parent, std::string_view name) const;
  double Seconds(int node) const;
  void Print(int node, const std::string& indent, const TreeStyle& style, std::string& text) const;

  ProfileClocks clocks_;
  std::vector<Node> nodes_;
  int current_ = 0;
  double processor_at_start_ = 0;
};

}  // namespace plait::base

#endif  // PLAIT_BASE_PROFILE_H_
