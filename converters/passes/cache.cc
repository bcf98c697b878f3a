#include "converters/passes/cache.h"

#include <string>
#include <utility>
#include <variant>

namespace kinglet {

CacheStart StartOfNewCache(const ModelDescription& description) {
  return FindBlock<RecurrentDecoder>(description) != nullptr ? CacheStart::kPastCapacity
                                                             : CacheStart::kFirstPair;
}

Status ChangeCache(const CacheChange& change, ModelDescription& description) {
  if (!change.capacity && !change.theta && !change.lambda) return {};
  if (change.capacity == 0) {
    std::erase_if(description.blocks,
                  [](const Block& block) { return std::holds_alternative<NeuralCache>(block); });
    return {};
  }
  if (auto* cache = FindBlock<NeuralCache>(description)) {
    cache->capacity = change.capacity.value_or(cache->capacity);
    cache->theta = change.theta.value_or(cache->theta);
    cache->lambda = change.lambda.value_or(cache->lambda);
    return {};
  }
  if (change.capacity && change.theta && change.lambda) {
    description.blocks.emplace_back(NeuralCache{"cache", *change.capacity, *change.theta,
                                                *change.lambda, StartOfNewCache(description)});
    return {};
  }
  std::string given;
  const auto add = [&given](bool present, const char* name) {
    if (present) given += (given.empty() ? "" : " and ") + std::string(name);
  };
  add(change.capacity.has_value(), "a capacity");
  add(change.theta.has_value(), "a theta");
  add(change.lambda.has_value(), "a lambda");
  return Status::Refusal(KINGLET_INVALID_ARGUMENT, "convert", "cache",
                         "capacity, theta and lambda for a model without a cache", given);
}

}  // namespace kinglet
