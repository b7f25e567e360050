// The interface of a transport: run or start one request, and split. Everything else (argument checks, recording,
// Agree) is in Communicator and Group, for all backends. Private to comm.
#ifndef PLAIT_COMM_BACKEND_H_
#define PLAIT_COMM_BACKEND_H_

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "comm/operation.h"

namespace plait::comm {

class FlightRecorder;

// An operation in flight in a backend. The owner must not destroy it before it is complete.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  virtual bool Test() = 0;  // advances the operation; true once complete
  virtual void Wait() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Device device() const { return Device::kCpu; }
  // Whether buffers may have a size but no memory, as meta tensors do (comm/counting).
  virtual bool takes_meta() const { return false; }
  // World ranks of the members, in the order of the group.
  virtual std::vector<int> members() const = 0;

  // Requests have been checked (comm/request_check.h); counts may be 0. Throw TransportError.
  virtual void Run(const Request& request) = 0;
  virtual std::unique_ptr<PendingWork> Start(const Request& request) = 0;
  // Advances the operations in flight of this backend and of those that share its session, without blocking.
  virtual void Advance() {}
  // Collective. Null for a negative color.
  virtual std::unique_ptr<Backend> Split(int color, int key) = 0;
  // The same, for backends that need the group's name.
  virtual std::unique_ptr<Backend> SplitNamed(int color, int key, std::string_view) {
    return Split(color, key);
  }
};

// Makes the device transport for the ranks of `host`. Collective over `host`. Throws TransportError.
using DeviceBackendFactory = std::function<std::unique_ptr<Backend>(Backend& host, int device_index)>;

}  // namespace plait::comm

#endif  // PLAIT_COMM_BACKEND_H_
