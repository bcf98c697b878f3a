// Hypotheses of a search, such as a recogniser's beam: a part of kinglet.h, which includes this
// file and whose rules apply here.
#ifndef KINGLET_BEAM_H_
#define KINGLET_BEAM_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_model kinglet_model;
typedef struct kinglet_scorer kinglet_scorer;
typedef struct kinglet_state kinglet_state;

// Keeps hypotheses, which are lists of tokens, and answers which token follows each. A hypothesis
// is a number, which no other hypothesis of any beam of the process has had, and never 0: compare,
// hash and copy numbers. Stepping a hypothesis only makes another number. The network runs when
// hypotheses are queried, on all hypotheses of the call together, and once for each pair of a
// hypothesis and a token. Answers equal those of a session that steps the same tokens, to the last
// bit. One thread at a time may use a beam, except for kinglet_beam_cancel.
//
// The caller has a *reference* to a hypothesis for each time that kinglet_beam_begin,
// kinglet_beam_step or kinglet_beam_hold named it, and may use the hypothesis until
// kinglet_beam_drop has taken all of them away. Every function returns KINGLET_INVALID_ARGUMENT for
// any other number, and NULL is allowed for arrays of no elements.
typedef struct kinglet_beam kinglet_beam;

// How to create a beam. 0 in a field means the field's default. A longer structure is accepted as
// for kinglet_model_options.
typedef struct kinglet_beam_options {
  uint32_t struct_size;  // set by kinglet_beam_options_init
  uint32_t empty_cache;  // a kinglet_empty_cache
  uint32_t lanes;        // hypotheses that the network computes together; 0 means 16
  uint32_t threads;      // number of threads, as for kinglet_session_options; 0 means 1
  // The most bytes of states that the beam keeps besides its lanes; 0 means 64 MiB. States that
  // were not used for longest are dropped first, and made again from their tokens when they are
  // needed. The hypothesis itself, about 200 bytes, is kept as long as there is a reference to it
  // or to one that comes from it. All count in the model's memory limit too.
  uint64_t state_bytes;
  // What the beam adds up for a token (ngrams.h), or NULL: the network's log-probability. Scores
  // take the place of log-probabilities in all answers of the beam, and n-grams begin a sentence at
  // kinglet_beam_begin. The beam copies the value: later changes of the scorer have no effect.
  const kinglet_scorer* scorer;
} kinglet_beam_options;

// Sets every field of `options` to its default. `struct_size` is sizeof(kinglet_beam_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_beam_options_init(kinglet_beam_options* options,
                                                     uint32_t struct_size);

// Creates a beam without hypotheses. `options` may be NULL. On success the caller owns *out and
// destroys it with kinglet_beam_destroy.
// Errors: those of kinglet_session_create, KINGLET_UNSUPPORTED (a masked model) and
// KINGLET_INVALID_ARGUMENT (a scorer of another model).
KINGLET_API kinglet_status kinglet_beam_create(const kinglet_model* model,
                                               const kinglet_beam_options* options,
                                               kinglet_beam** out);

// Destroys the handle, and with it all hypotheses.
KINGLET_API void kinglet_beam_destroy(kinglet_beam* beam);

// *out becomes a hypothesis without tokens: at the start of a new stream if `state` is NULL, else
// after the stream that was saved. Each call gives another number: begin once for hypotheses that
// are to share their beginnings. The beam keeps the state's memory outside of its limit.
// Errors: KINGLET_MISMATCH (as for kinglet_session_restore), KINGLET_NO_SOURCE_YET (a model with an
// encoder, and no state with a source).
KINGLET_API kinglet_status kinglet_beam_begin(kinglet_beam* beam, const kinglet_state* state,
                                              uint64_t* out);

// out[i] becomes hypotheses[i] with token ids[i] after it, for every i < count. Equal pairs get
// equal numbers, in this call and in later ones, as long as there is a reference to the hypothesis
// or to one that comes from it. `out` may be `hypotheses`. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_beam_step(kinglet_beam* beam, const uint64_t* hypotheses,
                                             const uint32_t* ids, uint64_t count, uint64_t* out);

// Gives the caller another reference to each of these hypotheses.
KINGLET_API kinglet_status kinglet_beam_hold(kinglet_beam* beam, const uint64_t* hypotheses,
                                             uint64_t count);

// Takes one reference to each of these hypotheses away, from one that occurs twice two. After an
// error no reference was taken away.
KINGLET_API kinglet_status kinglet_beam_drop(kinglet_beam* beam, const uint64_t* hypotheses,
                                             uint64_t count);

// The tokens of a hypothesis since kinglet_beam_begin, in order: what to keep in a file, since
// stepping them gives the hypothesis again. `ids` has room for `capacity` elements, or is NULL.
// `*needed`, if `needed` is not NULL, becomes the number of tokens.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_beam_tokens(const kinglet_beam* beam, uint64_t hypothesis,
                                               uint32_t* ids, uint64_t capacity, uint64_t* needed);

// The state of the stream that has processed the hypothesis, for sessions and other beams. On
// success the caller owns *out and destroys it with kinglet_state_destroy.
// Errors: KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_beam_save(kinglet_beam* beam, uint64_t hypothesis,
                                             kinglet_state** out);

// Queries about the token that follows each of `count` hypotheses, which may occur more than once.
// Errors of all: those of kinglet_session_step and of queries (queries.h): KINGLET_NO_TOKEN_YET for
// a hypothesis without a token at the start of a stream.

// out[i] becomes the log-probability that token ids[i] follows hypotheses[i].
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_beam_log_probability(kinglet_beam* beam,
                                                        const uint64_t* hypotheses,
                                                        const uint32_t* ids, uint64_t count,
                                                        double* out);

// The log-probabilities of every token: out[i * vocabulary size + id] becomes that of token `id`
// after hypotheses[i]. `out` has room for `capacity` elements; those beyond count * vocabulary size
// are left alone. "ref64" rounds to float here. After an error `out` may have been written in part.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_beam_log_probabilities(kinglet_beam* beam,
                                                          const uint64_t* hypotheses,
                                                          uint64_t count, float* out,
                                                          uint64_t capacity);

// The k most probable tokens after each hypothesis: `ids`, `log_probabilities` and `capacity` as
// for kinglet_session_top_k_lanes, with hypotheses in the place of lanes, and `per_hypothesis` as
// `per_lane`. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_beam_top_k(kinglet_beam* beam, const uint64_t* hypotheses,
                                              uint64_t count, uint32_t k, uint32_t* ids,
                                              double* log_probabilities, uint64_t capacity,
                                              uint32_t* per_hypothesis);

// The number of tokens that the network has processed for this beam, those that were processed
// again after their state was dropped too.
KINGLET_API kinglet_status kinglet_beam_stepped(const kinglet_beam* beam, uint64_t* out);

// Stops the call that is running, or else the next one that computes something, as
// kinglet_session_cancel does. Any thread may call this function while the beam exists.
KINGLET_API kinglet_status kinglet_beam_cancel(kinglet_beam* beam);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_BEAM_H_
