// Raw recordings of the 30 volunteers (accelerometer and gyroscope at 50 Hz, labelled), and the windows cut
// from them as the UCI HAR archive describes.
//
//   PLAIT_ASSIGN_OR_RETURN(Recordings recordings, ReadRecordings(path));    // made by fetch_recordings.py
//   SequenceSet set = WindowsOf(recordings);                               // 7415 + 2996 windows of 128 x 9
//
// File format, little-endian (version 1):
//
//   offset  type     meaning
//        0  char[8]  "PLTHAPT1"
//        8  uint32   version = 1
//       12  uint32   number of recordings R
//       16  uint64   number of rows N, of all recordings
//       24  float64  g per count of the accelerometer (1/720)
//       32  float64  rad/s per count of the gyroscope (0.0175 pi / 180)
//       40  float64  sample rate, Hz (50)
//       48  uint32   CRC-32 (zlib's) of everything from offset 56 on
//       52  uint32   0
//       56  R x { uint32 subject, uint32 number, uint64 rows }
//           N x int16[7]: acc x, y, z; gyro x, y, z; label (-1 none, 1..6 activities, 7..12 transitions)
#ifndef PLAIT_DATA_HAR_RECORDINGS_H_
#define PLAIT_DATA_HAR_RECORDINGS_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "data/sequence_set.h"

namespace plait::data {

struct Recording {
  std::int64_t subject = 0;
  std::array<std::vector<double>, 6> signal;  // acc x, y, z in g; gyro x, y, z in rad/s
  std::vector<std::int16_t> label;
};

struct Recordings {
  double sample_rate_hz = 0;
  std::uint32_t checksum = 0;  // names the content
  std::vector<Recording> all;
};

// NotFound: no such file; DataLoss: another format, version, unit or sample rate, truncated, or a wrong checksum.
// One line.
absl::StatusOr<Recordings> ReadRecordings(const std::string& path);

// The inverse, for tests and other sources. Values are rounded to counts; sample_rate_hz must be 50 for
// ReadRecordings to accept the file. Errors of WriteWholeFile.
absl::Status WriteRecordings(const std::string& path, const Recordings& recordings);

// The nine signals of a recording, in the archive's order (HarChannelNames): each raw channel is filtered by the
// median of three and a causal Butterworth low-pass of order 3 at 20 Hz; body acceleration is the result minus its
// causal low-pass of order 3 at 0.3 Hz (gravity).
std::array<std::vector<double>, 9> HarSignals(const Recording& recording, double sample_rate_hz);

// Windows of 128 rows, every 64, inside each labelled segment 1..6 of each recording, in order; subjects
// split as in the archive: 2, 4, 9, 10, 12, 13, 18, 20 and 24 are the test set. Labels 0..5.
SequenceSet WindowsOf(const Recordings& recordings);

}  // namespace plait::data

#endif  // PLAIT_DATA_HAR_RECORDINGS_H_
