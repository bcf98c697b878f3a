// The C interface of kinglet: open a compressed language model, feed it tokens one at a time, ask
// for the probabilities of the next one; or ask a model for its words' vectors.
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
//   Threads    Models and states are immutable: any number of threads may use one; only giving its
//              handle back wants every other call with it to have ended. A session or an embedding
//              belongs to one thread at a time, but for kinglet_session_cancel; different ones, of
//              one model or of several, are independent. The library starts no threads.
//   Handles    Each handle is its creator's to give back, in any order: sessions, embeddings and
//              states keep what they need of their model after its handle is closed.
//   Numbers    Log-probabilities are natural logarithms; a word the model holds impossible has
//              minus infinity.
//   Structures A structure begins with its size as the caller compiled it, so that a program and a
//              library of different versions understand each other. Fields are only ever added at
//              the end.
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

// How grave a line of the log is.
enum kinglet_log_level {
  KINGLET_LOG_INFO = 1,
  KINGLET_LOG_WARNING = 2,
};

// How a model is opened. Zero is every field's default. A structure longer than the library knows
// is accepted if the bytes it does not know are zero.
typedef struct kinglet_model_options {
  uint32_t struct_size;  // set by kinglet_model_options_init
  uint32_t reserved;     // zero
  // A session whose lanes together need more bytes than this is refused with KINGLET_OUT_OF_MEMORY.
  // 0: 4 GiB.
  uint64_t session_memory_limit;
  // "cpu", "ref", "ref64" or, where this library has it and the machine a device, "cuda"; read
  // during the call only. NULL: "cpu".
  const char* backend;
  // The bytes that the file, the weights as the backend lays them out and all live sessions may
  // hold together, of the host's memory and not of a device's; whatever would need more is refused
  // with KINGLET_OUT_OF_MEMORY. Sessions count kinglet_model_lane_bytes for each lane; states are
  // not among them. 0: no limit.
  uint64_t memory_limit;
  // Called with a kinglet_log_level and one line of NUL-terminated text that is valid during the
  // call only; by any thread that uses the model or a session or state of it, several at once,
  // until the last of these handles is given back. Must return, and must not call the library.
  // NULL: no log.
  void (*log)(void* user, int32_t level, const char* message);
  // The first argument of `log`.
  void* log_user;
} kinglet_model_options;

// Makes `options` all defaults. `struct_size` is sizeof(kinglet_model_options) as the caller
// compiled it. Errors: KINGLET_INVALID_ARGUMENT (a size no structure has).
KINGLET_API kinglet_status kinglet_model_options_init(kinglet_model_options* options,
                                                      uint32_t struct_size);

// Opens the model file at `path` and checks all of it, so that no later call can fail because of
// the file; the file may change or vanish afterwards. `options` may be NULL. On success *out is the
// caller's, to be given to kinglet_model_close.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION,
// KINGLET_INVALID_MODEL, KINGLET_UNSUPPORTED (a backend this library lacks),
// KINGLET_INVALID_ARGUMENT (options that are none).
KINGLET_API kinglet_status kinglet_model_open(const char* path,
                                              const kinglet_model_options* options,
                                              kinglet_model** out);

// The same, of a model file's `size` bytes in memory. They are copied, and need no alignment.
KINGLET_API kinglet_status kinglet_model_open_memory(const void* bytes, uint64_t size,
                                                     const kinglet_model_options* options,
                                                     kinglet_model** out);

// Gives the handle back. Sessions and states of the model stay valid: they share its memory, which
// is freed with the last of them. NULL is allowed and does nothing.
KINGLET_API void kinglet_model_close(kinglet_model* model);

// The number of words; ids are 0 .. vocabulary size - 1.
KINGLET_API kinglet_status kinglet_model_vocabulary_size(const kinglet_model* model, uint32_t* out);

// The word that a stream begins with: what the model's training fed before each text, so that the
// text's first word is predicted too (fairseq's </s>). Step it first, on every lane that starts or
// was reset. Errors: KINGLET_UNSUPPORTED (a model whose streams begin with the text).
KINGLET_API kinglet_status kinglet_model_start_token(const kinglet_model* model, uint32_t* out);

// How many tokens a stream has positions for, in a model with absolute ones; a start token is one
// of them. The token after the last has position 0 again and sees nothing before it, as if the
// lane had been reset; kinglet_session_position goes on counting. For other answers there, reset
// the lane before and feed it again as many of the last tokens as it shall see.
// Errors: KINGLET_UNSUPPORTED (a model whose streams have no end).
KINGLET_API kinglet_status kinglet_model_positions(const kinglet_model* model, uint32_t* out);

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

