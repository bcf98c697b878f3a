// The C interface of kinglet: open a compressed language model, feed it tokens one at a time, ask
// for the probabilities of the next one.
//
//   kinglet_model* model;
//   kinglet_session* session;
//   if (kinglet_model_open("model.kgl", NULL, &model) != KINGLET_OK ||
//       kinglet_session_create(model, NULL, &session) != KINGLET_OK) {
//     fprintf(stderr, "%s\n", kinglet_error_message());
//   }
//
// Rules that hold for every function and are not repeated below:
//   Errors     A function that can fail returns a kinglet_status; kinglet_error_message() then says
//              where, what was expected and what was found. After any error the model and the
//              session are as they were before the call and no output has been written, except
//              where a comment says so. Nothing is thrown, and nothing ends the process.
//   NULL       A NULL handle, or a NULL pointer where no comment allows one, is
//              KINGLET_INVALID_ARGUMENT. An output that may be NULL is then not computed.
//   Memory     Any function may return KINGLET_OUT_OF_MEMORY. Buffers belong to the caller; the
//              library keeps no pointer into them after it returns.
//   Threads    A model is immutable: any number of threads may use one. A session belongs to one
//              thread at a time; different sessions, of one model or of several, are independent.
//              The library starts no threads.
//   Numbers    Log-probabilities are natural logarithms; a word the model holds impossible has
//              minus infinity.
//   Widths     Every integer has a fixed width.
#ifndef KINGLET_KINGLET_H_
#define KINGLET_KINGLET_H_

#include <stdint.h>

#include "kinglet/status.h"

// Marks what the shared library exports; everything else in it is hidden.
#if defined(__GNUC__)
#define KINGLET_API __attribute__((visibility("default")))
#else
#define KINGLET_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// --- the library ---------------------------------------------------------------------------------

// The number this header was written for. It is the shared library's soname, and grows with every
// incompatible change.
#define KINGLET_ABI_VERSION 0

// The same number, of the library in use. Programs that load it by hand compare the two.
KINGLET_API uint32_t kinglet_abi_version(void);

// "0.1.0". Static; do not free.
KINGLET_API const char* kinglet_version_string(void);

// "KINGLET_CORRUPT", or "unknown status" for a number that is none. Static; do not free.
KINGLET_API const char* kinglet_status_name(kinglet_status status);

// One line about the last call that failed in this thread, NUL-terminated; "" before the first.
// Never NULL. The library owns the text: it is valid until the next failing call in this thread or
// the thread's end, and successful calls leave it alone. A line over 1,023 bytes is cut short.
KINGLET_API const char* kinglet_error_message(void);

// --- models --------------------------------------------------------------------------------------

// A verified model, ready to run.
typedef struct kinglet_model kinglet_model;

// How a model is opened. Zero is every field's default, and fields are only ever added at the end:
// a structure longer than the library knows is accepted if the bytes it does not know are zero.
typedef struct kinglet_model_options {
  uint32_t struct_size;  // set by kinglet_model_options_init
  uint32_t reserved;     // zero
  // A session that needs more bytes than this is refused with KINGLET_OUT_OF_MEMORY. 0: 4 GiB.
  uint64_t session_memory_limit;
  // "cpu", "ref" or "ref64"; read during the call only. NULL: "cpu".
  const char* backend;
} kinglet_model_options;

// Makes `options` all defaults. `struct_size` is sizeof(kinglet_model_options) as the caller
// compiled it.
KINGLET_API kinglet_status kinglet_model_options_init(kinglet_model_options* options,
                                                      uint32_t struct_size);

// Opens the model file at `path` and checks all of it, so that no later call can fail because of
// the file; the file may change or vanish afterwards. `options` may be NULL. On success *out is the
// caller's, to be given to kinglet_model_close.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION,
// KINGLET_INVALID_MODEL, KINGLET_UNSUPPORTED (a backend this library lacks).
KINGLET_API kinglet_status kinglet_model_open(const char* path,
                                              const kinglet_model_options* options,
                                              kinglet_model** out);

// The same, of a model file's `size` bytes in memory. They are copied, and need no alignment.
KINGLET_API kinglet_status kinglet_model_open_memory(const void* bytes, uint64_t size,
                                                     const kinglet_model_options* options,
                                                     kinglet_model** out);

// Gives the handle back. Sessions of the model stay valid: they share its memory, which is freed
// with the last of them. NULL is allowed and does nothing.
KINGLET_API void kinglet_model_close(kinglet_model* model);

