#include "kernels/backend.h"

#include <array>
#include <string>

#include "format/small_build.h"
#include "kernels/cuda/backend.h"
#include "kernels/nine_bit_row.h"
#include "kernels/ref/cluster_tokens.h"
#include "kernels/ref/ref.h"

#if defined(KINGLET_HAVE_CPU_BACKEND)
#include "kernels/cpu/cpu.h"
#endif
#if defined(KINGLET_HAVE_ONEDNN_BACKEND)
#include "kernels/onednn/backend.h"
#endif

namespace kinglet {
namespace {

ClusterFunctions<float> ClusterFunctionsRef() { return ref::kClusterFunctions<float>; }

// The reference keeps the file's bytes: it never calls ReleaseBytes.
template <Result<std::vector<Kernel>> (*kBind)(const Plan&, const BufferLayout&, const ClaimBytes&)>
Result<std::vector<Kernel>> BindRef(const Plan& plan, const BufferLayout& layout,
                                    const WeightMemory& memory) {
  return kBind(plan, layout, memory.claim);
}

// A build without Highway has no vector functions. `cpu` then runs the reference kernels, which
// give the same bits.
#if defined(KINGLET_HAVE_CPU_BACKEND)
constexpr auto kBindCpu = cpu::BindCpu;
constexpr auto kClusterFunctionsCpu = cpu::ClusterFunctionsCpu;
#else
constexpr auto kBindCpu = BindRef<ref::BindFloat>;
constexpr auto kClusterFunctionsCpu = ClusterFunctionsRef;
#endif

// What a buffer is divided into: elements, or rows of kCode9.
struct BufferPart {
  uint64_t elements, bytes;
};
BufferPart PartOf(const BufferSpec& buffer, size_t real_bytes) {
  switch (buffer.element) {
    case Element::kReal:
      return {1, real_bytes};
    case Element::kCode9:
      return {buffer.row, NineBitRow{buffer.row}.Bytes()};
    case Element::kCode16:
      return {1, 2};
    case Element::kCode32:
    case Element::kUint32:
      return {1, 4};
  }
  return {1, real_bytes};
}

}  // namespace

uint64_t BytesOf(const BufferSpec& buffer, uint64_t count, size_t real_bytes) {
  const BufferPart part = PartOf(buffer, real_bytes);
  return count / part.elements * part.bytes;
}

Result<BufferLayout> LayOut(const Plan& plan, size_t real_bytes) {
  constexpr uint64_t kAlignment = 64;
  constexpr uint64_t kLimit = uint64_t{1} << 62;
  BufferLayout layout;
  layout.slots.resize(plan.buffers.size());
  const auto lay_out = [&](size_t i) -> Status {
    const BufferSpec& buffer = plan.buffers[i];
    uint64_t& total = buffer.state ? layout.state_bytes : layout.scratch_bytes;
    const BufferPart part = PartOf(buffer, real_bytes);
    const uint64_t parts = buffer.count / part.elements;
    if (parts > kLimit / part.bytes || parts * part.bytes > kLimit - total) {
      return Status::Refusal(KINGLET_OUT_OF_MEMORY, "plan", "buffer " + buffer.name,
                             "a size that can be addressed",
                             std::to_string(buffer.count) + " elements");
    }
    const uint64_t bytes = parts * part.bytes;
    const uint64_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    layout.slots[i] = {buffer.state, total, buffer.count, buffer.source == SourceUse::kAllTokens};
    if (buffer.state) {
      if (buffer.ring.IsWhole()) {
        layout.slots[i].own_offset = layout.own_state_bytes;
        layout.own_state_bytes += padded;
      }
      layout.state_regions.push_back(
          {BufferId{static_cast<uint32_t>(i)}, total, bytes / buffer.ring.slots, buffer.ring});
    }
    total += padded;
    return Status();
  };
  const auto lay_out_all = [&](SourceUse source, bool of_queries) -> Status {
    for (size_t i = 0; i < plan.buffers.size(); ++i) {
      const BufferSpec& buffer = plan.buffers[i];
      if (buffer.source == source && buffer.of_queries == of_queries) {
        KINGLET_RETURN_IF_ERROR(lay_out(i));
      }
    }
    return Status();
  };
  KINGLET_RETURN_IF_ERROR(lay_out_all(SourceUse::kEachToken, false));
  layout.source_token_bytes = layout.scratch_bytes;
  KINGLET_RETURN_IF_ERROR(lay_out_all(SourceUse::kAllTokens, false));
  KINGLET_RETURN_IF_ERROR(lay_out_all(SourceUse::kNone, false));
  layout.token_scratch_bytes = layout.scratch_bytes;
  KINGLET_RETURN_IF_ERROR(lay_out_all(SourceUse::kNone, true));
  return layout;
}

std::span<const Backend> Backends() {
  static const std::array kBackends = {
    Backend{"cpu", sizeof(float), kBindCpu, kClusterFunctionsCpu},
    Backend{"ref", sizeof(float), BindRef<ref::BindFloat>, ClusterFunctionsRef},
#if !defined(KINGLET_SMALL)
    Backend{"ref64", sizeof(double), BindRef<ref::BindDouble>, nullptr},
#endif
#if defined(KINGLET_HAVE_ONEDNN_BACKEND)
    Backend{"onednn",
            sizeof(float),
            onednn::Bind,
            kClusterFunctionsCpu,
            {},
            onednn::LibraryName,
            onednn::kTolerance},
#endif
  };
  return kBackends;
}

std::span<const Backend> DeviceBackends() {
  static const std::array<Backend, 1> kBackends = {{
      {"cuda", sizeof(float), nullptr, kClusterFunctionsCpu, cuda::Bind, cuda::DeviceName},
  }};
  return kBackends;
}

Result<const Backend*> FindBackend(std::string_view name) {
  std::string known;
  for (const auto& backends : {Backends(), DeviceBackends()}) {
    for (const Backend& backend : backends) {
      if (backend.name == name) {
        if (backend.needs) KINGLET_RETURN_IF_ERROR(backend.needs().status());
        return &backend;
      }
      if (!known.empty()) known += ", ";
      known += backend.name;
    }
  }
  if constexpr (kSmallBuild) {
    return LeftOut("backend", std::string(name), "one of " + known, "no such backend");
  }
  if (name == "onednn") {
    return Status::Refusal(KINGLET_UNSUPPORTED, "backend", "onednn",
                           "a build with oneDNN's header (install libdnnl-dev, then run cmake with "
                           "-DKINGLET_ONEDNN=ON)",
                           "a build without it, which has " + known);
  }
  return Status::Refusal(KINGLET_UNSUPPORTED, "backend", std::string(name), "one of " + known,
                         "no such backend");
}

}  // namespace kinglet
