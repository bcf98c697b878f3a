// What a program asks a session about the next token: a part of kinglet.h, which includes it and
// whose rules hold here.
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
// any number of times. Each computes only what it needs, and remembers it for later queries until
// the lane's next step; a session of more than eight lanes may remember only the eight queried
// last. Each may fail with KINGLET_NO_TOKEN_YET (before the lane's first step), KINGLET_NOT_FINITE
// (an overflow in the model's own arithmetic) and KINGLET_CANCELLED.

// The log-probability of word `id`. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t lane,
                                                           uint32_t id, double* out);

// The log-probability of every word: out[id] is that of word `id`. `out` has room for `capacity`
// elements; those beyond the vocabulary size are left alone. The backend "ref64" computes in double
// and rounds to float here. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_log_probabilities(kinglet_session* session,
                                                             uint32_t lane, float* out,
                                                             uint64_t capacity);

// The log-probabilities of some words: out[i] is that of word ids[i], for every i < count. A word
// may occur more than once. Both arrays may be NULL if `count` is 0.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probabilities_of(kinglet_session* session,
                                                                uint32_t lane, const uint32_t* ids,
                                                                uint64_t count, double* out);

// The probability of every word; otherwise as kinglet_session_log_probabilities.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_probabilities(kinglet_session* session, uint32_t lane,
                                                         float* out, uint64_t capacity);

// The k most probable words, the most probable first and words of equal probability by lower id;
// all words if k exceeds the vocabulary size. Entry j of `ids` and `log_probabilities` is the j-th
// word. Each array has room for `capacity` elements, and either may be NULL. `*count`, if `count`
// is not NULL, becomes the number of words, also when the call fails with KINGLET_BUFFER_TOO_SMALL.
// The answer is exact: the same, to the last bit, as computing and sorting all words.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t lane,
                                                 uint32_t k, uint32_t* ids,
                                                 double* log_probabilities, uint64_t capacity,
                                                 uint32_t* count);

// How a word is drawn at random. In this order: the words omitted get no weight; every other one
// gets the weight p(word)^(1 / temperature); the top_k heaviest words remain, of equally probable
// ones those of lower ids; of these the fewest, heaviest first, that hold the share top_p of their
// weight remain, the one that reaches it included. A word is drawn with probability proportional to
// its weight.
typedef struct kinglet_draw_options {
  uint32_t struct_size;  // set by kinglet_draw_options_init
  uint32_t top_k;        // 0, or as many as there are words: all
  // Finite and at least 0. 0, or one so low that its reciprocal overflows: the most probable word
  // that is not omitted. kinglet_draw_options_init sets 1.
  double temperature;
  double top_p;              // above 0, at most 1: all. kinglet_draw_options_init sets 1.
  const uint32_t* excluded;  // words, in any order, also twice; read during the call only
  uint64_t excluded_count;   // of them; `excluded` may be NULL if there are none
} kinglet_draw_options;

// Sets every field of `options` to its default: all words as probable as they are. `struct_size` is
// sizeof(kinglet_draw_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_draw_options_init(kinglet_draw_options* options,
                                                     uint32_t struct_size);

// Draws a word at random. `options` may be NULL: the defaults. The word depends on the stream, the
// seed and the options alone: the same query gives the same word again, on any lane and, for a
// quantised model, on any machine. Streams of the same tokens need different seeds to draw
// different words. Any number is a seed.
// Errors: KINGLET_INVALID_ARGUMENT (options out of their ranges, or every word that has a
// probability is omitted), KINGLET_ID_OUT_OF_RANGE (of a word omitted).
KINGLET_API kinglet_status kinglet_session_draw(kinglet_session* session, uint32_t lane,
                                                uint64_t seed, const kinglet_draw_options* options,
                                                uint32_t* out);

// Draws from all words: kinglet_session_draw with this temperature and else the defaults.
// Errors: KINGLET_INVALID_ARGUMENT unless the temperature is finite and at least 0.
KINGLET_API kinglet_status kinglet_session_sample(kinglet_session* session, uint32_t lane,
                                                  uint64_t seed, double temperature, uint32_t* out);

