#include "converters/tuning/tune_cache.h"

#include <cmath>
#include <cstdio>
#include <new>
#include <utility>

#include "converters/golden.h"
#include "converters/passes/cache.h"
#include "converters/tuning/cache_likelihood.h"
#include "format/file_layout.h"
#include "format/limits.h"
#include "runtime/scored_stream.h"

namespace kinglet {
namespace {

constexpr uint64_t kRuns = 3;  // the old model, the trace, the new model

Status RefuseTuning(StatusCode code, const std::string& where, const std::string& expected,
                    const std::string& found) {
  return Status::Refusal(code, "tune-cache", where, expected, found);
}

// 12 significant digits: enough to show differences of the size of the tolerance.
std::string LossText(double loss) {
  char text[40];
  std::snprintf(text, sizeof(text), "%.12g nats per token", loss);
  return text;
}

std::optional<NeuralCache> CacheOf(const ModelFile& file) {
  const auto* cache = FindBlock<NeuralCache>(file.description());
  return cache == nullptr ? std::nullopt : std::optional(*cache);
}

// The cache that the search starts from. Its capacity does not change.
Result<NeuralCache> StartOf(const ModelFile& file, std::optional<uint32_t> capacity) {
  const auto* cache = FindBlock<NeuralCache>(file.description());
  if (cache == nullptr && !capacity) {
    return RefuseTuning(KINGLET_INVALID_ARGUMENT, "cache",
                        "a model with a cache, or a capacity (--cache)", "neither");
  }
  NeuralCache start = cache != nullptr
                          ? *cache
                          : NeuralCache{"cache", 0, kPublishedStart.theta, kPublishedStart.lambda,
                                        StartOfNewCache(file.description())};
  start.capacity = capacity.value_or(start.capacity);
  if (start.capacity >= 1 && start.capacity <= kMaxCacheCapacity) return start;
  return RefuseTuning(KINGLET_INVALID_ARGUMENT, "cache",
                      "1 to " + std::to_string(kMaxCacheCapacity), std::to_string(start.capacity));
}

Status CheckText(const ModelFile& file, uint64_t tokens) {
  if (tokens < 2) {
    return RefuseTuning(KINGLET_INVALID_ARGUMENT, "text", "two tokens or more",
                        std::to_string(tokens));
  }
  const auto* softmax = FindBlock<AdaptiveSoftmax>(file.description());
  const uint64_t width = softmax == nullptr ? kMaxExtent : softmax->width;
  const uint64_t max_tokens = kTuningMemory / TuningBytes(1, width);
  if (tokens <= max_tokens) return {};
  return RefuseTuning(KINGLET_OUT_OF_MEMORY, "text",
                      "at most " + std::to_string(max_tokens) +
                          " tokens, whose hidden states take " + std::to_string(kTuningMemory) +
                          " bytes",
                      std::to_string(tokens));
}

// The file's tensors and words under another description.
Result<std::vector<std::byte>> BytesWith(const ModelDescription& description,
                                         const ModelFile& file) {
  KINGLET_ASSIGN_OR_RETURN(const FileLayout layout, LayOutAgain(file, description));
  return layout.Bytes();
}

Result<std::shared_ptr<const ModelFile>> Reopened(const ModelDescription& description,
                                                  const ModelFile& file) {
  KINGLET_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, BytesWith(description, file));
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelFile> reopened, ModelFile::FromBytes(bytes));
  return reopened;
}

// The trace of the network without its cache.
Result<TextTrace> TraceWithoutCache(const ModelFile& file, std::span<const uint32_t> ids,
                                    const RunProgress& progress) {
  ModelDescription description = file.description();
  KINGLET_RETURN_IF_ERROR(ChangeCache({.capacity = 0}, description));
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelFile> bare, Reopened(description, file));
  return TraceText(std::move(bare), ids, progress);
}

