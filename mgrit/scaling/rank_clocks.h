// Simulates the events of all ranks in time. Private to scaling_model.
#ifndef PLAIT_MGRIT_SCALING_RANK_CLOCKS_H_
#define PLAIT_MGRIT_SCALING_RANK_CLOCKS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "mgrit/scaling/scaling_model.h"
#include "mgrit/scaling/work_trace.h"

namespace plait::mgrit::scaling {

class RankClocks {
 public:
  // Seconds of processor time of a kWork event, and bytes of a message or collective.
  using WorkTime = std::function<double(const Event& event)>;
  using Bytes = std::function<double(const Event& event)>;

  RankClocks(const std::vector<RankTrace>& traces, WorkTime work_time, Bytes bytes, double latency_seconds,
             double byte_seconds, const Machine& machine);

  // Returns the seconds until the last rank is done. The program ends if the ranks deadlock.
  double Run();

 private:
  struct Message {
    double available = 0;  // when it can be taken
    bool received = false;
  };
  enum class State { kReady, kComputing, kSleeping, kBlocked, kDone };
  struct Rank {
    State state = State::kReady;
    std::size_t next = 0;  // event
    bool entered = false;  // the event has begun: what follows is its end
    bool waited = false;   // for what the event needs
    double remaining = 0;  // kComputing: processor seconds
    double wake = 0;       // kSleeping
    std::size_t collectives = 0;
    std::map<std::pair<int, int>, std::size_t> last_sent;  // by peer and tag: index in the channel
  };
  struct Channel {
    std::vector<Message> messages;
    std::size_t taken = 0;
  };
  struct Collective {
    int arrived = 0;
    double done = -1;
  };
  using Key = std::tuple<int, int, int>;  // from, to, tag

  // Advances a rank until time has to pass; returns whether anything happened.
  bool Advance(int rank);
  bool Begin(int rank, const Event& event);
  bool SendsAreReceived(int rank, const Event* only);
  bool BeginCollective(int rank, const Event& event);
  void Compute(Rank& rank, double seconds);
  void Sleep(Rank& rank, double until);
  // Additional delay of a rank that waited.
  double HandOver() const;
  void PassTime();

  const std::vector<RankTrace>& traces_;
  WorkTime work_time_;
  Bytes bytes_;
  double latency_;
  double byte_seconds_;
  Machine machine_;
  double now_ = 0;
  std::vector<Rank> ranks_;
  std::map<Key, Channel> channels_;
  std::vector<Collective> collectives_;
};

}  // namespace plait::mgrit::scaling

#endif  // PLAIT_MGRIT_SCALING_RANK_CLOCKS_H_
