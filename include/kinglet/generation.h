// Text that a model makes: a part of kinglet.h, which includes it and whose rules hold here.
#ifndef KINGLET_GENERATION_H_
#define KINGLET_GENERATION_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/queries.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_model kinglet_model;

// Streams of drawn words that continue from one prompt, with a session of their own. A generation may
// be used by one thread at a time.
typedef struct kinglet_generation kinglet_generation;

// What to generate. 0 or NULL in a field means its default. A longer structure is accepted as for
// kinglet_model_options. What it points to is read during the call only.
typedef struct kinglet_generation_options {
  uint32_t struct_size;  // set by kinglet_generation_options_init
  uint32_t streams;      // number of texts; 0: 1
  uint64_t tokens;       // the most that are drawn for a stream; 0: 100
  // Any number. Stream 0 draws with this seed, stream i with the XXH3-64 of the seed and i, two
  // little-endian 64-bit integers: what it draws does not depend on how many streams there are.
  uint64_t seed;
  const kinglet_draw_options* draw;  // NULL: the defaults of kinglet_draw_options_init
  const char* stop;                  // a stream's text ends before these bytes; NULL: nowhere
  uint64_t stop_length;              // of them
  uint32_t threads;                  // that compute, as for kinglet_session_options; 0: 1
  uint32_t reserved;                 // zero
} kinglet_generation_options;

// Sets every field of `options` to its default. `struct_size` is
// sizeof(kinglet_generation_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_generation_options_init(kinglet_generation_options* options,
                                                           uint32_t struct_size);

// Feeds a prompt to a session: the model's start token, if it has one, and the `count` tokens of
// `prompt`, which may be NULL if there are none. A model without a start token then begins after
// the end of a line. `options` may be NULL. On success the caller owns *out and destroys it with
// kinglet_generation_destroy.
// Errors: those of kinglet_session_create and kinglet_session_step; KINGLET_INVALID_ARGUMENT
// (invalid options), KINGLET_UNSUPPORTED (a stop text, but the model has ids only).
KINGLET_API kinglet_status kinglet_generation_create(const kinglet_model* model,
                                                     const kinglet_generation_options* options,
                                                     const uint32_t* prompt, uint64_t count,
                                                     kinglet_generation** out);

// Destroys the handle.
KINGLET_API void kinglet_generation_destroy(kinglet_generation* generation);

// Draws a word for every stream that has not ended. *more becomes 1 if any continues, else 0, also
// when all had ended before. A stream ends after as many tokens as wanted, with the model's end
// token, and where its text reaches the stop text.
// Errors: those of kinglet_session_draw and kinglet_session_step; KINGLET_INVALID_ARGUMENT (nothing
// was fed, and no word begins a text of this model). After KINGLET_OUT_OF_MEMORY streams may lack a
// word: destroy the generation.
KINGLET_API kinglet_status kinglet_generation_next(kinglet_generation* generation, int32_t* more);

// *out becomes 1 if the stream has ended, else 0.
// Errors: KINGLET_INVALID_ARGUMENT (no such stream).
KINGLET_API kinglet_status kinglet_generation_ended(const kinglet_generation* generation,
                                                    uint32_t stream, int32_t* out);

// The words that were drawn for a stream, in order, an end token included. `ids` has room for
// `capacity` of them, and may be NULL, to ask for their number only: `*needed`, which may be NULL.
// Errors: KINGLET_INVALID_ARGUMENT (no such stream), KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_generation_ids(const kinglet_generation* generation,
                                                  uint32_t stream, uint32_t* ids, uint64_t capacity,
                                                  uint64_t* needed);

// The text of these words as far as it is known: up to the stop text, and until the stream has
// ended without what may belong to one or to an unfinished character. It continues from the prompt: a
// word that stands alone begins with a space. The end of a line is a newline, the end token that
// ends the stream is nothing. A model that has ids only has no text. `buffer`, `capacity` and
// `needed` as for kinglet_model_token_text.
// Errors: KINGLET_INVALID_ARGUMENT (no such stream), KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_generation_text(const kinglet_generation* generation,
                                                   uint32_t stream, char* buffer, uint64_t capacity,
                                                   uint64_t* needed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_GENERATION_H_
