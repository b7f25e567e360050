// The test of a network: every test sample once, whatever the ranks.
#ifndef PLAIT_TOOLS_CNN_TRAINING_EVALUATION_H_
#define PLAIT_TOOLS_CNN_TRAINING_EVALUATION_H_

#include <cstdint>

#include "comm/communicator.h"
#include "tools/cnn_training/images.h"
#include "tools/cnn_training/sharded_cnn.h"

namespace plait::cnn_training {

struct TestResult {
  double loss = 0;  // mean negative log-likelihood
  std::int64_t correct = 0, samples = 0;
  double accuracy() const { return 100.0 * static_cast<double>(correct) / static_cast<double>(samples); }
};

// Collective; the same result on all ranks. Without dropout. Each pass takes `batch_size` samples a rank, in
// the order of the file; in the last one ranks have what there is, perhaps nothing.
TestResult Test(ShardedCnn& net, const Images& images, std::int64_t batch_size, at::ScalarType type,
                const comm::Communicator& world);

}  // namespace plait::cnn_training

#endif  // PLAIT_TOOLS_CNN_TRAINING_EVALUATION_H_
