// Lines on standard output, and on a terminal progress bars with the time left.
//
//   Console console(comm.rank() == 0);
//   console.StartBar("epoch 1", batches);
//   console.Update(1);
//   console.Print("Train Epoch: ...");      // above the bar
//   console.StartBar("evaluation", 20);     // takes the place of the first until it is stopped
//   console.StopBar();
//   console.StopBar();
//
// The bar goes to standard error, and only to a terminal (base/terminal.h). Local; ranks other than the one
// that prints stay silent.
#ifndef PLAIT_TOOLS_TRAINING_CONSOLE_H_
#define PLAIT_TOOLS_TRAINING_CONSOLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/progress.h"

namespace plait::training {

class Console {
 public:
  explicit Console(bool prints);

  // `text` and a newline, at once.
  void Print(const std::string& text);

  void StartBar(const std::string& label, std::int64_t total);
  void Update(std::int64_t done);
  void StopBar();

 private:
  bool prints_;
  base::Terminal terminal_;
  std::vector<std::unique_ptr<base::Progress>> bars_;  // the last one is drawn
};

}  // namespace plait::training

#endif  // PLAIT_TOOLS_TRAINING_CONSOLE_H_
