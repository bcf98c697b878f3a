// A given text of one stream (Session::StepMany).
#include <algorithm>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <utility>
#include <variant>

#include "runtime/session_contents.h"
#include "runtime/session_refusals.h"

namespace kinglet {

using session::CheckSize;
using session::OutOfMemory;

void Session::Contents::MakeTextBlock() {
  if (text_block) return;
  const uint64_t tokens = TextBlock::TokensTogether(*model);
  const uint64_t bytes = TextBlock::Bytes(*model, tokens);
  if (tokens == 1 || !model->budget()->Claim(bytes)) return;
  MemoryClaim claim(model->budget(), bytes);
  const auto make = [&](auto& of_queries) {
    return std::make_unique<TextBlock>(
        *model, tokens,
        empty_cache_is_normalised ? EmptyCache::kNormalised : EmptyCache::kReference, execution,
        of_queries, std::move(claim));
  };
  text_block = std::visit(make, query_memory);
}

Status Session::StepMany(std::span<const uint32_t> ids, std::span<double> log_probabilities,
                         uint64_t& processed, uint32_t lane, Computing computing) {
  processed = 0;
  KINGLET_ASSIGN_OR_RETURN(Lane* const found, contents_->FindLane(lane));
  const bool asks = !log_probabilities.empty();
  if (asks) {
    KINGLET_RETURN_IF_ERROR(
        CheckSize("output of log-probabilities", log_probabilities.size(), ids.size()));
  }
  for (const uint32_t id : ids) KINGLET_RETURN_IF_ERROR(contents_->CheckStep(id, *found, lane));
  if (ids.empty()) return Status();
  try {
    contents_->MakeTextBlock();
    if (asks && found->stream.position() == 0) {
      log_probabilities[0] = std::numeric_limits<double>::quiet_NaN();
    } else if (asks) {
      KINGLET_RETURN_IF_ERROR(
          LogProbabilityLanes({&lane, 1}, ids.first(1), log_probabilities.first(1), computing));
    }
    uint64_t alone = 0;  // the number of next tokens that go one by one
    while (processed < ids.size()) {
      TextBlock* const block = alone > 0 ? nullptr : contents_->text_block.get();
      const uint64_t most = block == nullptr ? 1 : block->MostTokens(found->stream);
      const size_t count = std::min<uint64_t>(most, ids.size() - processed);
      // The token after the last one of these is predicted too.
      const size_t asked = asks ? std::min<size_t>(count, ids.size() - processed - 1) : 0;
      const std::span<const uint32_t> tokens = ids.subspan(processed, count);
      const std::span<const uint32_t> next = ids.subspan(processed + 1, asked);
      const std::span<double> out =
          asks ? log_probabilities.subspan(processed + 1, asked) : std::span<double>();
      if (block == nullptr) {
        KINGLET_RETURN_IF_ERROR(StepToken(tokens.front(), lane));
        processed += 1;
        alone -= std::min<uint64_t>(alone, 1);
        if (asked > 0) {
          KINGLET_RETURN_IF_ERROR(LogProbabilityLanes({&lane, 1}, next, out, computing));
        }
        continue;
      }
      const ComputingCall call(contents_->execution);
      const Status status = block->Process(tokens, next, out, computing, found->stream);
      if (status.code() == KINGLET_NOT_FINITE) {
        alone = count;  // to find the token that overflows
        continue;
      }
      KINGLET_RETURN_IF_ERROR(status);
      found->Invalidate();
      processed += count;
    }
    return Status();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

}  // namespace kinglet