// The queries below are the same for `count` lanes at once, none of them twice, with one answer for
// each in the order of `lanes`. Each answer, what its lane remembers and what
// kinglet_session_last_work reports are those of a query of that lane alone, to the last bit; the
// weights of the softmax are read from memory once for several lanes. If one lane has an error, it
// is the error of the call. The arrays may be NULL if `count` is 0. Further errors:
// KINGLET_INVALID_ARGUMENT if a lane occurs twice, KINGLET_OUT_OF_MEMORY.

// out[i] becomes the log-probability that word ids[i] comes next in lane lanes[i].
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability_lanes(kinglet_session* session,
                                                                 const uint32_t* lanes,
                                                                 const uint32_t* ids,
                                                                 uint64_t count, double* out);

// The k most probable next words of each lane, as kinglet_session_top_k orders them. Each lane has
// *per_lane of them: k, or the vocabulary size if that is less. Element i * *per_lane + j of `ids`
// and `log_probabilities` is the j-th word of lane lanes[i]. Each array has room for `capacity`
// elements, and either may be NULL, as may `per_lane`. *per_lane is also set when the call fails
// with KINGLET_BUFFER_TOO_SMALL. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k_lanes(kinglet_session* session,
                                                       const uint32_t* lanes, uint64_t count,
                                                       uint32_t k, uint32_t* ids,
                                                       double* log_probabilities, uint64_t capacity,
                                                       uint32_t* per_lane);

// out[i] becomes the word that kinglet_session_draw draws on lane lanes[i] with seed seeds[i].
// Errors: as kinglet_session_draw.
KINGLET_API kinglet_status kinglet_session_draw_lanes(kinglet_session* session,
                                                      const uint32_t* lanes, const uint64_t* seeds,
                                                      uint64_t count,
                                                      const kinglet_draw_options* options,
                                                      uint32_t* out);

// out[i] becomes the word that kinglet_session_sample draws on lane lanes[i] with seed seeds[i].
// Errors: KINGLET_INVALID_ARGUMENT unless the temperature is finite and at least 0.
KINGLET_API kinglet_status kinglet_session_sample_lanes(kinglet_session* session,
                                                        const uint32_t* lanes,
                                                        const uint64_t* seeds, uint64_t count,
                                                        double temperature, uint32_t* out);

// Computes everything that queries about these lanes can need; the queries then only read it. Call
// it before you ask lane after lane for a full distribution, for at most eight lanes at a time:
// results are remembered for eight lanes, and are then still in the processor's caches.
KINGLET_API kinglet_status kinglet_session_compute_lanes(kinglet_session* session,
                                                         const uint32_t* lanes, uint64_t count);

// What a query computed, without what earlier queries about the same token had computed already. A
// cluster is a part of the softmax's vocabulary that is computed on its own: the head, with the
// frequent words, or a tail. docs/ACCOUNTING.md defines an operation; zero weights count too.
typedef struct kinglet_work {
  uint32_t struct_size;      // set by the caller: sizeof(kinglet_work)
  uint32_t cache_computed;   // 1 if the neural cache's weights were computed, else 0
  uint64_t clusters_opened;  // bit i < 64: cluster i was computed; 0 is the head
  double multiplications;    // number of them
  double additions;          // and subtractions
  double others;             // divisions, roots, exponentials, logarithms, comparisons, roundings
  uint64_t cluster_count;    // clusters computed, those beyond the 64th too
} kinglet_work;

// What the lane's last query computed, even if that query failed. All numbers are 0 after a step, a
// reset, a restore or a fork onto the lane from another one. A call that was refused because of its
// arguments does not count as a query. Fields that this library does not know become 0.
// Errors: KINGLET_INVALID_ARGUMENT (a struct_size that no version of the structure has).
KINGLET_API kinglet_status kinglet_session_last_work(const kinglet_session* session, uint32_t lane,
                                                     kinglet_work* out);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_QUERIES_H_
