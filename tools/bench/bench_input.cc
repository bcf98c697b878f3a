#include "tools/bench/bench_input.h"

#include <algorithm>

#include "runtime/accounting/meter.h"
#include "runtime/queries/sampling.h"

namespace kinglet {
namespace {

constexpr uint64_t kSettle = 5;
constexpr uint64_t kSeed = 20;

}  // namespace

uint64_t WarmUpTokens(const Plan& plan) {
  uint64_t context = 0;
  for (const BufferSpec& buffer : plan.buffers) {
    // The cache lags by one token: the pair of a token is stored with the next token.
    if (buffer.state && buffer.ring.lag == 0) context = std::max(context, buffer.ring.slots);
  }
  return context + (plan.cache ? plan.cache->capacity : 0);
}

BenchSchedule MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t rounds) {
  rounds = std::min(rounds, tokens);
  return {warm_up, rounds, kSettle, tokens / rounds};
}

Result<BenchSchedule> MakeSchedule(uint64_t warm_up, uint64_t tokens, uint64_t ids,
                                   const std::string& input_name, uint64_t rounds) {
  const BenchSchedule wanted = MakeSchedule(warm_up, tokens, rounds);
  if (wanted.Ids() <= ids) return wanted;
  const uint64_t least = BenchSchedule{warm_up, 1, 0, 1}.Ids();
  if (ids < least) {
    return Status::Refusal(KINGLET_INVALID_ARGUMENT, input_name, "ids",
                           "at least " + std::to_string(least) + ", " + std::to_string(warm_up) +
                               " of which fill cache and context",
                           std::to_string(ids));
  }
  const uint64_t remaining = ids - warm_up - 1;
  if (remaining < wanted.rounds * (kSettle + 1)) {
    return BenchSchedule{warm_up, 1, 0, std::min(remaining, tokens)};
  }
  return BenchSchedule{warm_up, wanted.rounds, kSettle,
                       std::min(wanted.timed, remaining / wanted.rounds - kSettle)};
}

BenchSchedule MakeTranslationSchedule(uint64_t length, uint64_t tokens) {
  return {0, (tokens + length - 1) / length, std::min(kSettle, length), length};
}

std::vector<uint32_t> SampleIds(const EmbedRow& embedding, uint64_t count) {
  const std::vector<EmbeddingBin>& bins = embedding.bins;
  const bool known =
      std::any_of(bins.begin(), bins.end(), [](const EmbeddingBin& bin) { return bin.tokens > 0; });
  // Cumulative weights of the words, up to and including each id.
  std::vector<double> cumulative;
  cumulative.reserve(bins.back().first + uint64_t{bins.back().size});
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
    const auto last = static_cast<ptrdiff_t>(cumulative.size()) - 1;
    ids[i] = static_cast<uint32_t>(std::min(found - cumulative.begin(), last));
  }
  return ids;
}

}  // namespace kinglet
