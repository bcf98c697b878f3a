// Queries about the next token of a session's streams: a part of kinglet.h, which includes this
// file and whose rules apply here.
#ifndef KINGLET_QUERIES_H_
#define KINGLET_QUERIES_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_session kinglet_session;

// A query is about the token that follows the lane's last step. Queries may be made in any order,
// any number of times. A query computes only what it needs; the results are remembered for later
// queries until the lane's next step, in a session of more than eight lanes perhaps only for the
// eight lanes queried last. Every query may fail with KINGLET_NO_TOKEN_YET (before the lane's first
// step), KINGLET_NOT_FINITE (an overflow in the model's own arithmetic) and KINGLET_CANCELLED.

// The log-probability of token `id`. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t lane,
                                                           uint32_t id, double* out);

// The log-probability of every token: out[id] becomes that of token `id`. `out` has room for
// `capacity` elements; those beyond the vocabulary size are left alone. The backend "ref64"
// computes in double and rounds to float here. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_log_probabilities(kinglet_session* session,
                                                             uint32_t lane, float* out,
                                                             uint64_t capacity);

// The log-probabilities of some tokens: out[i] becomes that of token ids[i], for every i < count. A
// token may occur more than once. Both arrays may be NULL if `count` is 0.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probabilities_of(kinglet_session* session,
                                                                uint32_t lane, const uint32_t* ids,
                                                                uint64_t count, double* out);

// The probability of every token: out[id] becomes that of token `id`. `out` has room for `capacity`
// elements; those beyond the vocabulary size are left alone. The backend "ref64" computes in double
// and rounds to float here. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_probabilities(kinglet_session* session, uint32_t lane,
                                                         float* out, uint64_t capacity);

// The k most probable tokens, the most probable first and tokens of equal probability by lower id;
// all tokens if k exceeds the vocabulary size. Element j of `ids` and `log_probabilities` becomes
// the j-th token. Each array has room for `capacity` elements, and either may be NULL. `*count`, if
// `count` is not NULL, becomes the number of tokens, also when the call fails with
// KINGLET_BUFFER_TOO_SMALL. The answer equals, to the last bit, that of computing and sorting all
// tokens. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t lane,
                                                 uint32_t k, uint32_t* ids,
                                                 double* log_probabilities, uint64_t capacity,
                                                 uint32_t* count);

// How a token is drawn at random. In this order: excluded tokens get the weight 0; every other
// token gets the weight p(token)^(1 / temperature); the top_k heaviest tokens remain, of equally
// probable ones those of lower ids; of these remain the fewest, heaviest first, whose weights reach
// the fraction top_p of the sum, the one that reaches it included. A token is drawn with
// probability proportional to its weight.
typedef struct kinglet_draw_options {
  uint32_t struct_size;  // set by kinglet_draw_options_init
  uint32_t top_k;        // 0, or at least the vocabulary size, means all tokens
  // Finite and at least 0. 0, or a temperature so low that its reciprocal overflows, draws the most
  // probable token that is not excluded. kinglet_draw_options_init sets 1.
  double temperature;
  double top_p;              // above 0; 1, the most, means all. kinglet_draw_options_init sets 1.
  const uint32_t* excluded;  // ids, in any order, also repeated; read during the call only
  uint64_t excluded_count;   // elements of `excluded`, which may be NULL if the count is 0
} kinglet_draw_options;

// Sets every field of `options` to its default: no token excluded, unchanged probabilities.
// `struct_size` is sizeof(kinglet_draw_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_draw_options_init(kinglet_draw_options* options,
                                                     uint32_t struct_size);

// Draws a token at random: *out becomes its id. NULL for `options` means the defaults. The token
// depends on the stream, the seed and the options alone: the same query gives the same token again,
// on any lane and, for a quantised model, on any machine. Streams of the same tokens need different
// seeds to draw different tokens. Any number is a seed.
// Errors: KINGLET_INVALID_ARGUMENT (options out of their ranges, or every token with a probability
// is excluded), KINGLET_ID_OUT_OF_RANGE (an excluded id).
KINGLET_API kinglet_status kinglet_session_draw(kinglet_session* session, uint32_t lane,
                                                uint64_t seed, const kinglet_draw_options* options,
                                                uint32_t* out);

