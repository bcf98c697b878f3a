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

// The node that embeds a token. REQUIRES: a plan of Lower, which always has one.
const EmbedRow& EmbeddingOf(const Plan& plan);
// The node that embeds a token of the source. REQUIRES: the plan has an encoder.
const EmbedRow& SourceEmbeddingOf(const Plan& plan);
// Whether a node is one of the encoder's, which come last in the plan.
bool IsOfEncoder(const Plan& plan, size_t node);
// The number of `ids` in each bin of the embedding. REQUIRES: each id < vocabulary size.
std::vector<uint64_t> BinCounts(const Plan& plan, std::span<const uint32_t> ids);

// All that can make the path of one token differ from another's.
struct TokenPath {
  // The number of tokens before this one, which fill the window and the cache. For a token of the
  // source 0, or 1 if it is not the first and a sweep of the encoder runs for the first alone.
  uint64_t position = 0;
  size_t bin = 0;              // of the token's embedding
  ClusterSet clusters;         // computed by the queries about the token
  bool row_is_cached = false;  // whether its row of the embedding is in the DeFINE unit's cache
  uint64_t source_length = 0;  // tokens of the encoded source
  bool encodes = false;        // whether it is a source token, which runs the encoder's sweeps
  uint32_t letters = 0;        // of a word whose row is computed from its bytes

  bool operator==(const TokenPath&) const = default;
  bool operator<(const TokenPath& other) const {
    return std::tie(position, bin, clusters, row_is_cached, source_length, encodes, letters) <
           std::tie(other.position, other.bin, other.clusters, other.row_is_cached,
                    other.source_length, other.encodes, other.letters);
  }
};
// The position from which on every window and cache is full, so that paths are equal.
uint64_t SteadyPosition(const Plan& plan);
// The bin of a token. REQUIRES: id < vocabulary size.
size_t BinOf(const Plan& plan, uint32_t id);
// Whether a token of this path runs a node of the plan. A cluster's nodes run only if the cluster
// is computed; a token of the source runs the encoder's nodes and no others.
bool RunsOn(const Plan& plan, const TokenPath& path, size_t node);

// The paths and the queries of a number of tokens.
struct Trace {
  std::map<TokenPath, uint64_t> paths;  // the number of tokens of each path
  OperationTally distribution;          // the queries' own arithmetic, for all tokens

  uint64_t tokens() const;
  Trace& operator+=(const Trace& more);
};

// The path of token `id` at `position`, about which queries computed these clusters.
// `row_is_cached` is what CachedRows::Step of its stream returned for the token.
TokenPath PathOf(const Plan& plan, uint64_t position, uint32_t id, const ClusterSet& clusters,
                 bool row_is_cached = false, uint64_t source_length = 0);
// Makes the trace of a new stream with a query for the full distribution after each token. Tokens
// come one by one; memory does not grow with their number. The model does not run, so the distinct
// tokens in a neural cache are unknown; each of these tokens costs 2 multiplications, 4 additions
// and 4 others, which the trace lacks.
class FullTracer {
 public:
  // In a translation the source has `source_length` tokens. REQUIRES: the plan outlives the tracer.
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
// The trace that a FullTracer makes of `ids`, which in a translation begin with the start token.
Trace FullTrace(const Plan& plan, std::span<const uint32_t> ids, uint64_t source_length = 0);
// The trace of a source's tokens in the encoder. REQUIRES: the plan has an encoder, and the ids are
// of its vocabulary.
Trace EncoderTrace(const Plan& plan, std::span<const uint32_t> source);
// The trace of tokens far into a stream, with window and neural cache full, of which only the bins
// are known: bin_counts[i] tokens are in bin i. A DeFINE unit computes the row of each token; a
// word that is spelt has the mean number of bytes of its bin's words.
Trace SteadyFullTrace(const Plan& plan, std::span<const uint64_t> bin_counts);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_TRACE_H_
