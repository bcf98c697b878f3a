// The paths that tokens take through a plan, and how many tokens took each. Tokens of one path run
// the same operations (runtime/accounting/meter.h) and touch the same amount of memory
// (runtime/accounting/traffic.h).
#ifndef KINGLET_RUNTIME_ACCOUNTING_TRACE_H_
#define KINGLET_RUNTIME_ACCOUNTING_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/plan.h"
#include "runtime/accounting/cluster_set.h"
#include "runtime/accounting/operations.h"
#include "runtime/cached_rows.h"

namespace kinglet {

// The operation that embeds a token. REQUIRES: a plan of Lower, which always has one.
const EmbedRow& EmbeddingOf(const Plan& plan);
// The same for a token of the source. REQUIRES: the plan has an encoder.
const EmbedRow& SourceEmbeddingOf(const Plan& plan);
// Whether a node is one of the encoder's, which come last in the plan.
bool IsOfEncoder(const Plan& plan, size_t node);
// How many of `ids` are in each bin of the embedding. REQUIRES: each id < vocabulary size.
std::vector<uint64_t> BinCounts(const Plan& plan, std::span<const uint32_t> ids);

// Everything that can make the path of one token differ from another's.
struct TokenPath {
  // Tokens before it, which fill the window and the cache. Of a token of the source 0, or 1 if it
  // is not the first and a sweep of the encoder runs for the first alone.
  uint64_t position = 0;
  size_t bin = 0;              // of the token's embedding
  ClusterSet clusters;         // computed by the queries about it
  bool row_is_cached = false;  // its row of the embedding is in the DeFINE unit's cache
  uint64_t source_length = 0;  // tokens of the encoded source
  bool encodes = false;        // a token of the source, which runs all sweeps of the encoder

  bool operator==(const TokenPath&) const = default;
  bool operator<(const TokenPath& other) const {
    return std::tie(position, bin, clusters, row_is_cached, source_length, encodes) <
           std::tie(other.position, other.bin, other.clusters, other.row_is_cached,
                    other.source_length, other.encodes);
  }
};
// The position from which on every window and cache is full, so that paths are the same.
uint64_t SteadyPosition(const Plan& plan);
// The bin that holds a word. REQUIRES: id < vocabulary size.
size_t BinOf(const Plan& plan, uint32_t id);
// Whether a token of this path runs a node of the plan: a cluster's nodes only if the cluster is
// computed, the encoder's only for a token of the source, which runs no others.
bool RunsOn(const Plan& plan, const TokenPath& path, size_t node);

// What a number of tokens did together.
struct Trace {
  std::map<TokenPath, uint64_t> paths;  // how many tokens took each
  OperationTally distribution;          // the queries' own arithmetic, for all tokens

  uint64_t tokens() const;
  Trace& operator+=(const Trace& more);
};

// The path of token `id` at `position`, about which queries computed these clusters.
// `row_is_cached`: what CachedRows of its stream returned for it.
TokenPath PathOf(const Plan& plan, uint64_t position, uint32_t id, const ClusterSet& clusters,
                 bool row_is_cached = false, uint64_t source_length = 0);
// The trace of a new stream with a query for the full distribution after each token, which comes
// one by one; memory does not grow with their number. The model does not run, so the distinct words
// that a neural cache holds are unknown; each of them costs 2 multiplications, 4 additions and 4
// others that are missing here.
class FullTracer {
 public:
  // The plan outlives this. In a translation the source has `source_length` tokens.
  explicit FullTracer(const Plan& plan, uint64_t source_length = 0);
  // REQUIRES: id < vocabulary size.
  void Step(uint32_t id);
  const Trace& trace() const { return trace_; }

 private:
  const Plan* plan_;
  uint64_t source_length_, position_ = 0;
  ClusterSet clusters_;
  CachedRows rows_;
  Trace trace_;
};
// The same of all `ids`; in a translation they begin with the start token.
Trace FullTrace(const Plan& plan, std::span<const uint32_t> ids, uint64_t source_length = 0);
// The trace of a source's tokens in the encoder. REQUIRES: the plan has one; ids of its vocabulary.
Trace EncoderTrace(const Plan& plan, std::span<const uint32_t> source);
// As FullTrace, for tokens far into a stream, with window and neural cache full, of which only the
// bins are known: bin_counts[i] tokens in bin i. A DeFINE unit computes the row of each.
Trace SteadyFullTrace(const Plan& plan, std::span<const uint64_t> bin_counts);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_TRACE_H_