Result<CacheSearch> Search(TextTrace trace, const NeuralCache& start, size_t threads) {
  CacheLikelihood likelihood(std::move(trace), start.capacity, threads, kTuningMemory, start.start);
  CacheSearch search = SearchCache(
      {start.lambda, start.theta},
      [&likelihood](const CacheParameters& point) { return likelihood.MeanLoss(point); });
  if (std::isfinite(search.loss)) return search;
  return RefuseTuning(KINGLET_INVALID_ARGUMENT, "text",
                      "a text with a probability above 0 under some cache",
                      "a token of probability 0");
}

// Checks the golden values on the old model and replaces them by the values that ref64 computes for
// the new model.
Status RenewGolden(const std::shared_ptr<const ModelFile>& old, ModelDescription& description) {
  if (!description.golden) return {};
  const GoldenVector golden = *description.golden;
  KINGLET_RETURN_IF_ERROR(ReplayGolden(old, AsGoldenFile(golden), golden.tolerance).status());
  KINGLET_ASSIGN_OR_RETURN(std::shared_ptr<const ModelFile> file, Reopened(description, *old));
  KINGLET_ASSIGN_OR_RETURN(description.golden, RecomputeGolden(std::move(file), golden));
  return {};
}

void NoteTuning(Provenance& provenance) {
  static const std::string kNote = "cache tuned";
  if (provenance.options.ends_with(kNote)) return;
  provenance.options += (provenance.options.empty() ? "" : ", ") + kNote;
}

RunProgress After(uint64_t passes, uint64_t tokens, const RunProgress& progress) {
  if (!progress) return {};
  return [passes, tokens, progress](uint64_t done) { progress(passes * tokens + done); };
}

Result<TunedCache> TuneChecked(const std::shared_ptr<const ModelFile>& file,
                               std::span<const uint32_t> stream, const NeuralCache& start,
                               const TuneCacheOptions& options) {
  TunedCache tuned;
  tuned.scored = stream.size() - 1;
  tuned.before.cache = CacheOf(*file);
  KINGLET_ASSIGN_OR_RETURN(tuned.before.loss,
                           ScoreText(file, stream, After(0, stream.size(), options.progress)));
  KINGLET_ASSIGN_OR_RETURN(
      TextTrace trace, TraceWithoutCache(*file, stream, After(1, stream.size(), options.progress)));
  KINGLET_ASSIGN_OR_RETURN(tuned.search, Search(std::move(trace), start, options.threads));

  const CacheParameters& best = tuned.search.best;
  ModelDescription description = file->description();
  KINGLET_RETURN_IF_ERROR(ChangeCache({start.capacity, best.theta, best.lambda}, description));
  NoteTuning(description.provenance);
  KINGLET_RETURN_IF_ERROR(RenewGolden(file, description));
  KINGLET_ASSIGN_OR_RETURN(tuned.bytes, BytesWith(description, *file));
  KINGLET_ASSIGN_OR_RETURN(const std::shared_ptr<const ModelFile> written,
                           ModelFile::FromBytes(tuned.bytes));
  tuned.digest = written->digest();
  tuned.after.cache = CacheOf(*written);
  KINGLET_ASSIGN_OR_RETURN(tuned.after.loss,
                           ScoreText(written, stream, After(2, stream.size(), options.progress)));
  // Written so that NaN fails.
  if (std::fabs(tuned.after.loss - tuned.search.loss) <= kTuningTolerance) return tuned;
  return RefuseTuning(KINGLET_MISMATCH, "the tuned model",
                      LossText(tuned.search.loss) + " as searched", LossText(tuned.after.loss));
}

}  // namespace

Result<TunedCache> TuneCache(const std::shared_ptr<const ModelFile>& file,
                             std::span<const uint32_t> ids, const TuneCacheOptions& options) try {
  const std::vector<uint32_t> stream = ScoredStream(file->description(), ids);
  KINGLET_ASSIGN_OR_RETURN(const NeuralCache start, StartOf(*file, options.capacity));
  KINGLET_RETURN_IF_ERROR(CheckText(*file, stream.size()));
  return TuneChecked(file, stream, start, options);
} catch (const std::bad_alloc&) {
  return RefuseTuning(KINGLET_OUT_OF_MEMORY, "memory", "room for what tuning keeps", "none left");
}

uint64_t TuningTokens(uint64_t ids) { return kRuns * ids; }

}  // namespace kinglet
