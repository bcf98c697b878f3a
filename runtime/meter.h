// What a plan really runs, counted: operations per token, component by component, from the plan's
// own steps and the paths that tokens took through them. There is no second description of the
// model. docs/ACCOUNTING.md says what counts as an operation; published rules of counting are
// functions of their own beside this one (runtime/micronet.h).
#ifndef KINGLET_RUNTIME_METER_H_
#define KINGLET_RUNTIME_METER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "kernels/backend.h"
#include "kernels/plan.h"
#include "runtime/operations.h"
#include "runtime/query_work.h"

namespace kinglet {

// A step of the plan, or a named part of one: "layers.0.attention.values".
struct Component {
  std::string name;
  OperationTally operations;
  // Of the multiplications, those whose weight is not zero; all of them where there is no weight.
  double useful_multiplications = 0;
  // Share of the component's weights that are not zero; 1 where there is no weight.
  double density = 1;
};

// The non-zero entries of each tensor, in the order of the directory. An integer is zero when its
// code is.
std::vector<uint64_t> CountNonzeros(std::span<const TensorView> tensors);

// The plan's embedding. REQUIRES: a plan of Lower, which always has one.
const EmbedRow& EmbeddingOf(const Plan& plan);
// How many of `ids` lie in each bin of the embedding. REQUIRES: each id < vocabulary size.
std::vector<uint64_t> BinCounts(const Plan& plan, std::span<const uint32_t> ids);

// Where the path of a token can part from another token's.
struct TokenPath {
  uint64_t position = 0;       // tokens before it: how full the window and the cache are
  size_t bin = 0;              // of the embedding
  ClusterSet clusters;         // that were computed
  bool row_is_cached = false;  // the embedding's row was computed for an earlier token
  uint64_t source_length = 0;  // tokens of the encoded source

  bool operator==(const TokenPath&) const = default;
  bool operator<(const TokenPath& other) const {
    return std::tie(position, bin, clusters, row_is_cached, source_length) <
           std::tie(other.position, other.bin, other.clusters, other.row_is_cached,
                    other.source_length);
  }
};
// Positions from this one on take the same path: every window and cache is full.
uint64_t SteadyPosition(const Plan& plan);
// The bin that holds a word. REQUIRES: id < vocabulary size.
size_t BinOf(const Plan& plan, uint32_t id);
// Whether a token on this path runs a step of the plan: a cluster's steps only if it is opened, and
// an encoder's never.
bool RunsOn(const Plan& plan, const TokenPath& path, size_t step);

// What tokens did together.
struct Trace {
  std::map<TokenPath, uint64_t> paths;  // how many tokens took each
  OperationTally distribution;          // the distribution's own arithmetic, of all of them

  uint64_t tokens() const;
};

// The path of a token at `position`, after which these clusters were computed. CachedRows of the
// stream says whether its row was there.
TokenPath PathOf(const Plan& plan, uint64_t position, uint32_t id, const ClusterSet& clusters,
                 bool row_is_cached = false);
// `ids` from a fresh stream, the full distribution being asked for after each: without running it,
// so that the distinct words a neural cache holds are not known: each costs 2 multiplications, 4
// additions and 4 others that are not counted here.
Trace FullTrace(const Plan& plan, std::span<const uint32_t> ids);
// The same far into a stream, window and neural cache full, for tokens of known bins; the words
// being unknown, each row that a DeFINE unit makes counts as made.
Trace SteadyFullTrace(const Plan& plan, std::span<const uint64_t> bin_counts);

// What backends do differently on the same plan.
struct BackendTraits {
  bool real64 = false;               // tails take the projected hidden state as it is
  bool decodes_in_products = false;  // integer weights become reals in every real product
  bool scores_masked_slots = false;  // window slots before the stream are scored, then masked
};
BackendTraits TraitsOf(const Backend& backend);

struct ExecutedCount {
  std::vector<Component> components;  // plan order, then the distribution's own arithmetic
  OperationTally operations;          // their sum
  double useful_multiplications = 0;
};

// The mean over the trace's tokens. `nonzeros` belongs to plan.weights.
ExecutedCount CountExecuted(const Plan& plan, std::span<const uint64_t> nonzeros,
                            const BackendTraits& traits, const Trace& trace);

// The same operations by step of the plan.
std::vector<OperationTally> CountSteps(const Plan& plan, const BackendTraits& traits,
                                       const Trace& trace);

// What a query about the token after `position` did (Session::last_work), as if no weight were
// zero.
OperationTally QueryOperations(const Plan& plan, const BackendTraits& traits, uint64_t position,
                               const QueryWork& work);

}  // namespace kinglet

#endif  // KINGLET_RUNTIME_METER_H_
