// What a transport has to offer: run or start one request, and split. Everything else (checks of arguments,
// the recording, Agree) is in Communicator, once for all backends. Private to comm.
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

// An operation under way in a backend. Destroying it incomplete is the owner's fault.
class PendingWork {
 public:
  virtual ~PendingWork() = default;
  virtual bool Test() = 0;  // moves the operation on; true once complete
  virtual void Wait() = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual Device device() const { return Device::kCpu; }
  // Whether buffers may have a size and no memory (comm/counting).
  virtual bool takes_meta() const { return false; }
  // World ranks of the members, in the order of the group.
  virtual std::vector<int> members() const = 0;

  // Requests come checked: counts, root and types are right, empty ones included. Throw TransportError.
  virtual void Run(const Request& request) = 0;
  virtual std::unique_ptr<PendingWork> Start(const Request& request) = 0;
  // Collective. Null for a negative color.
  virtual std::unique_ptr<Backend> Split(int color, int key) = 0;
  // The same, for who knows its groups by name.
  virtual std::unique_ptr<Backend> SplitNamed(int color, int key, std::string_view) {
    return Split(color, key);
  }
};

// Makes the transport between the devices of the ranks that `host` joins. Collective. Throws TransportError.
using DeviceBackendFactory = std::function<std::unique_ptr<Backend>(Backend& host, int device_index)>;

}  // namespace plait::comm

#endif  // PLAIT_COMM_BACKEND_H_
