#include "kernels/cuda/launch_barrier.h"

#include <string>

namespace kinglet::cuda {

Result<LaunchBarriers> LaunchBarriers::Allowed(const char* asked) const {
  const std::string name = asked == nullptr ? "" : asked;
  if (name.empty()) return *this;
  if (name == "step") return LaunchBarriers{};
  const auto refusal = [](const std::string& expected, const std::string& found) {
    return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", kLaunchVariable, expected, found);
  };
  if (name == "cluster") {
    if (cluster) return LaunchBarriers{true, false, true};
    return refusal("a device and a binary of compute capability 9.0 or higher", "cluster");
  }
  if (name == "grid") {
    if (grid) return LaunchBarriers{false, true, true};
    return refusal("a device with cooperative launches", "grid");
  }
  return refusal("cluster, grid or step", "\"" + name + "\"");
}

Status LaunchBarriers::MayGoWithout() const {
  if (!required) return {};
  return Status::Refusal(KINGLET_UNSUPPORTED, "cuda", kLaunchVariable,
                         "a launch whose thread blocks can wait for each other in this way",
                         "too many thread blocks");
}

}  // namespace kinglet::cuda
