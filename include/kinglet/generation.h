// Text that a model generates: a part of kinglet.h, which includes this file and whose rules apply
// here.
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

// Streams of drawn tokens that continue from one prompt, with a session of their own. One thread at
// a time may use a generation.
typedef struct kinglet_generation kinglet_generation;

// What to generate. 0 or NULL in a field means the field's default. A longer structure is accepted
// as for kinglet_model_options. What the pointers point to is read during the call only.
typedef struct kinglet_generation_options {
  uint32_t struct_size;  // set by kinglet_generation_options_init
  uint32_t streams;      // number of texts; 0 means 1
  uint64_t tokens;       // the most tokens that are drawn for a stream; 0 means 100
  // Any number. Stream 0 draws with this seed, stream i with the XXH3-64 of the seed and i, two
  // little-endian 64-bit integers, so that no stream depends on the number of streams.
  uint64_t seed;
  const kinglet_draw_options* draw;  // NULL means the defaults of kinglet_draw_options_init
  const char* stop;      // a stream's text ends before these bytes; NULL means no such text
  uint64_t stop_length;  // bytes of `stop`
  uint32_t threads;      // number of threads, as for kinglet_session_options; 0 means 1
  uint32_t reserved;     // zero
} kinglet_generation_options;

// Sets every field of `options` to its default. `struct_size` is
// sizeof(kinglet_generation_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_generation_options_init(kinglet_generation_options* options,
                                                           uint32_t struct_size);

// Creates a generation, and feeds its session the model's start token, if the model has one, and
// the `count` tokens of `prompt`. `prompt` may be NULL if `count` is 0; a model without a start
// token then begins after the end of a line. `options` may be NULL. On success the caller owns *out
// and destroys it with kinglet_generation_destroy.
// Errors: those of kinglet_session_create and kinglet_session_step; KINGLET_INVALID_ARGUMENT
// (invalid options), KINGLET_UNSUPPORTED (a stop text for a model of ids only).
KINGLET_API kinglet_status kinglet_generation_create(const kinglet_model* model,
                                                     const kinglet_generation_options* options,
                                                     const uint32_t* prompt, uint64_t count,
                                                     kinglet_generation** out);

// Destroys the handle.
KINGLET_API void kinglet_generation_destroy(kinglet_generation* generation);

// Draws a token for every stream that has not ended. *more becomes 1 if a stream continues, else 0,
// also when all streams had ended before. A stream ends after the number of tokens in the options,
// with the model's end token, and where its text reaches the stop text.
// Errors: those of kinglet_session_draw and kinglet_session_step; KINGLET_INVALID_ARGUMENT (an
// empty prompt for a model in which no token begins a text). After KINGLET_OUT_OF_MEMORY streams
// may lack a token: destroy the generation.
KINGLET_API kinglet_status kinglet_generation_next(kinglet_generation* generation, int32_t* more);

// *out becomes 1 if the stream has ended, else 0.
// Errors: KINGLET_INVALID_ARGUMENT (no such stream).
KINGLET_API kinglet_status kinglet_generation_ended(const kinglet_generation* generation,
                                                    uint32_t stream, int32_t* out);

// The ids of the tokens that were drawn for a stream, in order, an end token included. `ids` has
// room for `capacity` elements, or is NULL. `*needed`, if `needed` is not NULL, becomes the number
// of tokens. Errors: KINGLET_INVALID_ARGUMENT (no such stream), KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_generation_ids(const kinglet_generation* generation,
                                                  uint32_t stream, uint32_t* ids, uint64_t capacity,
                                                  uint64_t* needed);

// The text that the tokens of a stream spell, up to the stop text; while the stream continues,
// without a last part that may belong to the stop text or to an unfinished character. The text
// continues from the prompt: a word that stands alone begins with a space. The end of a line is a
// newline; an end token that ends the stream adds nothing. The text is empty for a model of ids
// only. `buffer`, `capacity` and `needed` as for kinglet_model_token_text.
// Errors: KINGLET_INVALID_ARGUMENT (no such stream), KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_generation_text(const kinglet_generation* generation,
                                                   uint32_t stream, char* buffer, uint64_t capacity,
                                                   uint64_t* needed);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_GENERATION_H_
