#include "runtime/queries/cache_contribution_query.h"

namespace kinglet {

template <class T>
Result<CacheContribution> CacheContributionOfToken(QueriedStream<T>& stream, uint32_t id) {
  Distribution<T>& distribution = *stream.distribution;
  const std::span<QueriedStream<T>> alone(&stream, 1);
  const size_t cluster = distribution.ClusterOf(id);
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, 0));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCluster(alone, cluster));
  KINGLET_RETURN_IF_ERROR(Distribution<T>::OpenCache(alone));
  const NeuralCacheMix<T>& cache = distribution.cache();
  CacheContribution contribution;
  contribution.network_log_probability =
      static_cast<double>(distribution.View(stream.frame, cluster).SoftmaxLogProbability(id));
  if (cache.Share() > 0) contribution.cache_share = cache.PartOf(cache.WeightOf(id));
  distribution.CountTokens(1, contribution.cache_share > 0 ? 1 : 0);
  return contribution;
}

template Result<CacheContribution> CacheContributionOfToken(QueriedStream<float>&, uint32_t);
template Result<CacheContribution> CacheContributionOfToken(QueriedStream<double>&, uint32_t);

}  // namespace kinglet
