#include "tools/device/testing/host_device.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <c10/core/impl/alloc_cpu.h>
#include <torch/library.h>

#include <cstring>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace plait::device::testing {
namespace {

constexpr at::DeviceType kType = at::DeviceType::PrivateUse1;

class Memory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    return {data, data, &c10::free_cpu, at::Device(kType, 0)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &c10::free_cpu; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
};

Memory& MemoryOfDevice() {
  static Memory memory;
  return memory;
}

// Memory of the host that counts as pinned.
class PinnedMemory final : public c10::Allocator {
 public:
  c10::DataPtr allocate(std::size_t bytes) override {
    void* data = c10::alloc_cpu(bytes);
    const std::lock_guard lock(Mutex());
    Blocks().insert(data);
    return {data, data, &Free, at::Device(at::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
  static bool Holds(const at::Tensor& tensor) {
    const std::lock_guard lock(Mutex());
    return Blocks().contains(tensor.storage().data());
  }

 private:
  static std::mutex& Mutex() {
    static std::mutex mutex;
    return mutex;
  }
  static std::set<const void*>& Blocks() {
    static auto& blocks = *new std::set<const void*>();  // longer than every tensor
    return blocks;
  }
  static void Free(void* data) {
    {
      const std::lock_guard lock(Mutex());
      Blocks().erase(data);
    }
    c10::free_cpu(data);
  }
};

class Hooks final : public at::PrivateUse1HooksInterface {
 public:
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(at::DeviceIndex) const override { return true; }
  const at::Generator& getDefaultGenerator(at::DeviceIndex) const override {
    return at::detail::getDefaultCPUGenerator();
  }
  at::Allocator* getPinnedMemoryAllocator() const override {
    static PinnedMemory memory;
    return &memory;
  }
};

// One device with one stream; events complete at once.
class Guard final : public c10::impl::DeviceGuardImplInterface {
 public:
  at::DeviceType type() const override { return kType; }
  at::Device exchangeDevice(at::Device) const override { return {kType, 0}; }
  at::Device getDevice() const override { return {kType, 0}; }
  void setDevice(at::Device) const override {}
  void uncheckedSetDevice(at::Device) const noexcept override {}
  c10::Stream getStream(at::Device) const override { return c10::Stream(c10::Stream::DEFAULT, {kType, 0}); }
  c10::Stream getNewStream(at::Device device, int) const override { return getStream(device); }
  c10::Stream exchangeStream(c10::Stream) const override { return getStream({kType, 0}); }
  at::DeviceIndex deviceCount() const noexcept override { return 1; }
  void record(void**, const c10::Stream&, const at::DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const at::DeviceIndex) const noexcept override {}
  void synchronizeDevice(const at::DeviceIndex) const override { ++TrafficOfHostDevice().synchronized; }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

bool IsOnDevice(const at::Tensor& tensor) { return tensor.device().type() == kType; }

// A tensor of the host in the same memory.
at::Tensor Alias(const at::Tensor& tensor) {
  const at::TensorOptions options = at::TensorOptions(at::kCPU).dtype(tensor.dtype());
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  return at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), options);
}

at::Tensor Empty(at::IntArrayRef sizes, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                 std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(sizes, &MemoryOfDevice(),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}

at::Tensor EmptyStrided(at::IntArrayRef sizes, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(sizes, strides, &MemoryOfDevice(),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           type.value_or(at::kFloat));
}

const at::Tensor& Resize(const at::Tensor& tensor, at::IntArrayRef sizes, std::optional<at::MemoryFormat>) {
  c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  impl->set_sizes_contiguous(sizes);
  const auto elements = static_cast<std::size_t>(impl->storage_offset() + impl->numel());
  const std::size_t bytes = elements * impl->dtype().itemsize();
  const c10::Storage& storage = tensor.storage();
  if (bytes <= storage.nbytes()) return tensor;
  c10::DataPtr larger = MemoryOfDevice().allocate(bytes);
  if (storage.nbytes() > 0) std::memcpy(larger.get(), storage.data(), storage.nbytes());
  storage.set_data_ptr_noswap(std::move(larger));
  storage.set_nbytes(bytes);
  return tensor;
}

// A result of the host's kernels, in the device's memory.
at::Tensor Moved(const at::Tensor& host) {
  if (!host.defined()) return host;
  at::Tensor moved = EmptyStrided(host.sizes(), host.strides(), host.scalar_type(), {}, {}, {});
  Alias(moved).copy_(host);
  return moved;
}

at::Tensor CopyFrom(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  DeviceTraffic& traffic = TrafficOfHostDevice();
  if (!IsOnDevice(to)) ++traffic.to_host;
  if (!IsOnDevice(from)) ++(non_blocking && PinnedMemory::Holds(from) ? traffic.pinned : traffic.pageable);
  (IsOnDevice(to) ? Alias(to) : to).copy_(IsOnDevice(from) ? Alias(from) : from);
  return to;
}

at::Scalar Number(const at::Tensor& tensor) {
  ++TrafficOfHostDevice().to_host;
  return Alias(tensor).item();
}

at::Tensor Convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, at::IntArrayRef stride, at::IntArrayRef padding,
                       at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
                       std::int64_t groups) {
  const bool has_bias = bias.has_value() && bias->defined();
  return Moved(at::convolution(Alias(input), Alias(weight), has_bias ? Alias(*bias) : at::Tensor(), stride,
                               padding, dilation, transposed, output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> ConvolutionBackward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, at::IntArrayRef stride,
    at::IntArrayRef padding, at::IntArrayRef dilation, bool transposed, at::IntArrayRef output_padding,
    std::int64_t groups, std::array<bool, 3> mask) {
  const std::vector<std::int64_t> bias = {weight.size(0)};
  const auto [a, b, c] =
      at::convolution_backward(Alias(gradient), Alias(input), Alias(weight), at::OptionalIntArrayRef(bias),
                               stride, padding, dilation, transposed, output_padding, groups, mask);
  return {Moved(a), Moved(b), Moved(c)};
}

// Every other operator: its CPU kernel on the same memory.
class HostCall {
 public:
  explicit HostCall(const c10::OperatorHandle& op) : op_(op) {}

  void Run(torch::jit::Stack& stack) {
    const std::vector<c10::Argument>& arguments = op_.schema().arguments();
    c10::IValue* values = stack.data() + (stack.size() - arguments.size());
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      values[i] =
          arguments[i].is_out() && values[i].isTensor() ? Out(values[i].toTensor()) : OnHost(values[i]);
    }
    op_.callBoxed(&stack);
    const std::size_t results = op_.schema().returns().size();
    for (std::size_t i = stack.size() - results; i < stack.size(); ++i) stack[i] = OnDevice(stack[i]);
  }

 private:
  // An output, which the operator may resize.
  at::Tensor Out(const at::Tensor& tensor) {
    aliases_.emplace_back(tensor, Alias(tensor).clone());
    return aliases_.back().second;
  }
  at::Tensor OnHost(const at::Tensor& tensor) {
    if (!tensor.defined() || (tensor.is_cpu() && tensor.dim() == 0)) return tensor;
    TORCH_CHECK(IsOnDevice(tensor), op_.schema().name(), " gets tensors of ", tensor.device(),
                " and of the device");
    aliases_.emplace_back(tensor, Alias(tensor));
    return aliases_.back().second;
  }
  c10::IValue OnHost(const c10::IValue& value) {
    if (value.isTensor()) return OnHost(value.toTensor());
    if (value.isDevice() && value.toDevice().type() == kType) return at::Device(at::kCPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> list;
      for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(OnHost(tensor));
      return list;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> list;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        list.push_back(tensor.has_value() ? std::optional<at::Tensor>(OnHost(*tensor)) : std::nullopt);
      }
      return list;
    }
    return value;
  }

  at::Tensor OnDevice(const at::Tensor& tensor) {
    for (const auto& [original, alias] : aliases_) {
      if (tensor.is_same(alias)) {
        if (original.sizes() != alias.sizes()) Resize(original, alias.sizes(), std::nullopt);
        if (original.numel() > 0 && original.const_data_ptr() != alias.const_data_ptr()) {
          Alias(original).copy_(alias);
        }
        return original;
      }
      TORCH_CHECK(!tensor.defined() || tensor.numel() == 0 || !tensor.is_alias_of(alias), op_.schema().name(),
                  " gives a view");
    }
    return Moved(tensor);
  }
  c10::IValue OnDevice(const c10::IValue& value) {
    if (value.isTensor()) return OnDevice(value.toTensor());
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> list;
    for (const at::Tensor& tensor : value.toTensorVector()) list.push_back(OnDevice(tensor));
    return list;
  }

  const c10::OperatorHandle& op_;
  std::vector<std::pair<at::Tensor, at::Tensor>> aliases_;
};

void CallOnHost(const c10::OperatorHandle& op, torch::jit::Stack* stack) { HostCall(op).Run(*stack); }

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&CallOnHost>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &Empty);
  m.impl("empty_strided", &EmptyStrided);
  m.impl("as_strided", &at::native::as_strided_tensorimpl);
  m.impl("view", &at::native::view);
  m.impl("resize_", &Resize);
  m.impl("_reshape_alias", &at::native::_reshape_alias);
  m.impl("_copy_from", &CopyFrom);
  m.impl("_local_scalar_dense", &Number);
  m.impl("convolution_overrideable", &Convolution);
  m.impl("convolution_backward_overrideable", &ConvolutionBackward);
}

}  // namespace

DeviceTraffic& TrafficOfHostDevice() {
  static DeviceTraffic traffic;
  return traffic;
}

at::Device HostDevice() {
  static const bool registered = [] {
    static Hooks hooks;
    c10::register_privateuse1_backend("hostdevice");
    c10::SetAllocator(kType, &MemoryOfDevice());
    at::RegisterPrivateUse1HooksInterface(&hooks);
    return true;
  }();
  return registered ? at::Device(kType, 0) : at::Device(at::kCPU);
}

}  // namespace plait::device::testing
