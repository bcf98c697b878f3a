#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/cuda/alone_kernels.h"
#include "kernels/cuda/cuda_calls.h"
#include "kernels/cuda/cuda_device.h"
#include "kernels/cuda/launch_barrier.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/peaks.h"
#include "kernels/cuda/pinned_memory.h"
#include "kernels/cuda/recently_used.h"

namespace kinglet::cuda {
// Named, though only this file uses the namespace: nvcc names an anonymous namespace after the
// source's folder.
inline namespace on_device {

__device__ void SyncBlocks(LaunchBarrier barrier) {
  if (barrier == LaunchBarrier::kGrid) cooperative_groups::this_grid().sync();
  if (barrier == LaunchBarrier::kCluster) {
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().sync();
#else
    __trap();  // LaunchBarriers excludes such a launch
#endif
  }
}

// Runs device nodes one after the other. The kind of barrier is no template parameter, since the
// compiler takes long enough for one such kernel. Two thread blocks must fit a multiprocessor, so
// that for few lanes one thread block loads weights while the other waits.
__global__ void __launch_bounds__(kBlockThreads, 2)
    RunNodes(const Node* nodes, uint32_t count, const Lane* lanes, uint32_t lane_count,
             LaunchBarrier barrier) {
  const Block block(kBlockThreads);
  for (uint32_t i = 0; i < count; ++i) {
    // The node's arguments do not depend on the node before, so they are read before the barrier.
    const uint32_t items = WorkItemsOf(nodes[i], lane_count, kBlockWarps);
    if (i > 0 && NeedsBarrier(nodes[i - 1], nodes[i])) SyncBlocks(barrier);
    for (uint32_t item = blockIdx.x; item < items; item += gridDim.x) {
      RunItemAmongOthers(nodes[i], Work{lanes, lane_count, item, block});
    }
  }
}

// A launch with its attributes as the CUDA runtime takes them.
struct LaunchConfig {
  // A cluster of all thread blocks, or of `cluster_blocks` each.
  LaunchConfig(const Launch& launch, uint64_t shared, LaunchBarrier barrier, cudaStream_t stream,
               uint32_t cluster_blocks = 0) {
    config.gridDim = dim3(launch.blocks);
    config.blockDim = dim3(kBlockThreads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &attribute;
    config.numAttrs = barrier == LaunchBarrier::kNone ? 0 : 1;
    if (barrier == LaunchBarrier::kGrid) {
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    } else if (barrier == LaunchBarrier::kCluster) {
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = cluster_blocks > 0 ? cluster_blocks : launch.blocks;
      attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    }
  }
  LaunchConfig(const LaunchConfig&) = delete;
  LaunchConfig& operator=(const LaunchConfig&) = delete;

  cudaLaunchConfig_t config{};
  cudaLaunchAttribute attribute{};
};

// Whether a launch failed because its thread blocks cannot all be resident at once, as the barrier
// needs, on the device or on the part of it that this process may use.
bool IsOfTooManyBlocks(cudaError_t error) {
  return error == cudaErrorInvalidClusterSize || error == cudaErrorCooperativeLaunchTooLarge ||
         error == cudaErrorLaunchOutOfResources || error == cudaErrorInvalidConfiguration;
}

// Limits of a device.
struct Limits {
  int multiprocessors = 0;
  uint64_t shared_bytes = 0;  // of a thread block
  LaunchBarriers barriers;
};

class CudaQueue : public Queue {
 public:
  CudaQueue(int device, cudaStream_t stream, const Limits& limits)
      : device_(device), stream_(stream), limits_(limits) {}
  ~CudaQueue() override {
    const CurrentDevice current(device_);
    // Errors here are those of earlier kernels, which were reported.
    static_cast<void>(cudaStreamSynchronize(stream_));
    graphs_.Clear();
    static_cast<void>(cudaStreamDestroy(stream_));
  }

  Status Upload(std::byte* to, const void* from, size_t bytes) override {
    work_.bytes_to_device += bytes;
    return OnDevice(device_, [&]() -> Status {
      if (bytes == 0) return Status();
      KINGLET_ASSIGN_OR_RETURN(std::byte* const pinned, TakePinned(bytes));
      if (pinned != nullptr) from = std::memcpy(pinned, from, bytes);
      KINGLET_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream_), "copy to the device");
      // Memory that is not pinned may be read until the copy is done.
      return pinned != nullptr ? Status() : WaitHere();
    });
  }
  Status Download(void* to, const std::byte* from, size_t bytes) override {
    work_.bytes_to_host += bytes;
    return OnDevice(device_, [&]() -> Status {
      if (bytes == 0) return WaitHere();
      KINGLET_ASSIGN_OR_RETURN(std::byte* const pinned, TakePinned(bytes));
      KINGLET_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(pinned != nullptr ? pinned : to, from, bytes,
                                                   cudaMemcpyDeviceToHost, stream_),
                                   "copy to the host");
      KINGLET_RETURN_IF_ERROR(WaitHere());
      if (pinned != nullptr) std::memcpy(to, pinned, bytes);
      return Status();
    });
  }
  Status Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    return OnDevice(device_, [&]() -> Status {
      KINGLET_CUDA_RETURN_IF_ERROR(
          cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
          "copy on the device");
      return Status();
    });
  }
  Status Zero(std::byte* to, size_t bytes) override {
    return OnDevice(device_, [&]() -> Status {
      KINGLET_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(to, 0, bytes, stream_), "clearing memory");
      return Status();
    });
  }
  // When launches are asked for a second time, they are recorded as a CUDA graph, which costs about
  // as much to start as one kernel.
  Status Run(const NodeList& list, const Lane* lanes, uint32_t lane_count) override {
    return OnDevice(device_, [&]() -> Status {
      const Asked asked = {list, lanes, lane_count};
      if (!list.may_repeat) return StartAll(asked, Plan(asked));
      Graph& graph = graphs_.Of({list.on_device, list.count, lanes, lane_count});
      if (graph.executable != nullptr) return Start(graph);
      const std::vector<Launch> launches = Plan(asked);
      ++graph.asked;
      if (graph.asked != 2 || launches.size() < 2) return StartAll(asked, launches);
      KINGLET_RETURN_IF_ERROR(Record(asked, launches, graph));
      return graph.executable != nullptr ? Start(graph) : StartAll(asked, launches);
    });
  }
  Status Wait() override {
    return OnDevice(device_, [&] { return WaitHere(); });
  }

 private:
  // The arguments of Run.
  struct Asked {
    const NodeList& list;
    const Lane* lanes;
    uint32_t lane_count;
  };
  struct DestroyGraph {
    void operator()(cudaGraphExec_t graph) const { static_cast<void>(cudaGraphExecDestroy(graph)); }
  };
  struct Graph {
    std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, DestroyGraph> executable;
    uint64_t asked = 0;  // calls of Run before it was recorded
    uint64_t launches = 0;
  };

  // Pinned memory for a copy. Null if less than `bytes` is left.
  Result<std::byte*> TakePinned(size_t bytes) {
    if (!pinned_.Holds(bytes)) return nullptr;
    std::byte* taken = pinned_.Take(bytes);
    if (taken != nullptr) return taken;
    KINGLET_RETURN_IF_ERROR(WaitHere());
    return pinned_.Take(bytes);
  }
  Status WaitHere() {
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamSynchronize(stream_), "waiting for the device");
    pinned_.TakeBack();
    return Status();
  }

  std::vector<Launch> Plan(const Asked& asked) const {
    constexpr uint32_t kBlocksEach = 8;
    return PlanLaunches(asked.list, asked.lane_count,
                        static_cast<uint32_t>(limits_.multiprocessors) * kBlocksEach);
  }
  Status StartAll(const Asked& asked, const std::vector<Launch>& launches) {
    for (const Launch& launch : launches) KINGLET_RETURN_IF_ERROR(Start(asked, launch));
    return Status();
  }
  Status Start(const Graph& graph) {
    work_.launches += graph.launches;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaGraphLaunch(graph.executable.get(), stream_),
                                 "starting a graph");
    return Status();
  }
  // Records the launches as a graph, unless the device has no memory left for one.
  Status Record(const Asked& asked, const std::vector<Launch>& launches, Graph& graph) {
    const uint64_t before = work_.launches;
    KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
                                 "recording a graph");
    const Status recorded = StartAll(asked, launches);
    cudaGraph_t launched = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(stream_, &launched);
    graph.launches = std::exchange(work_.launches, before) - before;
    if (!recorded.ok()) return recorded;
    KINGLET_CUDA_RETURN_IF_ERROR(ended, "recording a graph");
    cudaGraphExec_t executable = nullptr;
    cudaError_t made = cudaGraphInstantiate(&executable, launched, 0);
    static_cast<void>(cudaGraphDestroy(launched));
    graph.executable.reset(executable);
    // Uploaded now rather than when the graph is first started.
    if (made == cudaSuccess) made = cudaGraphUpload(executable, stream_);
    if (made == cudaSuccess) return Status();
    graph.executable.reset();
    if (made != cudaErrorMemoryAllocation) return Failed("making a graph", made);
    ForgetError();
    return Status();
  }

  Status Start(const Asked& asked, const Launch& launch) {
    if (launch.end - launch.begin == 1) return StartOne(asked, launch);
    uint64_t shared = 0;
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      shared = std::max(shared, SharedBytesOf(asked.list.nodes[i]));
    }
    KINGLET_RETURN_IF_ERROR(CheckSharedBytes(shared));
    KINGLET_RETURN_IF_ERROR(Prepare(reinterpret_cast<const void*>(RunNodes)));
    for (const LaunchBarrier barrier : {LaunchBarrier::kCluster, LaunchBarrier::kGrid}) {
      if (!CanSync(launch, shared, barrier)) continue;
      const cudaError_t error = StartNodes(asked, launch, shared, barrier);
      if (error == cudaSuccess) return Status();
      if (!IsOfTooManyBlocks(error)) return Failed("launch", error);
      ForgetError();
      can_sync_[{barrier, shared}] = false;
    }
    KINGLET_RETURN_IF_ERROR(limits_.barriers.MayGoWithout());
    for (uint32_t i = launch.begin; i < launch.end; ++i) {
      KINGLET_RETURN_IF_ERROR(StartOne(asked, {i, i + 1, launch.blocks}));
    }
    return Status();
  }
  // Whether the thread blocks of the launch, with `shared` bytes of shared memory, can have this
  // barrier.
  bool CanSync(const Launch& launch, uint64_t shared, LaunchBarrier barrier) {
    if (!limits_.barriers.Has(barrier)) return false;
    const auto [found, is_new] = can_sync_.try_emplace({barrier, shared}, true);
    if (is_new && barrier == LaunchBarrier::kCluster) {
      const LaunchConfig launched(launch, shared, barrier, stream_);
      int clusters = 0;
      const cudaError_t error =
          cudaOccupancyMaxActiveClusters(&clusters, RunNodes, &launched.config);
      if (error != cudaSuccess) ForgetError();
      found->second = error == cudaSuccess && clusters > 0;
    }
    return found->second;
  }
  // Launches a single node.
  Status StartOne(const Asked& asked, const Launch& launch) {
    const Node& node = asked.list.nodes[launch.begin];
    const uint64_t shared = SharedBytesOf(node);
    KINGLET_RETURN_IF_ERROR(CheckSharedBytes(shared));
    const AloneKernel alone =
        asked.lane_count >= node.alone_from_lanes ? FindAloneKernel(node) : AloneKernel{nullptr};
    if (alone == nullptr) {
      KINGLET_RETURN_IF_ERROR(Prepare(reinterpret_cast<const void*>(RunNodes)));
      KINGLET_CUDA_RETURN_IF_ERROR(StartNodes(asked, launch, shared, LaunchBarrier::kNone),
                                   "launch");
      return Status();
    }
    KINGLET_RETURN_IF_ERROR(Prepare(reinterpret_cast<const void*>(alone)));
    const LaunchConfig launched(
        launch, shared, node.cluster_blocks > 0 ? LaunchBarrier::kCluster : LaunchBarrier::kNone,
        stream_, node.cluster_blocks);
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaLaunchKernelEx(&launched.config, alone, asked.list.on_device + launch.begin,
                           asked.lanes, asked.lane_count),
        "launch");
    ++work_.launches;
    return Status();
  }
  cudaError_t StartNodes(const Asked& asked, const Launch& launch, uint64_t shared,
                         LaunchBarrier barrier) {
    const LaunchConfig launched(launch, shared, barrier, stream_);
    const cudaError_t error =
        cudaLaunchKernelEx(&launched.config, RunNodes, asked.list.on_device + launch.begin,
                           launch.end - launch.begin, asked.lanes, asked.lane_count, barrier);
    if (error == cudaSuccess) ++work_.launches;
    return error;
  }
  Status CheckSharedBytes(uint64_t shared) const {
    if (shared <= limits_.shared_bytes) return Status();
    return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", "shared memory of a thread block",
                           "at most " + std::to_string(limits_.shared_bytes) + " bytes",
                           std::to_string(shared));
  }
  // Call once for each kernel. Allows the kernel all of a thread block's shared memory, and large
  // thread-block clusters.
  Status Prepare(const void* kernel) {
    if (!prepared_.insert(kernel).second) return Status();
    KINGLET_CUDA_RETURN_IF_ERROR(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(limits_.shared_bytes)),
        "asking for shared memory");
    // Not every device has thread-block clusters of more than 8 thread blocks.
    if (limits_.barriers.cluster &&
        cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) !=
            cudaSuccess) {
      ForgetError();
      limits_.barriers.cluster = false;
    }
    return Status();
  }

  static constexpr size_t kPinnedBytes = size_t{4} << 20;
  static constexpr size_t kMaxGraphs = 64;
  int device_;
  cudaStream_t stream_;
  Limits limits_;
  PinnedMemory pinned_{kPinnedBytes};
  std::set<const void*> prepared_;
  std::map<std::pair<LaunchBarrier, uint64_t>, bool> can_sync_;  // by barrier and shared memory
  // Graphs by the arguments of Run. The memory that the arguments point to stays where it is for as
  // long as the queue lives (NodeList::may_repeat).
  RecentlyUsed<std::tuple<const Node*, uint32_t, const Lane*, uint32_t>, Graph> graphs_{kMaxGraphs};
};