// How many words the source of a translation has; 0 for a model without an encoder. The functions
// above are about the words that the model predicts.
KINGLET_API kinglet_status kinglet_model_source_vocabulary_size(const kinglet_model* model,
                                                                uint32_t* out);

// As kinglet_model_find_token, of the source's words. Errors: KINGLET_UNKNOWN_WORD,
// KINGLET_UNSUPPORTED (no encoder, or ids only).
KINGLET_API kinglet_status kinglet_model_find_source_token(const kinglet_model* model,
                                                           const char* text, uint64_t length,
                                                           uint32_t* id);

// What names the model file's content: 32 hexadecimal digits and a NUL. Buffer, capacity and needed
// as for kinglet_model_token_text. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_model_digest(const kinglet_model* model, char* buffer,
                                                uint64_t capacity, uint64_t* needed);

// The name of the backend that computes, and a NUL. Buffer, capacity and needed as for
// kinglet_model_token_text. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_model_backend(const kinglet_model* model, char* buffer,
                                                 uint64_t capacity, uint64_t* needed);

// The bytes each lane of a session allocates when the session is created, at most: more than eight
// lanes share memory in which they answer queries, and take less. Not in them: some numbers for
// each word of the largest cluster, once, and the pages that saving, restoring and forking leave
// with a lane, at most as many bytes again as its state.
KINGLET_API kinglet_status kinglet_model_lane_bytes(const kinglet_model* model, uint64_t* out);

// The bytes kinglet_state_write needs at most for a state of this model.
KINGLET_API kinglet_status kinglet_model_state_bytes(const kinglet_model* model, uint64_t* out);

// --- sessions ------------------------------------------------------------------------------------

// One or more streams of tokens, called lanes, through a model. A lane's numbers are those of a
// session of its own fed the same tokens, to the last bit. Wherever a lane is given below,
// KINGLET_INVALID_ARGUMENT says that the session has no such lane; they are 0 .. lanes - 1.
typedef struct kinglet_session kinglet_session;

// What the probabilities are while a model's neural cache is still empty.
enum kinglet_empty_cache {
  // As the original code computes: the cache's share of the probability is lost.
  KINGLET_EMPTY_CACHE_REFERENCE = 0,
  // The softmax alone, which sums to one.
  KINGLET_EMPTY_CACHE_NORMALISED = 1,
};

// How a session runs. Zero is every field's default; grows like kinglet_model_options.
//
// With `threads` above 1 each call of the session divides its work among the calling thread and
// helpers, `threads` in all but no more than the processors that the caller may run on. Helpers are
// created with the session and end with it. Between its calls they sleep, they handle no signals,
// and they call nothing of the caller's. No number changes by a bit.
typedef struct kinglet_session_options {
  uint32_t struct_size;  // set by kinglet_session_options_init
  uint32_t empty_cache;  // a kinglet_empty_cache
  uint32_t lanes;        // 0: 1
  uint32_t threads;      // 0: 1
} kinglet_session_options;

// Makes `options` all defaults. `struct_size` is sizeof(kinglet_session_options) as the caller
// compiled it. Errors: KINGLET_INVALID_ARGUMENT (a size no structure has).
KINGLET_API kinglet_status kinglet_session_options_init(kinglet_session_options* options,
                                                        uint32_t struct_size);

// Starts a session, every lane at the start of a stream. It keeps the model's memory alive; the
// model's handle may be closed before it. `options` may be NULL. On success *out is the caller's,
// to be given to kinglet_session_destroy.
// Errors: KINGLET_UNSUPPORTED (a model that predicts nothing: an embedding, which
// kinglet_embedding_create serves), KINGLET_OUT_OF_MEMORY (also beyond a memory limit of the
// model's options, or where the system has no more threads), KINGLET_INVALID_ARGUMENT (options that
// are none).
KINGLET_API kinglet_status kinglet_session_create(const kinglet_model* model,
                                                  const kinglet_session_options* options,
                                                  kinglet_session** out);

// NULL is allowed and does nothing.
KINGLET_API void kinglet_session_destroy(kinglet_session* session);

// The number of lanes.
KINGLET_API kinglet_status kinglet_session_lanes(const kinglet_session* session, uint32_t* out);

