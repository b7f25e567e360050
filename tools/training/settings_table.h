// The flags of a program, each bound to a variable, in groups for --help.
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
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/flags.h"

namespace plait::training {

// What a resumed run does if a flag is given with another value than in the checkpoint. If the flag is not given, all but
// kFree take the checkpoint's value.
enum class OnResume {
  kSame,    // INVALID_ARGUMENT: the flag shapes the model, its arithmetic or the order of the data
  kPreset,  // the same, of a flag that other flags' defaults depend on
  kAdopt,   // uses the new value and prints the change
  kFree,    // uses the new value; not kept in checkpoints: directories, ranks, memory, what is printed
};

using NamedValues = std::map<std::string, std::string>;

class SettingsTable {
 public:
  // Starts a group of --help: flags added from now on belong to it. Must be called before Add.
  void Group(const std::string& title);
  // `value` must outlive the table; its present value is the default. `old_name` is accepted as an alias.
  void Add(const std::string& name, base::BoundFlag::Value value, const std::string& help,
           OnResume on_resume = OnResume::kFree, const std::string& old_name = "");

  // The result refers to the table, which must outlive it.
  base::ToolUsage Usage(const std::string& program, const std::string& summary,
                        const std::vector<std::string>& examples);
  // Sets the flag from text unless the user gave it: its default from now on. INVALID_ARGUMENT "--NAME=TEXT: expected ...".
  absl::Status SetDefault(const std::string& name, const std::string& text);
  // The same for what another flag of the user implies: a resumed run does not take its checkpoint's value.
  absl::Status SetImplied(const std::string& name, const std::string& text);
  // Whether the user gave the flag.
  bool Given(const std::string& name) const;
  // INVALID_ARGUMENT "--NAME=X: expected Y, or leave it out" for the first flag that the user gave another value X than
  // it has now, Y. `before`: Values() before.
  absl::Status CheckUnchanged(const NamedValues& before) const;
  // INVALID_ARGUMENT "--NAME: expected --USED" for the first flag that the user gave and that begins with `prefix`.
  absl::Status CheckNoneGiven(const std::string& prefix, const std::string& used) const;
  // Lines of a flag file (base/flags.h): all flags that the user gave or that differ from their defaults; of a resumed
  // run also flags given before whose defaults other flags choose. Flags named in `places` are commented out, those in
  // `derived`, whose values follow from other flags, left out unless the user gave them.
  std::string FlagFile(const std::vector<std::string>& places,
                       const std::vector<std::string>& derived = {}) const;
  // All values by name.
  NamedValues Values() const;
  // The values that a checkpoint keeps: all but kFree, and presets that AdoptPresets has not found; as "given", which is
  // no flag's name, the names of flags that the user gave and whose defaults other flags choose, for FlagFile.
  NamedValues Kept() const;
  // Sets flags that were not given to the values `kept` by a checkpoint; flags that `kept` lacks are unchanged. Appends
  // "NAME X -> Y" to `changes` for each kAdopt flag given with another value. INVALID_ARGUMENT "NAME is X there and Y
  // here" for the first kSame or kPreset flag given with another value.
  absl::Status Adopt(const NamedValues& kept, std::vector<std::string>* changes);
  // The same for flags of kPreset alone. Defaults can then be chosen again, before Adopt.
  absl::Status AdoptPresets(const NamedValues& kept);

 private:
  absl::Status AdoptOne(std::size_t index, const NamedValues& kept, std::vector<std::string>* changes);

  std::vector<base::BoundFlag> flags_;
  std::vector<OnResume> on_resume_;     // by flag
  std::vector<std::string> defaults_;   // by flag
  std::set<std::size_t> unknown_;       // presets of a checkpoint of an earlier version, which has none
  std::set<std::string> chosen_;        // flags whose defaults ChooseDefaults sets
  std::set<std::string> given_before_;  // by the user of the checkpoint's run, of such flags
  std::vector<base::FlagGroup> groups_;
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_SETTINGS_TABLE_H_
