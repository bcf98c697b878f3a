// A model's weights in a device's memory: each tensor once, however many steps use it, quantised
// ones in as many bits as the file's.
#ifndef KINGLET_KERNELS_CUDA_WEIGHTS_H_
#define KINGLET_KERNELS_CUDA_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
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
  // All three outlive it; what it returns points into memory that lives as long as `memory`.
  WeightStore(const Plan& plan, const std::shared_ptr<Device>& device, Queue& queue,
              std::vector<DeviceMemory>& memory)
      : plan_(plan), device_(device), queue_(queue), memory_(memory) {}

  // Whether products with the tensor may be integer (kernels/ref/weights.h).
  bool HasIntegers(WeightId id) const;
  // The largest magnitude that its integers may have. REQUIRES: HasIntegers(id).
  int64_t LargestInteger(WeightId id) const;
  // REQUIRES: HasIntegers(id).
  Result<ByteMatrix> Integers(WeightId id);
  // The exact values, [rows, cols]. REQUIRES: the tensor is not coded.
  Result<const float*> Reals(WeightId id);
  // As integers where it has them, otherwise as reals. REQUIRES: the tensor is not coded.
  Result<StoredRows> Stored(WeightId id);
  // The codes of a coded table, stored or computed.
  Result<CodeMatrix> Codes(WeightId id);
  // Numbers that a step makes of tensors when it is bound.
  template <class T>
  Result<const T*> Constants(std::span<const T> values) {
    KINGLET_ASSIGN_OR_RETURN(const std::byte* const address, Upload(std::as_bytes(values)));
    return reinterpret_cast<const T*>(address);
  }

  // Memory of the device that lives as long, for what steps make when they are bound.
  template <class T>
  Result<T*> Memory(uint64_t count) {
    KINGLET_ASSIGN_OR_RETURN(std::byte* const address, Allocate(count * sizeof(T)));
    return reinterpret_cast<T*>(address);
  }
  // Runs steps when they are bound, and waits.
  Status Run(std::span<const Step> steps, std::span<const Lane> lanes);

  // Gives back the file's bytes of all tensors that were laid out here.
  void Release(const ReleaseBytes& release) const;
  uint64_t bytes() const { return bytes_; }  // of the device's memory

 private:
  Result<std::byte*> Allocate(uint64_t bytes);
  Result<const std::byte*> Upload(std::span<const std::byte> bytes);

  const Plan& plan_;
  std::shared_ptr<Device> device_;
  Queue& queue_;
  std::vector<DeviceMemory>& memory_;
  std::map<WeightId, ByteMatrix> integers_;
  std::map<WeightId, const float*> reals_;
  std::map<WeightId, CodeMatrix> codes_;
  std::set<WeightId> laid_out_;
  uint64_t bytes_ = 0;
};

// A matrix's planes as ByteMatrix describes them, in the host's memory.
struct BytePlanes {
  ByteForm form;
  std::vector<std::byte> low, high;
};
// `codes` is [rows, cols] of integers of so many bits.
BytePlanes LayOutPlanes(std::span<const int16_t> codes, uint32_t rows, uint32_t cols, int bits);

}  // namespace kinglet::cuda

#endif  // KINGLET_KERNELS_CUDA_WEIGHTS_H_