// Processes one token on one lane. The "cpu" backend allocates nothing on the models it has kernels
// for; where reference kernels run, a token allocates and may fail with KINGLET_OUT_OF_MEMORY.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_CANCELLED, KINGLET_NO_SOURCE_YET (the model has an
// encoder and kinglet_session_encode was not called since the start).
KINGLET_API kinglet_status kinglet_session_step(kinglet_session* session, uint32_t lane,
                                                uint32_t id);

// Processes token ids[i] on lane lanes[i] for every i < count, each weight being fetched once for
// all of them: all, or after an error none. The arrays may be NULL if `count` is 0.
// Errors: as kinglet_session_step, and KINGLET_INVALID_ARGUMENT if a lane occurs twice.
KINGLET_API kinglet_status kinglet_session_step_lanes(kinglet_session* session,
                                                      const uint32_t* lanes, const uint32_t* ids,
                                                      uint64_t count);

// Of a model with an encoder: begins the lane's stream anew with the `count` tokens of a source, at
// least one. Then step the word that begins a translation (OpenNMT's "<s>") and ask for what
// follows. Forks and saved states share the encoded source. It allocates.
// Errors: KINGLET_UNSUPPORTED (no encoder), KINGLET_INVALID_ARGUMENT (no tokens, or more than the
// encoder has positions), KINGLET_ID_OUT_OF_RANGE, KINGLET_CANCELLED, KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_encode(kinglet_session* session, uint32_t lane,
                                                  const uint32_t* source, uint64_t count);

// Takes the lane back to the start of a stream: position 0, nothing remembered, no source.
KINGLET_API kinglet_status kinglet_session_reset(kinglet_session* session, uint32_t lane);

// The number of tokens processed since the start.
KINGLET_API kinglet_status kinglet_session_position(const kinglet_session* session, uint32_t lane,
                                                    uint64_t* out);

// Makes lane `to` a copy of lane `from`, which may be the same one. Only the memory in which they
// differ is copied.
KINGLET_API kinglet_status kinglet_session_fork(kinglet_session* session, uint32_t from,
                                                uint32_t to);

// From any thread, while another may be in a call with the session: the call that is running, or
// else the next that computes something (a source, a step or a query), stops before its next step
// and returns KINGLET_CANCELLED; calls after that one run as ever. The session must not be
// destroyed meanwhile.
KINGLET_API kinglet_status kinglet_session_cancel(kinglet_session* session);

// --- queries -------------------------------------------------------------------------------------

// The queries below are about the token that follows the lane's last step. They compute only what
// they need, remember it until the lane's next step (in a session of more than eight lanes: or
// until eight others have been asked), and may be asked in any order, any number of times. Each may
// fail with KINGLET_NO_TOKEN_YET (before the lane's first step), KINGLET_NOT_FINITE (the model's
// own numbers overflowed) and KINGLET_CANCELLED.

// The log-probability of word `id`. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability(kinglet_session* session, uint32_t lane,
                                                           uint32_t id, double* out);

// The log-probability of every word, at its id. `capacity` is what `out` can hold; entries beyond
// the vocabulary size are left alone. "ref64" computes in double and rounds here.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_log_probabilities(kinglet_session* session,
                                                             uint32_t lane, float* out,
                                                             uint64_t capacity);

// The log-probability of each of `count` words: out[i] is that of ids[i]. A word may occur more
// than once. Both arrays may be NULL if `count` is 0. Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probabilities_of(kinglet_session* session,
                                                                uint32_t lane, const uint32_t* ids,
                                                                uint64_t count, double* out);

// The probability of every word, otherwise as kinglet_session_log_probabilities.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_probabilities(kinglet_session* session, uint32_t lane,
                                                         float* out, uint64_t capacity);

// The k most probable words, most probable first, equal ones by lower id; all words if k exceeds
// the vocabulary size. `*count`, if `count` is not NULL, becomes their number, also when the call
// fails with KINGLET_BUFFER_TOO_SMALL. `ids` and `log_probabilities` have room for `capacity`
// entries each; either may be NULL. The answer is exact: the same, to the last bit, as sorting
// every word. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k(kinglet_session* session, uint32_t lane,
                                                 uint32_t k, uint32_t* ids,
                                                 double* log_probabilities, uint64_t capacity,
                                                 uint32_t* count);