// Functions named `.._lanes` query `count` lanes at once, each lane at most once, and give one
// answer for each in the order of `lanes`. An answer, what its lane remembers and what
// kinglet_session_last_work reports equal those of a query of that lane alone, to the last bit; the
// weights of the softmax are read from memory once for several lanes. An error of one lane is the
// error of the call. The arrays may be NULL if `count` is 0. Further errors:
// KINGLET_INVALID_ARGUMENT (a lane occurs twice), KINGLET_OUT_OF_MEMORY.

// out[i] becomes the log-probability that token ids[i] comes next in lane lanes[i].
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability_lanes(kinglet_session* session,
                                                                 const uint32_t* lanes,
                                                                 const uint32_t* ids,
                                                                 uint64_t count, double* out);

// The k most probable next tokens of each lane, as kinglet_session_top_k orders them. `*per_lane`,
// if `per_lane` is not NULL, becomes the number of tokens of each lane: k, or the vocabulary size
// if that is less. Element i * *per_lane + j of `ids` and `log_probabilities` becomes the j-th
// token of lane lanes[i]. Each array has room for `capacity` elements, and either may be NULL.
// *per_lane is also set when the call fails with KINGLET_BUFFER_TOO_SMALL. Errors:
// KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k_lanes(kinglet_session* session,
                                                       const uint32_t* lanes, uint64_t count,
                                                       uint32_t k, uint32_t* ids,
                                                       double* log_probabilities, uint64_t capacity,
                                                       uint32_t* per_lane);

// out[i] becomes the id of the token that kinglet_session_draw draws on lane lanes[i] with seed
// seeds[i] and these options. Errors: those of kinglet_session_draw.
KINGLET_API kinglet_status kinglet_session_draw_lanes(kinglet_session* session,
                                                      const uint32_t* lanes, const uint64_t* seeds,
                                                      uint64_t count,
                                                      const kinglet_draw_options* options,
                                                      uint32_t* out);

// Computes everything that queries about these lanes can need; the queries then only read the
// results. Call this function before you ask lane after lane for a full distribution, for at most
// eight lanes at a time: results are remembered for eight lanes, and are then still in the
// processor's caches.
KINGLET_API kinglet_status kinglet_session_compute_lanes(kinglet_session* session,
                                                         const uint32_t* lanes, uint64_t count);

// The arithmetic of a query, without what earlier queries about the same token had computed. A
// cluster is a part of the softmax's vocabulary that is computed on its own: the head, with the
// frequent tokens, or a tail. docs/ACCOUNTING.md defines an operation; products with zero weights
// count too.
typedef struct kinglet_work {
  uint32_t struct_size;      // set by the caller: sizeof(kinglet_work)
  uint32_t cache_computed;   // 1 if the neural cache's weights were computed, else 0
  uint64_t clusters_opened;  // bit i < 64 is 1 if cluster i was computed; cluster 0 is the head
  double multiplications;    // number of multiplications
  double additions;          // number of additions and subtractions
  double others;  // number of divisions, roots, exponentials, logarithms, comparisons, roundings
  uint64_t cluster_count;  // number of clusters computed, those beyond the 64th too
} kinglet_work;

// Writes what the lane's last query computed to *out, even if that query failed. All numbers are 0
// after a step, a reset, a restore or a fork onto the lane from another one. A call that was
// refused because of its arguments does not count as a query. Fields of a longer structure that
// this library does not know become 0.
// Errors: KINGLET_INVALID_ARGUMENT (a struct_size that no version of the structure has).
KINGLET_API kinglet_status kinglet_session_last_work(const kinglet_session* session, uint32_t lane,
                                                     kinglet_work* out);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_QUERIES_H_
