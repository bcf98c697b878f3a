#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/cuda/alone_kernels.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/peaks.h"

namespace kinglet::cuda {
namespace {

extern __shared__ __align__(16) unsigned char shared_memory[];

// How the blocks of a launch wait for each other between two steps.
enum class Waiting { kNone, kGrid, kCluster };

__device__ void WaitForAllBlocks(Waiting waiting) {
  if (waiting == Waiting::kGrid) cooperative_groups::this_grid().sync();
#if __CUDA_ARCH__ >= 900
  if (waiting == Waiting::kCluster) cooperative_groups::this_cluster().sync();
#endif
}

// How blocks wait is no template's parameter: the compiler takes long enough for one such kernel.
__global__ void __launch_bounds__(kBlockThreads)
    RunSteps(const Step* steps, uint32_t count, const Lane* lanes, uint32_t lane_count,
             Waiting waiting) {
  const Block block(kBlockThreads, reinterpret_cast<std::byte*>(shared_memory));
  for (uint32_t i = 0; i < count; ++i) {
    if (i > 0 && MustWait(steps[i - 1], steps[i])) WaitForAllBlocks(waiting);
    const uint32_t units = UnitsOf(steps[i], lane_count, kBlockWarps);
    for (uint32_t unit = blockIdx.x; unit < units; unit += gridDim.x) {
      RunUnitAmongOthers(steps[i], Work{lanes, lane_count, unit, block});
    }
  }
}

Status Failed(const char* call, cudaError_t error) {
  const StatusCode code =
      error == cudaErrorMemoryAllocation ? KINGLET_OUT_OF_MEMORY : KINGLET_INTERNAL;
  return Status::Refusal(code, "cuda", call, "success", cudaGetErrorString(error));
}

#define KINGLET_CUDA_RETURN_IF_ERROR(call, name)                    \
  do {                                                              \
    if (const cudaError_t error_ = (call); error_ != cudaSuccess) { \
      return Failed(name, error_);                                  \
    }                                                               \
  } while (false)

// What a device allows.
struct Limits {
  int multiprocessors = 0;
  int shared_bytes = 0;      // of a block
  bool cooperative = false;  // all blocks of a launch can wait for each other
  bool clusters = false;
};

class CudaQueue : public Queue {
 public:
  CudaQueue(cudaStream_t stream, const Limits& limits) : stream_(stream), limits_(limits) {}
  ~CudaQueue() override {
    // An error of an earlier kernel would surface here again; it has been reported.
    static_cast<void>(cudaStreamSynchronize(stream_));
    for (const auto& graph : graphs_) {
      if (graph.second.executable != nullptr) {
        static_cast<void>(cudaGraphExecDestroy(graph.second.executable));
      }
    }
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  Status Upload(std::byte* to, const void* from, size_t bytes) override {
    work_.bytes_to_device += bytes;
    // From pageable memory: the call returns once the bytes have been read.
    KINGLET_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_),
                                 "copy to the device");
    return Status();
  }
  Status Download(void* to, const std::byte* from, size_t bytes) override {
    work_.bytes_to_host += bytes;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_),
                                 "copy to the host");
    return Wait();
  }
  Status Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy on the device");
    return Status();
  }
  Status Zero(std::byte* to, size_t bytes) override {
    KINGLET_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(to, 0, bytes, stream_), "clearing memory");
    return Status();
  }
  // Several launches become a graph once the same ones have been asked for before: starting it
  // costs about as much as starting one kernel.
  Status Run(const StepList& list, const Lane* lanes, uint32_t lane_count) override {
    constexpr uint32_t kBlocksEach = 8;
    constexpr size_t kMostGraphs = 64;
    const auto most = static_cast<uint32_t>(limits_.multiprocessors) * kBlocksEach;
    const Asked asked = {list.on_device, list.count, lanes, lane_count};
    const auto found = graphs_.find(asked);
    if (found != graphs_.end() && found->second.executable != nullptr) {
      work_.launches += found->second.launches;
      KINGLET_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(found->second.executable, stream_),
                                   "starting a graph");
      return Status();
    }
    const std::vector<Launch> launches = PlanLaunches(list, lane_count, most);
    const auto start_all = [&]() -> Status {
      for (const Launch& launch : launches) {
        KINGLET_RETURN_IF_ERROR(Start(list, launch, lanes, lane_count));
      }
      return Status();
    };
    const bool remembers =
        list.may_repeat && (found != graphs_.end() || graphs_.size() < kMostGraphs);
    if (launches.size() < 2 || !remembers) return start_all();
    if (found == graphs_.end()) {
      graphs_[asked] = {};
      return start_all();
    }
    const uint64_t before = work_.launches;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                                 "recording a graph");
    const Status recorded = start_all();
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &graph);
    if (!recorded.ok()) return recorded;
    KINGLET_CUDA_RETURN_IF_ERROR(ended, "recording a graph");
    const cudaError_t made = cudaGraphInstantiate(&found->second.executable, graph, 0);
    static_cast<void>(cudaGraphDestroy(graph));
    KINGLET_CUDA_RETURN_IF_ERROR(made, "making a graph");
    found->second.launches = work_.launches - before;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(found->second.executable, stream_),
                                 "starting a graph");
    return Status();
  }
  Status Wait() override {
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_), "waiting for the device");
    return Status();
  }

 private:
  Status Start(const StepList& list, const Launch& launch, const Lane* lanes, uint32_t lane_count) {
    if (launch.end - launch.begin == 1)
      return Start(list, launch, lanes, lane_count, Waiting::kNone);
    if (limits_.clusters) return Start(list, launch, lanes, lane_count, Waiting::kCluster);
    if (limits_.cooperative) return Start(list, launch, lanes, lane_count, Waiting::kGrid);
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      KINGLET_RETURN_IF_ERROR(
          Start(list, {i, i + 1, launch.blocks}, lanes, lane_count, Waiting::kNone));
    }
    return Status();
  }

  Status Start(const StepList& list, const Launch& launch, const Lane* lanes, uint32_t lane_count,
               Waiting waiting) {
    uint64_t shared = 0;
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      shared = std::max(shared, SharedBytesOf(list.steps[i]));
    }
    if (shared > static_cast<uint64_t>(limits_.shared_bytes)) {
      return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "shared memory of a block",
                             "at most " + std::to_string(limits_.shared_bytes) + " bytes",
                             std::to_string(shared));
    }
    const Step& first = list.steps[launch.begin];
    const AloneKernel alone =
        lane_count >= first.alone_from_lanes ? FindAloneKernel(first) : AloneKernel{nullptr};
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaFuncSetAttribute(alone != nullptr ? reinterpret_cast<const void*>(alone)
                                              : reinterpret_cast<const void*>(RunSteps),
                             cudaFuncAttributeMaxDynamicSharedMemorySize, limits_.shared_bytes),
        "asking for shared memory");
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(launch.blocks);
    config.blockDim = dim3(kBlockThreads);
    config.dynamicSmemBytes = shared;
    config.stream = stream_;
    cudaLaunchAttribute attribute{};
    if (waiting == Waiting::kGrid) {
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    } else if (waiting == Waiting::kCluster) {
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = launch.blocks;
      attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
      // More than 8 blocks in a cluster is not for every device.
      KINGLET_CUDA_RETURN_IF_ERROR(
          cudaFuncSetAttribute(reinterpret_cast<const void*>(RunSteps),
                               cudaFuncAttributeNonPortableClusterSizeAllowed, 1),
          "asking for a large cluster");
    }
    config.attrs = &attribute;
    config.numAttrs = waiting == Waiting::kNone ? 0 : 1;
    ++work_.launches;
    const Step* const steps = list.on_device + launch.begin;
    if (alone != nullptr) {
      KINGLET_CUDA_RETURN_IF_ERROR(cudaLaunchKernelEx(&config, alone, steps, lanes, lane_count),
                                   "launch");
      return Status();
    }
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaLaunchKernelEx(&config, RunSteps, steps, launch.end - launch.begin, lanes, lane_count,
                           waiting),
        "launch");
    return Status();
  }

  // What a call of Run names; the memory behind it stays where it is for as long as the queue
  // lives.
  using Asked = std::tuple<const Step*, uint32_t, const Lane*, uint32_t>;
  struct Graph {
    cudaGraphExec_t executable = nullptr;  // null: asked for once so far
    uint64_t launches = 0;
  };

  cudaStream_t stream_;
  Limits limits_;
  std::map<Asked, Graph> graphs_;
};