// A word drawn with probability proportional to p(word)^(1 / temperature); temperature 0, or so low
// that its reciprocal overflows: the most probable word. The draw depends on the stream, the seed
// and the temperature alone: asked again it is the same, as it is on another lane or machine.
// So streams at the same position want different seeds.
// Errors: KINGLET_INVALID_ARGUMENT unless the temperature is finite and at least 0.
KINGLET_API kinglet_status kinglet_session_sample(kinglet_session* session, uint32_t lane,
                                                  uint64_t seed, double temperature, uint32_t* out);

// The same asked of `count` lanes, none twice, with an answer for each in their order: the number,
// to the last bit, that asking the lane alone gives. The weights of the softmax are fetched once
// for several lanes. Lanes remember, and kinglet_session_last_work reports, what they would have if
// asked alone. An error of one lane is the answer to all. The arrays may be NULL if `count` is 0.
// Besides the errors above: KINGLET_INVALID_ARGUMENT if a lane occurs twice, KINGLET_OUT_OF_MEMORY.

// out[i] becomes the log-probability of word ids[i] after lane lanes[i].
// Errors: KINGLET_ID_OUT_OF_RANGE.
KINGLET_API kinglet_status kinglet_session_log_probability_lanes(kinglet_session* session,
                                                                 const uint32_t* lanes,
                                                                 const uint32_t* ids,
                                                                 uint64_t count, double* out);

// The k most probable words after each lane. `*per_lane`, if `per_lane` is not NULL, becomes their
// number, the same for all lanes: k, or the vocabulary size if that is less; also when the call
// fails with KINGLET_BUFFER_TOO_SMALL. Entry i * *per_lane + j of `ids` and `log_probabilities`,
// either of which may be NULL, is lane lanes[i]'s j-th; each has room for `capacity` entries.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_session_top_k_lanes(kinglet_session* session,
                                                       const uint32_t* lanes, uint64_t count,
                                                       uint32_t k, uint32_t* ids,
                                                       double* log_probabilities, uint64_t capacity,
                                                       uint32_t* per_lane);

// out[i] becomes the word that kinglet_session_sample draws on lane lanes[i] with seeds[i].
// Errors: KINGLET_INVALID_ARGUMENT unless the temperature is finite and at least 0.
KINGLET_API kinglet_status kinglet_session_sample_lanes(kinglet_session* session,
                                                        const uint32_t* lanes,
                                                        const uint64_t* seeds, uint64_t count,
                                                        double temperature, uint32_t* out);

// Computes all that any question about these lanes can need, which then only reads it. Call it
// before asking lane by lane for full distributions, for at most eight lanes at a time: so many are
// remembered, and what is computed is still in the processor's caches when it is read.
KINGLET_API kinglet_status kinglet_session_compute_lanes(kinglet_session* session,
                                                         const uint32_t* lanes, uint64_t count);

// What a query computed, without what an earlier one about the same token had. docs/ACCOUNTING.md
// says what counts as an operation; weights that are zero count.
typedef struct kinglet_work {
  uint32_t struct_size;      // set by the caller: sizeof(kinglet_work) as it compiled it
  uint32_t cache_computed;   // 1: the neural cache's weights were computed
  uint64_t clusters_opened;  // bit i < 64: cluster i of the softmax was computed (0 = the head)
  double multiplications;
  double additions;        // and subtractions
  double others;           // divisions, roots, exponentials, logarithms, comparisons, roundings
  uint64_t cluster_count;  // clusters computed, those past the 64th too
} kinglet_work;

// What the lane's last query did, also if it failed; nothing after a step, a reset, a restore or a
// fork onto it from another lane. A call refused for its arguments is no query and leaves this
// alone. Fields of a longer structure that this library does not know become zero.
// Errors: KINGLET_INVALID_ARGUMENT (a struct_size no structure has).
KINGLET_API kinglet_status kinglet_session_last_work(const kinglet_session* session, uint32_t lane,
                                                     kinglet_work* out);

// --- states --------------------------------------------------------------------------------------

// What a stream remembers, as a value: keep it, compare it, give it back to any lane of any session
// of the same model, or write it as bytes for another process. States taken from one stream share
// what they have in common, so one that is a few tokens older than another costs little. A state
// outlives its session and its model's handle.
typedef struct kinglet_state kinglet_state;

// The lane's state. On success *out is the caller's, to be given to kinglet_state_destroy.
KINGLET_API kinglet_status kinglet_session_save(kinglet_session* session, uint32_t lane,
                                                kinglet_state** out);

// Makes the lane go on from where the state was taken. The state stays the caller's.
// Errors: KINGLET_MISMATCH (of another model file, or of a backend with other real numbers).
KINGLET_API kinglet_status kinglet_session_restore(kinglet_session* session, uint32_t lane,
                                                   const kinglet_state* state);

