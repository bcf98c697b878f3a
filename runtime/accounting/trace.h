// Which paths tokens take through a plan: where the path of one can part from another's, and how
// many took each. What is counted and what memory is touched follow from that
// (runtime/accounting/meter.h, runtime/accounting/traffic.h).
#ifndef KINGLET_RUNTIME_ACCOUNTING_TRACE_H_
#define KINGLET_RUNTIME_ACCOUNTING_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "kernels/plan.h"
#include "runtime/accounting/operations.h"
#include "runtime/queries/cluster_set.h"

namespace kinglet {

// The plan's embedding. REQUIRES: a plan of Lower, which always has one.
const EmbedRow& EmbeddingOf(const Plan& plan);
// The encoder's. REQUIRES: the plan has an encoder.
const EmbedRow& SourceEmbeddingOf(const Plan& plan);
// Whether a step is one of the encoder's, which come last; never without an encoder.
bool IsOfEncoder(const Plan& plan, size_t step);
// How many of `ids` lie in each bin of the embedding. REQUIRES: each id < vocabulary size.
std::vector<uint64_t> BinCounts(const Plan& plan, std::span<const uint32_t> ids);

// Where the path of a token can part from another token's.
struct TokenPath {
  uint64_t position = 0;       // tokens before it: how full the window and the cache are
  size_t bin = 0;              // of the embedding, or, of a source token, the encoder's
  ClusterSet clusters;         // that were computed
  bool row_is_cached = false;  // the embedding's row was computed for an earlier token
  uint64_t source_length = 0;  // tokens of the encoded source
  bool encodes = false;        // a source token, which runs all passes of the encoder

  bool operator==(const TokenPath&) const = default;
  bool operator<(const TokenPath& other) const {
    return std::tie(position, bin, clusters, row_is_cached, source_length, encodes) <
           std::tie(other.position, other.bin, other.clusters, other.row_is_cached,
                    other.source_length, other.encodes);
  }
};
// Positions from this one on take the same path: every window and cache is full.
uint64_t SteadyPosition(const Plan& plan);
// The bin that holds a word. REQUIRES: id < vocabulary size.
size_t BinOf(const Plan& plan, uint32_t id);
// Whether a token on this path runs a step of the plan: a cluster's steps only if it is opened, and
// an encoder's only if it is a token of the source, which runs no others.
bool RunsOn(const Plan& plan, const TokenPath& path, size_t step);

// What tokens did together.
struct Trace {
  std::map<TokenPath, uint64_t> paths;  // how many tokens took each
  OperationTally distribution;          // the distribution's own arithmetic, of all of them

  uint64_t tokens() const;
  Trace& operator+=(const Trace& more);
};

// The path of a token at `position`, after which these clusters were computed. CachedRows of the
// stream says whether its row was there.
TokenPath PathOf(const Plan& plan, uint64_t position, uint32_t id, const ClusterSet& clusters,
                 bool row_is_cached = false, uint64_t source_length = 0);
// `ids` from a fresh stream, the full distribution being asked for after each: without running it,
// so that the distinct words a neural cache holds are not known: each costs 2 multiplications, 4
// additions and 4 others that are not counted here. A translation's ids begin with the start token
// and follow a source of so many tokens.
Trace FullTrace(const Plan& plan, std::span<const uint32_t> ids, uint64_t source_length = 0);
// The tokens of a source through the encoder. REQUIRES: the plan has one; ids of its vocabulary.
Trace EncoderTrace(const Plan& plan, std::span<const uint32_t> source);
// The same far into a stream, window and neural cache full, for tokens of known bins; the words
// being unknown, each row that a DeFINE unit makes counts as made.
Trace SteadyFullTrace(const Plan& plan, std::span<const uint64_t> bin_counts);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_ACCOUNTING_TRACE_H_