class CudaDevice : public Device {
 public:
  CudaDevice(int device, std::string name, const Limits& limits, const DevicePeaks& peaks)
      : device_(device), name_(std::move(name)), limits_(limits), peaks_(peaks) {}

  const std::string& name() const override { return name_; }
  uint64_t FreeBytes() const override {
    size_t free = 0, total = 0;
    if (cudaSetDevice(device_) != cudaSuccess) return 0;
    return cudaMemGetInfo(&free, &total) == cudaSuccess ? free : 0;
  }
  uint64_t SharedBytesOfBlock() const override {
    return static_cast<uint64_t>(limits_.shared_bytes);
  }
  DevicePeaks peaks() const override { return peaks_; }
  Result<std::byte*> Allocate(size_t bytes) override {
    void* memory = nullptr;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_), "choosing the device");
    const cudaError_t error = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
    if (error == cudaErrorMemoryAllocation) {
      static_cast<void>(cudaGetLastError());  // or the next call would report it again
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "device memory",
                             std::to_string(bytes) + " bytes",
                             std::to_string(FreeBytes()) + " free");
    }
    if (error != cudaSuccess) return Failed("allocating memory", error);
    return static_cast<std::byte*>(memory);
  }
  void Free(std::byte* memory) override { static_cast<void>(cudaFree(memory)); }
  Result<std::unique_ptr<Queue>> CreateQueue() override {
    KINGLET_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_), "choosing the device");
    cudaStream_t stream = nullptr;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                 "creating a stream");
    return std::unique_ptr<Queue>(std::make_unique<CudaQueue>(stream, limits_));
  }

 private:
  int device_;
  std::string name_;
  Limits limits_;
  DevicePeaks peaks_;
};

