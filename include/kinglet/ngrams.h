// Back-off n-gram models, and scores of a network, n-grams and phrases together: a part of
// kinglet.h, which includes this file and whose rules apply here. A library that was built with
// KINGLET_SMALL has none of these functions.
#ifndef KINGLET_NGRAMS_H_
#define KINGLET_NGRAMS_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_model kinglet_model;

// An n-gram file, which `kinglet ngram` makes of an ARPA file. It does not change, and threads may
// share it. Its bytes are in memory, outside of any model's limit.
typedef struct kinglet_ngrams kinglet_ngrams;

// The words before the next one, as far as the n-grams distinguish them: a value, whose bytes equal
// those of another one exactly if the same words follow both with the same probabilities for ever.
typedef struct kinglet_ngram_state {
  uint32_t values[8];
} kinglet_ngram_state;

// Reads the file into memory and checks it, so that later changes of it have no effect. On success
// the caller owns *out and destroys it with kinglet_ngrams_destroy.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION.
KINGLET_API kinglet_status kinglet_ngrams_open(const char* path, kinglet_ngrams** out);

// Destroys the handle. Scorers that were given the n-grams keep them.
KINGLET_API void kinglet_ngrams_destroy(kinglet_ngrams* ngrams);

// *out becomes the number of the word with these `length` bytes: that of <unk> if the n-grams lack
// the word. Numbers are those of this file only.
KINGLET_API kinglet_status kinglet_ngrams_word(const kinglet_ngrams* ngrams, const char* text,
                                               uint64_t length, uint32_t* out);

// *out becomes the state after <s> if `sentence` is 1, and the one with no word before if it is 0.
// Errors: KINGLET_INVALID_ARGUMENT (another number).
KINGLET_API kinglet_status kinglet_ngrams_begin(const kinglet_ngrams* ngrams, uint32_t sentence,
                                                kinglet_ngram_state* out);

// out[i] becomes the natural log-probability of words[i] after states[i], KenLM's but for the base,
// and after[i] the state that follows, for every i < count. `after` may be `states` or NULL, `out`
// may be NULL. Errors: KINGLET_INVALID_ARGUMENT (a state of other n-grams, where it can be told),
// KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_ngrams_score(const kinglet_ngrams* ngrams,
                                                const kinglet_ngram_state* states,
                                                const uint32_t* words, uint64_t count,
                                                kinglet_ngram_state* after, double* out);

// What a beam (beam.h) adds up for each token:
//   weight x log p of the network, mixed with n-grams
//   + weight x log p of each n-gram model that is added
//   + unknown_weight, for the token of unknown words
//   + what the bonus of phrases grows by.
// Words of the n-grams are the tokens as the model's vocabulary spells them, so a model of pieces
// needs n-grams of pieces. The tokens that begin and end a text are <s> and </s>; before and after
// them n-grams begin again. One thread at a time may use a scorer.
typedef struct kinglet_scorer kinglet_scorer;

// How a scorer uses n-grams.
typedef enum kinglet_ngram_use {
  // weight x log p is added. A model of bigrams with a weight below 0 is LODR (low-order density
  // ratio): then a token that the n-grams lack, if they have no <unk>, adds nothing.
  KINGLET_NGRAMS_ADDED = 0,
  // p is mixed with that of the network, which has the share that all mixed n-grams leave. The
  // weight is the share of these: 0 to 1.
  KINGLET_NGRAMS_MIXED = 1
} kinglet_ngram_use;

// Creates the scorer of the network alone. On success the caller owns *out and destroys it with
// kinglet_scorer_destroy. The scorer keeps the model.
// Errors: KINGLET_INVALID_ARGUMENT (a weight that is not finite).
KINGLET_API kinglet_status kinglet_scorer_create(const kinglet_model* model, double weight,
                                                 double unknown_weight, kinglet_scorer** out);

// Destroys the handle. Beams that were created with the scorer keep its value.
KINGLET_API void kinglet_scorer_destroy(kinglet_scorer* scorer);

// Adds n-grams, which the scorer keeps. `use` is a kinglet_ngram_use.
// Errors: KINGLET_INVALID_ARGUMENT (a weight that is not finite; shares below 0, or of more than 1
// in all), KINGLET_UNSUPPORTED (a model of ids only).
KINGLET_API kinglet_status kinglet_scorer_add_ngrams(kinglet_scorer* scorer,
                                                     const kinglet_ngrams* ngrams, uint32_t use,
                                                     double weight);

// Adds a phrase of `count` tokens, such as a name that is expected. A text's bonus is `bonus` for
// each token of each phrase that occurs in it, and besides, while it ends with the beginning of a
// phrase, for each token of the longest such beginning. The latter is taken back where the text
// continues otherwise or ends. Of phrases that begin alike the largest bonus counts until they
// differ.
// Errors: KINGLET_INVALID_ARGUMENT (no token, a bonus that is not finite), KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_scorer_add_phrase(kinglet_scorer* scorer, const uint32_t* ids,
                                                     uint64_t count, double bonus);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_NGRAMS_H_
