// CIFAR-10 in its binary version (Krizhevsky 2009): 32 x 32 pixels in colour, ten classes, in memory.
//
//   PLAIT_ASSIGN_OR_RETURN(ImageSets sets, ReadCifar10("cifar-10-batches-bin"));
//
//   DIR/data_batch_1.bin ... data_batch_5.bin, test_batch.bin, batches.meta.txt
//
//   a record: 1 byte label (0..9), then 1024 bytes each of red, green and blue, row by row
#ifndef PLAIT_DATA_IMAGES_CIFAR10_H_
#define PLAIT_DATA_IMAGES_CIFAR10_H_

#include <string>

#include "absl/status/statusor.h"
#include "data/images/image_source.h"

namespace plait::data {

inline constexpr std::int64_t kCifarSide = 32;

// Whether the folder, or cifar-10-batches-bin in it, has files data_batch_*.bin or data_batch_*.bin.gz.
bool HasCifar10(const std::string& folder);

// Reads all data_batch_*.bin, in order of their names, for training and test_batch*.bin for testing; each may be
// gzip (.gz). Class names are from batches.meta.txt, else their numbers. NotFound: no such files; DataLoss: a file
// is not a whole number of records, has more than a million, or is damaged; InvalidArgument: a label above 9. Local.
absl::StatusOr<ImageSets> ReadCifar10(const std::string& folder);

}  // namespace plait::data

#endif  // PLAIT_DATA_IMAGES_CIFAR10_H_
