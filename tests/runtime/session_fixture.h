// Functions for tests of sessions, which open models, create sessions and make up texts.
#ifndef KINGLET_TESTS_RUNTIME_SESSION_FIXTURE_H_
#define KINGLET_TESTS_RUNTIME_SESSION_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "format/writer.h"
#include "kernels/functions.h"
#include "runtime/model.h"
#include "runtime/queries/sampling.h"
#include "runtime/session.h"
#include "tests/support/model_builder.h"

namespace kinglet {

inline std::shared_ptr<const Model> Open(const ModelDraft& draft, const std::string& backend) {
  auto bytes = SerialiseModel(draft);
  EXPECT_TRUE(bytes.ok()) << bytes.status().message();
  ModelOptions options;
  options.backend = backend;
  auto model = Model::FromBytes(*bytes, options);
  EXPECT_TRUE(model.ok()) << model.status().message();
  return *model;
}

inline std::unique_ptr<Session> Start(std::shared_ptr<const Model> model,
                                      const SessionOptions& options = {}) {
  auto session = Session::Create(std::move(model), options);
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(*session);
}

inline std::vector<uint32_t> Tokens(size_t n, uint32_t vocabulary, uint64_t seed = 7) {
  TestRandom random(seed);
  std::vector<uint32_t> ids(n);
  // Half of the tokens are a few tokens, so that the neural cache contains tokens several times.
  for (uint32_t& id : ids) id = random.Below(2) == 0 ? random.Below(4) : random.Below(vocabulary);
  return ids;
}

inline std::vector<double> Full(Session& session, uint32_t lane = 0) {
  std::vector<double> all(session.model().vocabulary_size());
  const Status status = session.LogProbabilities(std::span<double>(all), lane);
  EXPECT_TRUE(status.ok()) << status.message();
  return all;
}

// The definition of a sample (session.h), from all log-probabilities.
template <class T>
uint32_t SampleByBruteForce(const std::vector<double>& all,
                            const std::vector<ClusterPlan>& clusters, uint64_t seed,
                            uint64_t position, double temperature) {
  const double largest = *std::max_element(all.begin(), all.end());
  std::vector<double> weights;
  for (const double log_probability : all) {
    weights.push_back(
        static_cast<double>(Exp((static_cast<T>(log_probability) - static_cast<T>(largest)) /
                                static_cast<T>(temperature))));
  }
  std::vector<double> masses;
  double total = 0;
  for (const ClusterPlan& cluster : clusters) {
    double mass = 0;
    for (uint32_t i = 0; i < cluster.size; ++i) mass += weights[cluster.first + i];
    masses.push_back(mass);
    total += mass;
  }
  size_t c = 0;
  for (double sum = masses[0]; sum <= UniformDraw(seed, position, 0) * total; sum += masses[++c]) {
  }
  uint32_t token = clusters[c].first;
  for (double sum = weights[token]; sum <= UniformDraw(seed, position, 1) * masses[c];
       sum += weights[++token]) {
  }
  return token;
}

// A model with all parts of a state: quantised or float rings, a cache, three clusters.
inline TinyOptions WholeOptions(bool quantised) {
  TinyOptions options;
  options.quantised = quantised;
  options.cache_capacity = 9;
  options.vocabulary_size = 40;
  // The cache's and the window's keys take 9 bits where they are codes, values 16
  // (kernels/nine_bit_row.h).
  options.width = 40;
  options.heads = 5;
  options.key_size = 8;
  return options;
}

}  // namespace kinglet

#endif  // KINGLET_TESTS_RUNTIME_SESSION_FIXTURE_H_
