#include "tests/support/instant_device.h"

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "kernels/cuda/backend.h"
#include "kernels/cuda/emulated_device.h"
#include "kernels/cuda/operations.h"

namespace kinglet {
namespace {

class InstantQueue : public cuda::Queue {
 public:
  explicit InstantQueue(InstantDevice& device) : device_(device) {}

  Status Upload(std::byte* to, const void* from, size_t bytes) override {
    ++device_.uploads;
    work_.bytes_to_device += bytes;
    std::memcpy(to, from, bytes);
    return Status();
  }
  Status Download(void* to, const std::byte* from, size_t bytes) override {
    ++device_.waits;
    work_.bytes_to_host += bytes;
    std::memcpy(to, from, bytes);
    return Status();
  }
  Status Copy(std::byte* to, const std::byte* from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Status();
  }
  Status Zero(std::byte* to, size_t bytes) override {
    std::memset(to, 0, bytes);
    return Status();
  }
  Status Run(const cuda::NodeList& list, const cuda::Lane*, uint32_t lanes) override {
    ++work_.launches;
    for (uint32_t i = 0; i < list.count; ++i) {
      const cuda::Node& node = list.nodes[i];
      if (cuda::IsKind<cuda::RankTokens>(node)) {
        Rank(cuda::ArgumentsOf<cuda::RankTokens>(node), lanes);
      } else if (cuda::IsKind<cuda::TokenLogProbability>(node)) {
        Answer(cuda::ArgumentsOf<cuda::TokenLogProbability>(node).answers, 1, lanes);
      }
    }
    return Status();
  }
  Status Wait() override {
    ++device_.waits;
    return Status();
  }

 private:
  void Rank(const cuda::RankTokens& query, uint32_t lanes) {
    if (query.part == cuda::RankedPart::kTails) return;
    if (query.part == cuda::RankedPart::kHead && IsNew(query.tails, lanes)) {
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        query.tails[lane] = lane % 3 == 0 ? device_.tails : 0;
      }
    }
    Answer(query.answers, query.k, lanes);
  }
  // Gives every lane `k` tokens.
  void Answer(std::byte* answers, uint32_t k, uint32_t lanes) {
    if (!IsNew(answers, lanes * uint64_t{k})) return;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      auto& answer = *reinterpret_cast<RankedTokens*>(answers + lane * RankedTokens::BytesFor(k));
      answer.count = answer.looked_into = k;
      answer.not_finite = 0;
      for (uint32_t i = 0; i < k; ++i) answer.tokens[i] = {i, -1.0f - static_cast<float>(i)};
    }
  }
  // Answers are made once: a device makes them while the host does other work.
  bool IsNew(const void* answers, uint64_t size) {
    return std::exchange(answered_[answers], size) != size;
  }

  InstantDevice& device_;
  std::map<const void*, uint64_t> answered_;  // by address: how many answers
};

class Instant : public cuda::Device {
 public:
  explicit Instant(InstantDevice& device) : device_(device) {}
  const std::string& name() const override {
    static const std::string kName = "answers at once";
    return kName;
  }
  uint64_t FreeBytes() const override { return memory_->FreeBytes(); }
  uint64_t SharedBytesOfBlock() const override { return memory_->SharedBytesOfBlock(); }
  bool HasExactHalves() const override { return memory_->HasExactHalves(); }
  bool HasClustersFor(const cuda::Node& node) const override {
    return memory_->HasClustersFor(node);
  }
  Result<std::byte*> Allocate(size_t bytes) override { return memory_->Allocate(bytes); }
  void Free(std::byte* memory) override { memory_->Free(memory); }
  Result<std::byte*> AllocateMapped(size_t bytes) override {
    return memory_->AllocateMapped(bytes);
  }
  void FreeMapped(std::byte* memory) override { memory_->FreeMapped(memory); }
  Result<std::unique_ptr<cuda::Queue>> CreateQueue() override {
    return std::unique_ptr<cuda::Queue>(std::make_unique<InstantQueue>(device_));
  }

 private:
  InstantDevice& device_;
  std::shared_ptr<cuda::Device> memory_ = cuda::EmulatedDevice();
};

}  // namespace

Backend InstantBackend(InstantDevice& device) {
  const auto instant = std::make_shared<Instant>(device);
  const auto bind = [instant](const Plan& plan, const BufferLayout& layout,
                              const ReleaseBytes& release) {
    return cuda::BindTo(instant, plan, layout, release);
  };
  return {"instant", sizeof(float), nullptr, Backends()[0].cluster_functions, bind};
}

}  // namespace kinglet
