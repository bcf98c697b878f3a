#include "tools/bench_input.h"

#include <algorithm>
#include <variant>

#include "runtime/meter.h"
#include "runtime/sampling.h"

namespace kinglet {
namespace {

constexpr uint64_t kRounds = 20, kSettle = 5;
constexpr uint64_t kSeed = 20;

// Buffers that are read whole at every token: keys and values of attention that sees zeros before
// the stream's start.
std::vector<bool> AlwaysFull(const Plan& plan) {
  std::vector<bool> full(plan.buffers.size());
  for (const Step& step : plan.steps) {
    const auto* attention = std::get_if<WindowAttention>(&step.op);
    if (attention == nullptr) continue;
    const bool zeros = attention->start == StreamStart::kZeros && !attention->start_row;
    for (const BufferId buffer : {attention->keys, attention->values}) {
      full[static_cast<size_t>(buffer)] = zeros;
    }
  }
  return full;
}

}  // namespace

uint64_t WarmUpTokens(const Plan& plan) {
  const std::vector<bool> full = AlwaysFull(plan);
  uint64_t context = 0;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferSpec& buffer = plan.buffers[i];
    // The cache's rings lag behind: the pair of a token is stored with the next one.
    const bool waits = buffer.state && buffer.ring.lag == 0 && !full[i];
    if (waits) context = std::max(context, buffer.ring.slots);
  }
  return context + (plan.cache ? plan.cache->capacity : 0);
}

BenchSchedule MakeSchedule(uint64_t warm_up, uint64_t tokens) {
  const uint64_t rounds = std::min(kRounds, tokens);
  return {warm_up, rounds, kSettle, tokens / rounds};
}

Result<BenchSchedule> MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t ids,
                                   const std::string& source) {
  const BenchSchedule wanted = MakeSchedule(warm_up, tokens);
  if (wanted.Ids() <= ids) return wanted;
  const uint64_t least = BenchSchedule{warm_up, 1, 0, 1}.Ids();
  if (ids < least) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, source, "ids",
                           "at least " + std::to_string(least) + ", " + std::to_string(warm_up) +
                               " of which fill cache and context",
                           std::to_string(ids));
  }
  const uint64_t left = ids - warm_up - 1;
  if (left < wanted.rounds * (kSettle + 1)) {
    return BenchSchedule{warm_up, 1, 0, std::min(left, tokens)};
  }
  return BenchSchedule{warm_up, wanted.rounds, kSettle,
                       std::min(wanted.block, left / wanted.rounds - kSettle)};
}

std::vector<uint32_t> SampleIds(const Plan& plan, uint64_t count) {
  const std::vector<EmbeddingBin>& bins = EmbeddingOf(plan).bins;
  const bool known =
      std::any_of(bins.begin(), bins.end(), [](const EmbeddingBin& bin) { return bin.tokens > 0; });
  // What the words up to and including each id weigh together.
  std::vector<double> cumulative;
  cumulative.reserve(plan.vocabulary_size);
  double total = 0;
  for (const EmbeddingBin& bin : bins) {
    double harmonic = 0;
    for (uint32_t i = 0; i < bin.size; ++i) harmonic += 1.0 / (double{1} + bin.first + i);
    const double factor = known ? static_cast<double>(bin.tokens) / harmonic : 1.0;
    for (uint32_t i = 0; i < bin.size; ++i) {
      total += factor / (double{1} + bin.first + i);
      cumulative.push_back(total);
    }
  }
  std::vector<uint32_t> ids(count);
  for (uint64_t i = 0; i < count; ++i) {
    const double target = UniformDraw(kSeed, i, 0) * total;
    const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), target);
    ids[i] = static_cast<uint32_t>(
        std::min<ptrdiff_t>(found - cumulative.begin(), plan.vocabulary_size - ptrdiff_t{1}));
  }
  return ids;
}

}  // namespace kinglet