// What the driver does not tell stays 0: unknown.
DeviceRates RatesOf(const cudaDeviceProp& properties, int device) {
  DeviceRates rates;
  rates.major = properties.major;
  rates.minor = properties.minor;
  rates.multiprocessors = properties.multiProcessorCount;
  const auto read = [device](cudaDeviceAttr attribute, int& to) {
    int value = 0;
    if (cudaDeviceGetAttribute(&value, attribute, device) == cudaSuccess) to = value;
  };
  read(cudaDevAttrClockRate, rates.clock_khz);
  read(cudaDevAttrMemoryClockRate, rates.memory_clock_khz);
  read(cudaDevAttrGlobalMemoryBusWidth, rates.memory_bus_bits);
  return rates;
}

Status NoDevice(const std::string& found) {
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "cuda", "a CUDA device and its driver",
                         found);
}

// Whether a cluster of kFewBlocks fits this device.
bool ClustersFit(const cudaDeviceProp& properties) {
  if (properties.major < 9) return false;
  const auto kernel = RunSteps;
  if (cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                           cudaFuncAttributeNonPortableClusterSizeAllowed, 1) != cudaSuccess) {
    return false;
  }
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kFewBlocks);
  config.blockDim = dim3(kBlockThreads);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = kFewBlocks;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  return cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess && clusters > 0;
}

}  // namespace

Result<std::shared_ptr<Device>> FirstCudaDevice() {
  int count = 0;
  const cudaError_t counted = cudaGetDeviceCount(&count);
  if (counted == cudaErrorInsufficientDriver) {
    int driver = 0, runtime = 0;
    static_cast<void>(cudaDriverGetVersion(&driver));
    static_cast<void>(cudaRuntimeGetVersion(&runtime));
    if (driver == 0) return NoDevice("no driver");
    return NoDevice("a driver for CUDA " + std::to_string(driver / 1000) +
                    ", older than this "
                    "build's CUDA " +
                    std::to_string(runtime / 1000));
  }
  if (counted != cudaSuccess) return NoDevice(cudaGetErrorString(counted));
  if (count == 0) return NoDevice("no device");
  cudaDeviceProp properties{};
  KINGLET_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, 0), "device properties");
  constexpr int kOldestMajor = 7, kOldestMinor = 5;
  if (properties.major * 10 + properties.minor < kOldestMajor * 10 + kOldestMinor) {
    return NoDevice(std::string(properties.name) + " of compute capability " +
                    std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                    ", below 7.5");
  }
  Limits limits;
  limits.multiprocessors = properties.multiProcessorCount;
  limits.shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  int cooperative = 0;
  KINGLET_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0), "device attributes");
  limits.cooperative = cooperative != 0;
  limits.clusters = ClustersFit(properties);
  const DevicePeaks peaks = PeaksOf(RatesOf(properties, 0));
  static_cast<void>(cudaGetLastError());
  return std::shared_ptr<Device>(
      std::make_shared<CudaDevice>(0, std::string(properties.name), limits, peaks));
}

}  // namespace kinglet::cuda
