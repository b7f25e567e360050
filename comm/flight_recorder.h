// A ring buffer of the latest calls of this process on its communicators, always on.
//
//   {
//     comm::PhaseScope phase(world, "optimizer");     // reports say in which phase a rank was
//     ...
//   }
//   std::fputs(comm::DescribeCalls(world.recorder()).c_str(), stderr);
//
// prints one line per call, the oldest first:
//
//   #12 all_reduce[tp] f32[180736] at train.cc:88, waiting for 4.1 s, in phase backward
//
// Collectives are numbered per group, the same on all of its ranks. Point-to-point messages are counted separately, per
// group and rank. Recording costs about 0.1 microseconds per call.
#ifndef PLAIT_COMM_FLIGHT_RECORDER_H_
#define PLAIT_COMM_FLIGHT_RECORDER_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <source_location>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "comm/call_fingerprint.h"
#include "comm/operation.h"

namespace plait::comm {

// kInFlight: started, and the program continues. kWaiting: the program is blocked in it.
enum class CallState : std::uint8_t { kInFlight, kWaiting, kComplete };

struct CallRecord {
  std::int64_t id = -1;  // counts the calls of this process
  std::uint64_t group = 0;
  std::int64_t sequence = 0;  // within the group
  Operation operation = Operation::kBarrier;
  ReduceOp reduce = ReduceOp::kSum;
  DataType type = DataType::kUInt8;
  std::int64_t count = 0;
  int root = -1;  // or peer, as a rank of the group
  int tag = kNoTag;
  CallState state = CallState::kComplete;
  double entered_seconds = 0;  // on Now()'s clock
  bool waited = false;         // the program blocked in it, since:
  double waiting_since_seconds = 0;
  double completed_seconds = 0;
  std::string file;
  int line = 0;
  std::string phase;

  CallFingerprint Fingerprint() const;
};

// Seconds for which the program blocked in a complete call: the part of its time that was not overlapped.
inline double ExposedSeconds(const CallRecord& call) {
  return call.waited ? call.completed_seconds - call.waiting_since_seconds : 0;
}

struct RecordedGroup {
  std::string name;
  std::vector<int> members;      // world ranks, by rank of the group
  std::int64_t collectives = 0;  // entered so far
  std::int64_t messages = 0;
};

// "#12 all_reduce[tp] f32[180736]"
std::string DescribeCall(const CallRecord& call, absl::string_view group);

class FlightRecorder {
 public:
  explicit FlightRecorder(int capacity = 512);

  static double Now();  // seconds, monotonic

  void AddGroup(std::uint64_t id, absl::string_view name, std::vector<int> members);
  std::int64_t Enter(std::uint64_t group, const Request& request, const std::source_location& site,
                     CallState state);
  void BeginWait(std::int64_t id);
  void EndWait(std::int64_t id);  // of a call that is in flight from now on
  void Complete(std::int64_t id);
  std::string SetPhase(std::string phase);  // returns the one before

  // This process did not run for that time (SIGSTOP, a scheduler that suspends jobs): it does not count as waiting.
  void NoteSuspension(double seconds);

  // Copies, safe from any thread. The last `capacity` calls, oldest first, and before them an older one in which the
  // program is blocked.
  std::vector<CallRecord> Calls() const;
  std::map<std::uint64_t, RecordedGroup> Groups() const;
  std::string Phase() const;
  // Seconds for which the program has been blocked in its current call; 0 if it is in none.
  double WaitingSeconds() const;

 private:
  struct Entry;
  Entry& Slot(std::int64_t id) { return ring_[id % static_cast<std::int64_t>(ring_.size())]; }
  Entry* Find(std::int64_t id);  // null: newer calls have taken its place
  void Displace(const Entry& entry);

  // File names stay pointers until Calls(), so that recording does not allocate.
  struct Entry {
    CallRecord call;
    const char* file = "";
    int phase = 0;  // index in phases_
  };
  mutable std::mutex mutex_;
  std::vector<Entry> ring_;
  // In flight, though newer calls have taken their places; at most capacity.
  std::map<std::int64_t, Entry> displaced_;
  std::int64_t entered_ = 0;
  std::int64_t waiting_ = -1;
  double waiting_since_seconds_ = 0;
  std::map<std::uint64_t, RecordedGroup> groups_;
  std::vector<std::string> phases_;
  int phase_ = 0;
};

std::string DescribeCalls(const FlightRecorder& recorder);

class Communicator;

// Sets the phase that reports show for this rank until the scope ends; scopes nest.
class PhaseScope {
 public:
  PhaseScope(const Communicator& communicator, absl::string_view phase);
  ~PhaseScope();
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  FlightRecorder& recorder_;
  std::string before_;
};

}  // namespace plait::comm

#endif  // PLAIT_COMM_FLIGHT_RECORDER_H_
