// The state behind a Communicator, shared by its copies: transport, name, and where calls are recorded. Private
// to comm.
#ifndef PLAIT_COMM_GROUP_H_
#define PLAIT_COMM_GROUP_H_

#include <cstdint>
#include <memory>
#include <source_location>
#include <string>

#include "absl/strings/string_view.h"
#include "comm/backend.h"
#include "comm/flight_recorder.h"
#include "comm/stats.h"

namespace plait::comm {

// One per session, or per Communicator::Self().
struct Journal {
  explicit Journal(int capacity = 512) : recorder(capacity) {}
  FlightRecorder recorder;
  Stats stats;
  DeviceBackendFactory device_backend;  // may be empty
};

class Group {
 public:
  // `id` is the same on all members, and different for different groups of a process.
  Group(std::unique_ptr<Backend> backend, std::string name, std::uint64_t id,
        std::shared_ptr<Journal> journal);

  Backend& backend() const { return *backend_; }
  const std::string& name() const { return name_; }
  Journal& journal() const { return *journal_; }

  void Run(const Request& request, const std::source_location& site);
  std::unique_ptr<PendingWork> Start(const Request& request, const std::source_location& site);
  // Null without a device backend. Collective at its first call.
  std::shared_ptr<Group> OnCuda(int device_index, const std::source_location& site);
  std::shared_ptr<Group> Split(int color, int key, absl::string_view name, const std::source_location& site);

 private:
  void Check(const Request& request) const;
  OperationStats& Count(const Request& request);

  std::unique_ptr<Backend> backend_;
  std::string name_;
  std::uint64_t id_;
  std::shared_ptr<Journal> journal_;
  AxisStats* stats_;
  std::uint64_t splits_ = 0;
  std::shared_ptr<Group> on_cuda_;
};

inline constexpr std::uint64_t kWorldGroup = 1;

// The group that all others of a process are split from.
std::shared_ptr<Group> MakeWorldGroup(std::unique_ptr<Backend> backend, std::string name,
                                      std::shared_ptr<Journal> journal);

}  // namespace plait::comm

#endif  // PLAIT_COMM_GROUP_H_
