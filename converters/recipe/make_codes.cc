#include "converters/recipe/make_codes.h"

#include <utility>
#include <vector>

#include "converters/passes/product_quantise.h"
#include "converters/passes/slim_mapping.h"
#include "converters/passes/sub_vectors.h"
#include "converters/passes/summed_codes.h"

namespace kinglet {

Result<CodedTable> MakeCodes(
    const CodePass& pass, std::span<const float> values, const Shape& shape, size_t threads,
    const std::function<void(uint64_t pool, const KMeansProgress& step)>& progress) {
  KMeansOptions clustering;
  clustering.seed = pass.seed;
  clustering.iterations = pass.iterations;
  clustering.restarts = pass.restarts;
  clustering.threads = threads;
  if (pass.sum) {
    SumQuantisation options;
    options.positions = pass.positions;
    options.choices = pass.sub_vectors / pass.positions;
    options.sweeps = pass.sweeps;
    options.clustering = std::move(clustering);
    options.progress = progress;
    return QuantiseToSums(values, shape, options);
  }
  std::vector<uint32_t> pools = pass.pools == CodePass::Pools::kOne
                                    ? std::vector{static_cast<uint32_t>(pass.sub_vectors)}
                                    : EvenPools(pass.sub_vectors, pass.positions);
  if (pass.mapping == CodePass::Mapping::kClustered) {
    ProductQuantisation options;
    options.positions = pass.positions;
    options.pools = std::move(pools);
    options.clustering = std::move(clustering);
    options.progress = progress;
    return ProductQuantise(values, shape, options);
  }
  const auto mapping = pass.mapping == CodePass::Mapping::kHashed ? HashedCodes : ShuffledCodes;
  KINGLET_ASSIGN_OR_RETURN(std::vector<uint32_t> codes,
                           mapping(shape, pass.positions, pools, pass.seed));
  return FitSubVectors(values, shape, pass.positions, std::move(pools), std::move(codes), threads);
}

}  // namespace kinglet
