#include "models/rowwise/cuda/cross_entropy.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cassert>
#include <cfloat>

namespace plait::rowwise::cuda {
namespace {

constexpr int kWarp = 32;
constexpr int kMostThreads = 512;
constexpr int kVectorBytes = 16;

template <typename T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <typename T>
struct alignas(kVectorBytes) Vector {
  T values[kLanes<T>];
};

__device__ float ToFloat(float x) { return x; }
__device__ float ToFloat(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ float ToFloat(__half x) { return __half2float(x); }

template <typename T>
__device__ T FromFloat(float x);
template <>
__device__ float FromFloat<float>(float x) {
  return x;
}
template <>
__device__ __nv_bfloat16 FromFloat<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __half FromFloat<__half>(float x) {
  return __float2half_rn(x);
}

// kLanes numbers from `from` on, of which `left` are in the row; -inf behind its end. A thread gets the same numbers of a row
// wherever the row lies, so that a row's sums are the same in any batch.
template <bool kAligned, typename T>
__device__ void Load(const T* from, std::int64_t left, float (&to)[kLanes<T>]) {
  if (kAligned) {
    const Vector<T> vector = *reinterpret_cast<const Vector<T>*>(from);
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) to[i] = ToFloat(vector.values[i]);
  } else {
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) to[i] = i < left ? ToFloat(from[i]) : -INFINITY;
  }
}

template <bool kAligned, typename T>
__device__ void Store(const float (&from)[kLanes<T>], std::int64_t left, T* to) {
  if (kAligned) {
    Vector<T> vector;
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) vector.values[i] = FromFloat<T>(from[i]);
    *reinterpret_cast<Vector<T>*>(to) = vector;
  } else {
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      if (i < left) to[i] = FromFloat<T>(from[i]);
    }
  }
}

// The largest of some numbers, and the sum of exp(x - largest). `largest` of none is finite, so that a difference from -inf is
// -inf; a NaN is in the sum alone.
struct Moments {
  float largest = -FLT_MAX, sum = 0;
};

__device__ Moments Joined(const Moments& a, const Moments& b) {
  Moments both;
  both.largest = fmaxf(a.largest, b.largest);
  both.sum = a.sum * expf(a.largest - both.largest) + b.sum * expf(b.largest - both.largest);
  return both;
}

__device__ Moments JoinedOverWarp(Moments mine) {
#pragma unroll
  for (int distance = kWarp / 2; distance > 0; distance /= 2) {
    Moments other;
    other.largest = __shfl_down_sync(0xffffffff, mine.largest, distance);
    other.sum = __shfl_down_sync(0xffffffff, mine.sum, distance);
    mine = Joined(mine, other);
  }
  return mine;
}

// Returns the block's on thread 0.
__device__ Moments JoinedOverBlock(Moments mine) {
  __shared__ float largest[kMostThreads / kWarp], sum[kMostThreads / kWarp];
  const int warp = static_cast<int>(threadIdx.x) / kWarp, lane = static_cast<int>(threadIdx.x) % kWarp;
  mine = JoinedOverWarp(mine);
  if (lane == 0) {
    largest[warp] = mine.largest;
    sum[warp] = mine.sum;
  }
  __syncthreads();
  if (warp > 0) return mine;
  Moments of_warp;
  if (lane < static_cast<int>(blockDim.x) / kWarp) {
    of_warp.largest = largest[lane];
    of_warp.sum = sum[lane];
  }
  return JoinedOverWarp(of_warp);
}

