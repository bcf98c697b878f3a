// A model's weights in the memory of a device: each tensor once, whatever the number of nodes that
// use it. Quantised tensors take as many bits as in the file, padded to full tiles (byte_matrix.h).
#ifndef KINGLET_KERNELS_CUDA_WEIGHTS_H_
#define KINGLET_KERNELS_CUDA_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/cuda/byte_matrix.h"
#include "kernels/cuda/code_matrix.h"
#include "kernels/cuda/device.h"
#include "kernels/plan.h"

namespace kinglet::cuda {

class WeightStore {
 public:
  // The plan and the queue outlive the store. The store appends its allocations to `memory`, and
  // the pointers that it returns are valid as long as `memory` is.
  WeightStore(const Plan& plan, const std::shared_ptr<Device>& device, Queue& queue,
              std::vector<DeviceMemory>& memory)
      : plan_(plan), device_(device), queue_(queue), memory_(memory) {}

  // Whether products with the tensor may be integer products (kernels/ref/weights.h).
  bool HasIntegers(WeightId id) const;
  // The largest magnitude that the tensor's integers may have. REQUIRES: HasIntegers(id).
  int64_t LargestInteger(WeightId id) const;
  // REQUIRES: HasIntegers(id).
  Result<ByteMatrix> Integers(WeightId id);
  // The exact values, [rows, cols]. REQUIRES: the tensor is not coded.
  Result<const float*> Floats(WeightId id);
  // The exact values, [rows, cols], or null without a tensor.
  Result<const float*> FloatsOrNull(const std::optional<WeightId>& id);
  // The rows as integers if the tensor has them, else as floats. REQUIRES: the tensor is not coded.
  Result<StoredRows> Stored(WeightId id);
  // The codes of a coded table, whether stored or computed by hashing.
  Result<CodeMatrix> Codes(WeightId id);
  // Copies values that binding computes from tensors to the device.
  template <class T>
  Result<const T*> Constants(std::span<const T> values) {
    KINGLET_ASSIGN_OR_RETURN(const std::byte* const address, Upload(std::as_bytes(values)));
    return reinterpret_cast<const T*>(address);
  }

  // Copies values that fit 32 bits to the device, as 32-bit values.
  Result<const uint32_t*> NarrowConstants(std::span<const uint64_t> values);

  // Device memory, not initialised, for what the device itself computes during binding (Run).
  template <class T>
  Result<T*> Memory(uint64_t count) {
    KINGLET_ASSIGN_OR_RETURN(std::byte* const address, Allocate(count * sizeof(T)));
    return reinterpret_cast<T*>(address);
  }
  // Runs nodes on the device during binding, and waits until they are done.
  Status Run(std::span<const Node> nodes, std::span<const Lane> lanes);

  // Calls `release` for the file's bytes of every tensor that is now in device memory.
  void Release(const ReleaseBytes& release) const;
  uint64_t bytes() const { return bytes_; }  // of device memory

 private:
  Result<std::byte*> Allocate(uint64_t bytes);
  Result<const std::byte*> Upload(std::span<const std::byte> bytes);

  const Plan& plan_;
  std::shared_ptr<Device> device_;
  Queue& queue_;
  std::vector<DeviceMemory>& memory_;
  std::map<WeightId, ByteMatrix> integers_;
  std::map<WeightId, const float*> floats_;
  std::map<WeightId, CodeMatrix> codes_;
  std::set<WeightId> laid_out_;
  uint64_t bytes_ = 0;
};

// A quantised matrix in the host's memory.
struct HostIntegers {
  uint64_t cols;
  std::vector<int16_t> codes;  // [rows, cols]
  std::vector<float> scales;   // [rows]
  const int16_t* Row(uint64_t row) const { return codes.data() + row * cols; }
};
// REQUIRES: WeightStore::HasIntegers of the tensor.
HostIntegers IntegersOf(const TensorView& tensor);

// The planes of a ByteMatrix in the host's memory.
struct BytePlanes {
  ByteForm form;
  std::vector<std::byte> low, high;
};
// `codes`: [rows, cols] integers of `bits` bits.
BytePlanes LayOutPlanes(std::span<const int16_t> codes, uint32_t rows, uint32_t cols, int bits);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_WEIGHTS_H_