// The number of words; ids are 0 .. vocabulary size - 1.
KINGLET_API kinglet_status kinglet_model_vocabulary_size(const kinglet_model* model, uint32_t* out);

// 1 if the model knows its words' texts, 0 if it has ids only.
KINGLET_API kinglet_status kinglet_model_has_words(const kinglet_model* model, int32_t* out);

// The bytes of word `id` followed by a NUL. `*needed`, if `needed` is not NULL, becomes the bytes
// that takes, NUL included, also when the call fails with KINGLET_BUFFER_TOO_SMALL (`buffer` is
// then untouched). `buffer` may be NULL to ask for the size only. Words are UTF-8 by habit, but any
// bytes, NUL among them, may occur: the word is needed - 1 bytes long.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_model_token_text(const kinglet_model* model, uint32_t id,
                                                    char* buffer, uint64_t capacity,
                                                    uint64_t* needed);

// The id of the word that is exactly these `length` bytes; no NUL is needed.
// Errors: KINGLET_UNKNOWN_WORD, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_model_find_token(const kinglet_model* model, const char* text,
                                                    uint64_t length, uint32_t* id);

// What names the model file's content: 32 hexadecimal digits and a NUL. Buffer, capacity and needed
// as for kinglet_model_token_text. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_model_digest(const kinglet_model* model, char* buffer,
                                                uint64_t capacity, uint64_t* needed);

// --- sessions ------------------------------------------------------------------------------------

// One stream of tokens through a model.
typedef struct kinglet_session kinglet_session;

// What the probabilities are while a model's neural cache is still empty.
enum kinglet_empty_cache {
  // As the original code computes: the cache's share of the probability is lost.
  KINGLET_EMPTY_CACHE_REFERENCE = 0,
  // The softmax alone, which sums to one.
  KINGLET_EMPTY_CACHE_NORMALISED = 1,
};

// How a session runs. Grows like kinglet_model_options.
typedef struct kinglet_session_options {
  uint32_t struct_size;  // set by kinglet_session_options_init
  uint32_t empty_cache;  // a kinglet_empty_cache
} kinglet_session_options;

// Makes `options` all defaults. `struct_size` is sizeof(kinglet_session_options) as the caller
// compiled it.
KINGLET_API kinglet_status kinglet_session_options_init(kinglet_session_options* options,
                                                        uint32_t struct_size);

// Starts a stream. The session keeps the model's memory alive; the model's handle may be closed
// before it. `options` may be NULL. On success *out is the caller's, to be given to
// kinglet_session_destroy.
KINGLET_API kinglet_status kinglet_session_create(const kinglet_model* model,
                                                  const kinglet_session_options* options,
                                                  kinglet_session** out);

// NULL is allowed and does nothing.
KINGLET_API void kinglet_session_destroy(kinglet_session* session);

// Back to the start of a stream: position 0, nothing remembered.
KINGLET_API kinglet_status kinglet_session_reset(kinglet_session* session);

// Processes one token. The "cpu" backend allocates nothing on the models it has kernels for; where
// reference kernels run, a token allocates and may fail with KINGLET_OUT_OF_MEMORY.
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_step(kinglet_session* session, uint32_t id);

// The number of tokens processed since the start.
KINGLET_API kinglet_status kinglet_session_position(const kinglet_session* session, uint64_t* out);

// The queries below are about the token that follows the last step. They compute only what they
// need, remember it until the next step, and may be asked in any order, any number of times. Each
// may fail with KINGLET_NO_TOKEN_YET (before the first step) and KINGLET_NOT_FINITE (the model's
// own numbers overflowed).

// The log-probability of word `id`. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t id,
                                                           double* out);

// The log-probability of every word, at its id. `capacity` is what `out` can hold; entries beyond
// the vocabulary size are left alone. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_log_probabilities(kinglet_session* session, float* out,
                                                             uint64_t capacity);

// The k most probable words, most probable first, equal ones by lower id; all words if k exceeds
// the vocabulary size. `*count`, if `count` is not NULL, becomes their number, also when the call
// fails with KINGLET_BUFFER_TOO_SMALL. `ids` and `log_probabilities` have room for `capacity`
// entries each; either may be NULL. The answer is exact: the same, to the last bit, as sorting
// every word. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t k,
                                                 uint32_t* ids, double* log_probabilities,
                                                 uint64_t capacity, uint32_t* count);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_KINGLET_H_
