// Flags of a program, each bound once to a variable, in the groups of its help.
//
//   SettingsTable table;
//   table.Group("Training");
//   table.Add("gamma", &settings.gamma, "factor of the learning rate per epoch", OnResume::kAdopt);
//   base::ParseFlagsOrExit(argc, argv, table.Usage("train_cnn", "Trains a convolutional network.", {}));
//
// Local.
#ifndef PLAIT_TOOLS_TRAINING_SETTINGS_TABLE_H_
#define PLAIT_TOOLS_TRAINING_SETTINGS_TABLE_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/flags.h"

namespace plait::training {

// What a resumed run does where the checkpoint's run had another value. Where the flag is not given, kSame
// and kAdopt take the checkpoint's.
enum class OnResume {
  kSame,   // it shapes the model, its arithmetic or the order of the data: an error
  kAdopt,  // goes on with the new value, and says so
  kFree,   // goes on: places, ranks, memory, what is printed
};

using NamedValues = std::map<std::string, std::string>;

class SettingsTable {
 public:
  // Flags that are added from now on belong to this group of the help.
  void Group(const std::string& title);
  // `value` outlives the table; what it is now is the default. `old_name`: still accepted.
  void Add(const std::string& name, base::BoundFlag::Value value, const std::string& help,
           OnResume on_resume = OnResume::kFree, const std::string& old_name = "");

  // Refers to the table.
  base::ToolUsage Usage(const std::string& program, const std::string& summary,
                        const std::vector<std::string>& examples);
  // InvalidArgument "--NAME=TEXT: expected ..."; nothing where the user gave the flag.
  absl::Status SetDefault(const std::string& name, const std::string& text);
  // Whether the user gave the flag.
  bool Given(const std::string& name) const;
  // Lines of a flag file (base/flags.h): flags that the user gave or that differ from their defaults. `places` are
  // commented out.
  std::string FlagFile(const std::vector<std::string>& places) const;
  // All values by name.
  NamedValues Values() const;
  // Those that a checkpoint keeps: all but kFree.
  NamedValues Kept() const;
  // Takes over what a checkpoint has kept, for flags that were not given. InvalidArgument "NAME is X there
  // and Y here" for the first given kSame one that differs. `changes`: "NAME X -> Y" of given kAdopt ones.
  // Names that `kept` lacks stay as they are.
  absl::Status Adopt(const NamedValues& kept, std::vector<std::string>* changes);

 private:
  std::vector<base::BoundFlag> flags_;
  std::vector<OnResume> on_resume_;    // by flag
  std::vector<std::string> defaults_;  // by flag
  std::vector<base::FlagGroup> groups_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SETTINGS_TABLE_H_
