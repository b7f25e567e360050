// What a run says and keeps of its steps:
//
//   iter=0 loss=10.863029 dt=12.088833 dtf=11.562250 dtb=0.526583
//
// iter counts from 0, dt = dtf + dtb: forward passes, and backward passes with reductions and optimizer, of
// rank 0. Behind that mfu where a peak is known, train_loss and val_loss where they were estimated. The history
// has iter, loss, dt, dtf and dtb; of a text train_loss and val_loss, too. Local.
#ifndef PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_
#define PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_

#include "tools/text_training/text_task.h"

namespace plait::llama_training {

text_training::StepOutput LlamaOutput(bool of_text);

}  // namespace plait::llama_training

#endif  // PLAIT_TOOLS_LLAMA_TRAINING_STEP_OUTPUT_H_