// A block for each row.
template <bool kAligned, typename T>
__global__ void Forward(const T* logits, std::int64_t classes, const std::int64_t* targets, float* losses,
                        float* largest, float* inverse_sum) {
  const T* row = logits + blockIdx.x * classes;
  Moments mine;
  for (std::int64_t j = threadIdx.x * kLanes<T>; j < classes; j += blockDim.x * kLanes<T>) {
    float x[kLanes<T>];
    Load<kAligned>(row + j, classes - j, x);
    Moments next;
    next.largest = mine.largest;
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) next.largest = fmaxf(next.largest, x[i]);
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) next.sum += expf(x[i] - next.largest);
    next.sum += mine.sum * expf(mine.largest - next.largest);
    mine = next;
  }
  const Moments all = JoinedOverBlock(mine);
  if (threadIdx.x > 0) return;
  const std::int64_t target = targets[blockIdx.x];
  assert(target >= 0 && target < classes);
  losses[blockIdx.x] = logf(all.sum) - (ToFloat(row[target]) - all.largest);
  largest[blockIdx.x] = all.largest;
  inverse_sum[blockIdx.x] = 1 / all.sum;
}

template <bool kAligned, typename T>
__global__ void Backward(const T* logits, std::int64_t classes, const std::int64_t* targets,
                         const float* largest, const float* inverse_sum, const float* scale, T* of_logits) {
  const T* row = logits + blockIdx.x * classes;
  T* to = of_logits + blockIdx.x * classes;
  const std::int64_t target = targets[blockIdx.x];
  const float shift = largest[blockIdx.x], inverse = inverse_sum[blockIdx.x], factor = *scale;
  for (std::int64_t j = threadIdx.x * kLanes<T>; j < classes; j += blockDim.x * kLanes<T>) {
    float x[kLanes<T>];
    Load<kAligned>(row + j, classes - j, x);
#pragma unroll
    for (int i = 0; i < kLanes<T>; ++i) {
      x[i] = (expf(x[i] - shift) * inverse - (j + i == target ? 1.0f : 0.0f)) * factor;
    }
    Store<kAligned>(x, classes - j, to + j);
  }
}

template <typename T>
bool Aligned(const LogitRows& in, const void* other) {
  return in.classes % kLanes<T> == 0 && reinterpret_cast<std::uintptr_t>(in.logits) % kVectorBytes == 0 &&
         reinterpret_cast<std::uintptr_t>(other) % kVectorBytes == 0;
}

template <typename T>
unsigned Threads(std::int64_t classes) {
  const std::int64_t vectors = (classes + kLanes<T> - 1) / kLanes<T>;
  return static_cast<unsigned>(std::min<std::int64_t>(kMostThreads, (vectors + kWarp - 1) / kWarp * kWarp));
}

const char* Started() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? nullptr : cudaGetErrorString(error);
}

// Calls run(T{}) with the device's type of the elements.
template <typename Run>
void WithType(ElementType type, const Run& run) {
  switch (type) {
    case ElementType::kFloat32:
      return run(float{});
    case ElementType::kBFloat16:
      return run(__nv_bfloat16{});
    case ElementType::kFloat16:
      return run(__half{});
  }
}

}  // namespace

bool HasCrossEntropy() { return true; }

const char* CrossEntropyForward(const LogitRows& in, float* losses, float* largest, float* inverse_sum) {
  if (in.rows == 0) return nullptr;
  WithType(in.type, [&](auto element) {
    using T = decltype(element);
    const auto kernel = Aligned<T>(in, in.logits) ? Forward<true, T> : Forward<false, T>;
    kernel<<<static_cast<unsigned>(in.rows), Threads<T>(in.classes), 0,
             static_cast<cudaStream_t>(in.stream)>>>(static_cast<const T*>(in.logits), in.classes, in.targets,
                                                     losses, largest, inverse_sum);
  });
  return Started();
}

const char* CrossEntropyBackward(const LogitRows& in, const float* largest, const float* inverse_sum,
                                 const float* scale, void* of_logits) {
  if (in.rows == 0) return nullptr;
  WithType(in.type, [&](auto element) {
    using T = decltype(element);
    const auto kernel = Aligned<T>(in, of_logits) ? Backward<true, T> : Backward<false, T>;
    kernel<<<static_cast<unsigned>(in.rows), Threads<T>(in.classes), 0,
             static_cast<cudaStream_t>(in.stream)>>>(static_cast<const T*>(in.logits), in.classes, in.targets,
                                                     largest, inverse_sum, scale, static_cast<T*>(of_logits));
  });
  return Started();
}

}  // namespace plait::rowwise::cuda