class CudaDevice : public Device {
 public:
  CudaDevice(int device, std::string name, const Limits& limits, const DevicePeaks& peaks)
      : device_(device), name_(std::move(name)), limits_(limits), peaks_(peaks) {}

  const std::string& name() const override { return name_; }
  uint64_t FreeBytes() const override {
    const CurrentDevice current(device_);
    size_t free_bytes = 0, total_bytes = 0;
    return cudaMemGetInfo(&free_bytes, &total_bytes) == cudaSuccess ? WithoutReserve(free_bytes)
                                                                    : 0;
  }
  uint64_t SharedBytesOfBlock() const override { return limits_.shared_bytes; }
  uint32_t EnoughWorkItems() const override {
    return static_cast<uint32_t>(limits_.multiprocessors);
  }
  bool IsNodeByNode() const override { return limits_.barriers.required; }
  // Whether a cluster of the node's kernel, which needs nearly all shared memory, fits the part of
  // the device that this process may use.
  bool HasClustersFor(const Node& node) const override {
    const uint64_t shared = SharedBytesOf(node);
    if (!limits_.barriers.cluster || shared > limits_.shared_bytes) {
      return false;
    }
    const CurrentDevice current(device_);
    const AloneKernel kernel = FindAloneKernel(node);
    const LaunchConfig one({0, 1, node.cluster_blocks}, shared, LaunchBarrier::kCluster, nullptr);
    int clusters = 0;
    const bool known =
        cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                             cudaFuncAttributeMaxDynamicSharedMemorySize,
                             static_cast<int>(limits_.shared_bytes)) == cudaSuccess &&
        cudaOccupancyMaxActiveClusters(&clusters, kernel, &one.config) == cudaSuccess;
    if (!known) ForgetError();
    return known && clusters > 0;
  }
  DevicePeaks peaks() const override { return peaks_; }
  Result<std::byte*> Allocate(size_t bytes) override {
    return OnDevice(device_, [&]() -> Result<std::byte*> {
      void* memory = nullptr;
      const cudaError_t error = cudaMalloc(&memory, std::max<size_t>(bytes, 1));
      if (error == cudaErrorMemoryAllocation) {
        ForgetError();
        return Status::Refusal(KINGLET_OUT_OF_MEMORY, "cuda", "device memory",
                               std::to_string(bytes) + " bytes",
                               std::to_string(FreeBytes()) + " free");
      }
      if (error != cudaSuccess) return Failed("allocating memory", error);
      return static_cast<std::byte*>(memory);
    });
  }
  void Free(std::byte* memory) override {
    const CurrentDevice current(device_);
    static_cast<void>(cudaFree(memory));
  }
  Result<std::unique_ptr<Queue>> CreateQueue() override {
    return OnDevice(device_, [&]() -> Result<std::unique_ptr<Queue>> {
      cudaStream_t stream = nullptr;
      KINGLET_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking),
                                   "creating a stream");
      return std::unique_ptr<Queue>(std::make_unique<CudaQueue>(device_, stream, limits_));
    });
  }

 private:
  int device_;
  std::string name_;
  Limits limits_;
  DevicePeaks peaks_;
};

// Rates that the driver does not report stay 0: unknown.
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

}  // namespace on_device

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
  limits.shared_bytes = properties.sharedMemPerBlockOptin;
  cudaFuncAttributes nodes{};
  KINGLET_CUDA_RETURN_IF_ERROR(cudaFuncGetAttributes(&nodes, RunNodes), "kernel attributes");
  int cooperative = 0;
  KINGLET_CUDA_RETURN_IF_ERROR(
      cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0), "device attributes");
  const LaunchBarriers all = {HasClusterBarrier(properties.major, nodes.ptxVersion),
                              cooperative != 0};
  KINGLET_ASSIGN_OR_RETURN(limits.barriers, all.Allowed(std::getenv(kLaunchVariable)));
  const DevicePeaks peaks = PeaksOf(RatesOf(properties, 0));
  ForgetError();
  return std::shared_ptr<Device>(
      std::make_shared<CudaDevice>(0, std::string(properties.name), limits, peaks));
}

}  // namespace kinglet::cuda