// NULL is allowed and does nothing.
KINGLET_API void kinglet_state_destroy(kinglet_state* state);

// The number of tokens the stream had processed.
KINGLET_API kinglet_status kinglet_state_position(const kinglet_state* state, uint64_t* out);

// 1 if streams in these states answer every question alike for ever: the same model, position, last
// token and memory, bit for bit; else 0.
KINGLET_API kinglet_status kinglet_state_equal(const kinglet_state* a, const kinglet_state* b,
                                               int32_t* out);

// A number that is the same for equal states, in every process on every machine.
KINGLET_API kinglet_status kinglet_state_hash(const kinglet_state* state, uint64_t* out);

// The bytes kinglet_state_write needs for this state.
KINGLET_API kinglet_status kinglet_state_bytes(const kinglet_state* state, uint64_t* out);

// Writes the state as bytes that name their model and carry a checksum; the same on every machine.
// `*needed`, if `needed` is not NULL, becomes their number, also when the call fails with
// KINGLET_BUFFER_TOO_SMALL (`buffer` is then untouched). `buffer` may be NULL to ask for the size
// only. Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_state_write(const kinglet_state* state, void* buffer,
                                               uint64_t capacity, uint64_t* needed);

// The state that these `size` bytes are; they are copied, and need no alignment. Whatever they are,
// the worst a state so read can do is give wrong probabilities. On success *out is the caller's, to
// be given to kinglet_state_destroy.
// Errors: KINGLET_CORRUPT (no state, cut short or damaged, or of a stream whose own numbers had
// overflowed), KINGLET_UNSUPPORTED_VERSION,
// KINGLET_MISMATCH (of another model file, or of a backend with other real numbers).
KINGLET_API kinglet_status kinglet_state_read(const kinglet_model* model, const void* bytes,
                                              uint64_t size, kinglet_state** out);

// --- embeddings ----------------------------------------------------------------------------------

// The vectors of a model's words and, where the model has a classifier, class scores of lists of
// words. Every model has vectors: a language model gives those its first layer is fed.
typedef struct kinglet_embedding kinglet_embedding;

// Keeps the model's memory alive; the model's handle may be closed before it. It takes as much
// memory as a session's lane, and counts as one. On success *out is the caller's, to be given to
// kinglet_embedding_destroy. Errors: KINGLET_OUT_OF_MEMORY (also beyond a memory limit of the
// model's options).
KINGLET_API kinglet_status kinglet_embedding_create(const kinglet_model* model,
                                                    kinglet_embedding** out);

// NULL is allowed and does nothing.
KINGLET_API void kinglet_embedding_destroy(kinglet_embedding* embedding);

// The numbers in a word's vector.
KINGLET_API kinglet_status kinglet_embedding_width(const kinglet_embedding* embedding,
                                                   uint32_t* out);

// The number of classes; 0 if the model has no classifier.
KINGLET_API kinglet_status kinglet_embedding_classes(const kinglet_embedding* embedding,
                                                     uint32_t* out);

// The vectors of `count` words, one after the other: out[i * width + j] is entry j of that of
// ids[i]. A word may occur more than once. `capacity` is what `out` can hold; entries beyond
// count * width are left alone. Both arrays may be NULL if `count` is 0. "ref64" computes in double
// and rounds here. After KINGLET_NOT_FINITE and KINGLET_OUT_OF_MEMORY the first vectors may have
// been written. Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_NOT_FINITE (the
// model's own numbers overflowed).
KINGLET_API kinglet_status kinglet_embedding_vectors(kinglet_embedding* embedding,
                                                     const uint32_t* ids, uint64_t count,
                                                     float* out, uint64_t capacity);

// The score of every class for a list of `count` words: its logit and its log-probability, which is
// the logit less the logarithm of the sum of all exponentials. `capacity` is what each array can
// hold; either may be NULL, and entries beyond the number of classes are left alone.
// Errors: KINGLET_UNSUPPORTED (no classifier), KINGLET_INVALID_ARGUMENT (no word in the list but
// padding), KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_NOT_FINITE (the model's own
// numbers overflowed).
KINGLET_API kinglet_status kinglet_embedding_classify(kinglet_embedding* embedding,
                                                      const uint32_t* ids, uint64_t count,
                                                      double* logits, double* log_probabilities,
                                                      uint64_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_KINGLET_H_
