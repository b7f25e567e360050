// What the user sees: lines on standard output, and on a terminal a progress bar with the time left.
//
//   Console console(comm.rank() == 0);
//   console.StartBar("epoch 1", batches);
//   console.Update(1);
//   console.Print("Train Epoch: ...");      // above the bar
//   console.StopBar();
//
// The bar goes to standard error, and only to a terminal (base/terminal.h). Local; ranks other than the one
// that speaks stay silent.
#ifndef PLAIT_TOOLS_GRU_TRAINING_CONSOLE_H_
#define PLAIT_TOOLS_GRU_TRAINING_CONSOLE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "base/progress.h"

namespace plait::gru_training {

class Console {
 public:
  explicit Console(bool speaks);

  // `text` and a newline, at once.
  void Print(const std::string& text);

  void StartBar(const std::string& label, std::int64_t total);
  void Update(std::int64_t done);
  void StopBar();

 private:
  bool speaks_;
  base::Terminal terminal_;
  std::unique_ptr<base::Progress> bar_;
};

}  // namespace plait::gru_training

#endif  // PLAIT_TOOLS_GRU_TRAINING_CONSOLE_H_
