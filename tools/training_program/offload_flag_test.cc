#include "tools/training_program/offload_flag.h"

#include <gtest/gtest.h>

namespace plait::training_program {
namespace {

using parallel::Strategy;

TEST(OffloadFlag, NoneIsMemory) {
  EXPECT_EQ(OffloadFolder("none"), "");
  EXPECT_EQ(OffloadFolder("/nvme/job"), "/nvme/job");
  EXPECT_EQ(StatePlaceOf({}).place, parallel::StatePlace::kMemory);
  EXPECT_EQ(StatePlaceOf({.folder = "/nvme/job"}).place, parallel::StatePlace::kFile);
  EXPECT_EQ(StatePlaceOf({.folder = "/nvme/job"}).folder, "/nvme/job");
}

TEST(OffloadFlag, ParametersNeedAFolderAndShares) {
  for (const Strategy strategy : {Strategy::kDdp, Strategy::kZero1, Strategy::kZero2, Strategy::kFsdp}) {
    EXPECT_TRUE(CheckOffload({.folder = "/nvme/job"}, strategy).ok());
    EXPECT_EQ(CheckOffload({.folder = "/nvme/job", .parameters = true}, strategy).ok(),
              strategy == Strategy::kFsdp);
  }
  EXPECT_EQ(CheckOffload({.parameters = true}, Strategy::kFsdp).message(),
            "--offload-params: say into which folder, with --offload=FOLDER");
  EXPECT_EQ(CheckOffload({.folder = "/nvme/job", .parameters = true}, Strategy::kZero2).message(),
            "--offload-params: zero2 keeps the parameters whole on every rank; expected --strategy=fsdp");
}

}  // namespace
}  // namespace plait::training_program
