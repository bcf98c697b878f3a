// The C interface of kinglet, a runtime for compressed language models. A program opens a model
// file, feeds it tokens one at a time and asks for the probabilities of the next token. Every model
// also gives the vectors of its tokens. examples/stream.c and README.md show how.
//
// A *token* is an entry of the model's vocabulary (a word, a piece of a word or a mark) and also an
// occurrence of such an entry in a text. A token's *id* is its number, from 0 to the vocabulary
// size - 1. A *word* is a word of a text: one token of a model of words, one or more tokens of a
// model of pieces. A *stream* is a sequence of tokens, processed in order; its position is the
// number of tokens processed so far. A *lane* is a slot of a session that contains one stream;
// lanes are numbered from 0. A *query* asks about the token that comes next.
//
// Rules for every function, not repeated below:
//   Errors     A function that can fail returns a kinglet_status, which is KINGLET_OK on success.
//              After an error kinglet_error_message() reports where it occurred, what was expected
//              and what was found. The model and the session are then as they were before the call,
//              and no output has been written, except where a comment documents more. The library
//              throws no exceptions and never ends the process.
//   NULL       A NULL handle, or a NULL pointer where no comment allows one, is refused with
//              KINGLET_INVALID_ARGUMENT. An optional output that is NULL is not written.
//   Memory     Any function may return KINGLET_OUT_OF_MEMORY. Sizes of memory are in bytes. Buffers
//              belong to the caller; the library keeps no pointer into them after it returns.
//   Threads    Models and states are immutable, and any number of threads may use one at the same
//              time. One thread at a time may use a session, a beam, an embedding, a generation or
//              a coder, except for the functions named `.._cancel`. Different handles are
//              independent, even those of one model. A call that destroys a handle must be the
//              last to use it. The library starts threads only for a handle whose option `threads`
//              is above 1. With the backend "cuda" NVIDIA's driver starts its own.
//              Steps and queries of "cpu" and "ref" take no lock, and 64 KiB of stack at most.
//   Processes  A child that fork(2) made may continue with all handles and destroys its own copies
//              of them. Exceptions: a session that was in a call at that moment, which the child
//              may only destroy, and every handle of "cuda". A session's worker threads stay with
//              the parent: in the child its calls run in the calling thread alone, with the same
//              results.
//   Handles    The caller destroys each handle that it created, in any order: sessions, beams,
//              embeddings, generations, coders and states keep what they need of their model.
//              Destroying NULL does nothing.
//   Numbers    Log-probabilities are natural logarithms; an impossible token has minus infinity.
//              The caller's float environment (rounding, denormals, precision, traps) changes no
//              bit, and is as it was when a function returns, the flags of exceptions too.
//   Structures A structure begins with its size as the caller compiled it, so that a program and a
//              library of different versions work together. New fields are added at the end only.
#ifndef KINGLET_KINGLET_H_
#define KINGLET_KINGLET_H_

#include <stdint.h>

#include "kinglet/archive.h"
#include "kinglet/beam.h"
#include "kinglet/export.h"
#include "kinglet/generation.h"
#include "kinglet/ngrams.h"
#include "kinglet/queries.h"
#include "kinglet/status.h"
#include "kinglet/tree.h"
#include "kinglet/typing.h"
#include "kinglet/words.h"

#ifdef __cplusplus
extern "C" {
#endif

// --- the library ---------------------------------------------------------------------------------

// The version of the binary interface, also in the soname. Every incompatible change increases the
// version.
#define KINGLET_ABI_VERSION 0

// Returns the KINGLET_ABI_VERSION of the library in use. A program that loads the library by hand
// (dlopen) compares it with the version of the header.
KINGLET_API uint32_t kinglet_abi_version(void);

// The library's version, such as "0.1.0". The text is static; do not free it.
KINGLET_API const char* kinglet_version_string(void);

// The name of a status, such as "KINGLET_CORRUPT"; "unknown status" for any other number. The text
// is static; do not free it.
KINGLET_API const char* kinglet_status_name(kinglet_status status);

// One NUL-terminated line, of at most 1,023 bytes, about the last call that failed in this thread;
// "" if no call has failed. Never NULL. The library owns the text, which stays valid until the next
// call that fails in this thread or until the thread ends; successful calls do not change it.
KINGLET_API const char* kinglet_error_message(void);

// --- models --------------------------------------------------------------------------------------

// A verified model, ready to run. Immutable; any number of threads may share one.
typedef struct kinglet_model kinglet_model;

// How serious a line of the log is.
enum kinglet_log_level {
  KINGLET_LOG_INFO = 1,
  KINGLET_LOG_WARNING = 2,
};

// How to open a model. 0 or NULL in a field means the field's default. A structure that is longer
// than the library's own is accepted if the bytes that the library does not know are 0.
typedef struct kinglet_model_options {
  uint32_t struct_size;  // set by kinglet_model_options_init
  uint32_t reserved;     // zero
  // The most bytes that the lanes of one session may take together; a session that needs more is
  // refused with KINGLET_OUT_OF_MEMORY. 0 means 4 GiB.
  uint64_t session_memory_limit;
  // The backend, which computes: "cpu" (the processor), "cuda" (an NVIDIA GPU, where the library
  // was built for one and the machine has one), "ref" or "ref64" (the slow, readable reference in
  // float or double) or "onednn". The backend "onednn" computes as "cpu", except that the library
  // oneDNN computes float32 products of encoders and of sessions of eight lanes or more: its
  // log-probabilities are within 1e-4 of the other backends', not equal to the last bit, and float
  // weights are in memory twice. oneDNN is loaded when a model asks for this backend, and must be
  // installed. The text is read during the call only. NULL means "cpu".
  const char* backend;
  // The most bytes of the host's memory, not of a device's, that these may take together: the file,
  // its tables of tokens and text, the weights as the backend stores them, all live sessions, all
  // states, and calls while they tokenize texts or spell words (192 bytes for each byte of a text).
  // An allocation that would exceed the limit is refused with KINGLET_OUT_OF_MEMORY before it is
  // made. A session counts as kinglet_model_lane_bytes for each of its lanes, and with an encoder
  // as at most 16 MiB more. States, and what lanes keep of states that were saved, restored or
  // forked, count as their pages of 4 KiB; a shared page counts once. A state also counts as 16
  // bytes for each page that it could have. 0 means no limit, except that opening takes at most 64
  // MiB and 64 bytes for each byte of the file, which no real model needs.
  uint64_t memory_limit;
  // Called with a kinglet_log_level and one NUL-terminated line, which is valid during the call
  // only. Any thread that uses the model, or a session or state of the model, may make the call,
  // several threads at once, until the last of these handles is destroyed. The function must
  // return, must not call the library, and finds the float environment that a program starts with.
  // NULL means no log.
  void (*log)(void* user, int32_t level, const char* message);
  void* log_user;  // passed to `log` as its first argument
} kinglet_model_options;

// Sets every field of `options` to its default. `struct_size` is sizeof(kinglet_model_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_model_options_init(kinglet_model_options* options,
                                                      uint32_t struct_size);

// Opens the model file at `path` and checks the complete file, so that no later call can fail
// because of the file, which may change or disappear once this function has returned. `options` may
// be NULL. On success the caller owns *out and closes it with kinglet_model_close.
// Errors: KINGLET_NOT_FOUND, KINGLET_IO_ERROR, KINGLET_CORRUPT, KINGLET_UNSUPPORTED_VERSION,
// KINGLET_INVALID_MODEL, KINGLET_UNSUPPORTED (a backend that this library lacks),
// KINGLET_INVALID_ARGUMENT (invalid options).
KINGLET_API kinglet_status kinglet_model_open(const char* path,
                                              const kinglet_model_options* options,
                                              kinglet_model** out);

// Like kinglet_model_open, for a model file whose `size` bytes are in memory at `bytes`. The bytes
// are copied, and need no alignment. Errors: those of kinglet_model_open, except KINGLET_NOT_FOUND
// and KINGLET_IO_ERROR.
KINGLET_API kinglet_status kinglet_model_open_memory(const void* bytes, uint64_t size,
                                                     const kinglet_model_options* options,
                                                     kinglet_model** out);

// Destroys the handle. The model's memory is freed with its last session, embedding or state.
KINGLET_API void kinglet_model_close(kinglet_model* model);

// The number of tokens in the model's vocabulary. Ids are 0 .. vocabulary size - 1.
KINGLET_API kinglet_status kinglet_model_vocabulary_size(const kinglet_model* model, uint32_t* out);

// The id of the token that the model's training put before each text (fairseq's "</s>"), so that
// the text's first token is predicted too. Step the start token first on every lane that is new or
// was reset.
// Errors: KINGLET_UNSUPPORTED (a model whose streams begin with the text itself).
KINGLET_API kinglet_status kinglet_model_start_token(const kinglet_model* model, uint32_t* out);

// The number of positions of a model with absolute positions: how many tokens, the start token
// included, a stream processes before the model's positions start again at 0. The token after them
// sees no earlier token, as if the lane had been reset; kinglet_session_position continues
// counting. To let that token see some context, reset the lane and step the most recent tokens
// again.
// Errors: KINGLET_UNSUPPORTED (a model without absolute positions: its streams have no end).
KINGLET_API kinglet_status kinglet_model_positions(const kinglet_model* model, uint32_t* out);

// *out becomes 1 if the model file contains the text of each token, 0 if it contains ids only.
KINGLET_API kinglet_status kinglet_model_has_words(const kinglet_model* model, int32_t* out);

// Writes the text of token `id` and a NUL to `buffer`, which has room for `capacity` bytes.
// `*needed`, if `needed` is not NULL, becomes the number of bytes written, NUL included, also when
// the call fails with KINGLET_BUFFER_TOO_SMALL (`buffer` is then untouched). `buffer` may be NULL,
// to ask for the size only. Texts are usually UTF-8, but any bytes may occur, NUL among them: the
// text has *needed - 1 bytes.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_model_token_text(const kinglet_model* model, uint32_t id,
                                                    char* buffer, uint64_t capacity,
                                                    uint64_t* needed);

// Writes the texts of all tokens to `buffer` in order of ids, each with a NUL. offsets[id] becomes
// the byte at which the text of token `id` begins, and offsets[vocabulary size] the end of the last
// one: a text has offsets[id + 1] - offsets[id] - 1 bytes. `offsets` has room for vocabulary size +
// 1 elements, or is NULL. `buffer`, `capacity` and `needed` as for kinglet_model_token_text; while
// `buffer` is NULL no offsets are written.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_model_token_texts(const kinglet_model* model, char* buffer,
                                                     uint64_t capacity, uint64_t* needed,
                                                     uint64_t* offsets);

// Tokens of the vocabulary that are no text.
enum kinglet_special_token {
  // The token for text that the vocabulary lacks: the tokenizer's unknown piece, or "<unk>".
  KINGLET_TOKEN_UNKNOWN = 1,
  // The token to step before the first one of a text: the start token, or else the end of a line.
  KINGLET_TOKEN_BEGIN = 2,
  // The token after a line: the one with which the model ends a text, or else the first of "<eos>",
  // "</s>", "<sos/eos>" and a newline that is in the vocabulary.
  KINGLET_TOKEN_END_OF_LINE = 3,
};

// The id of a special token; `which` is a kinglet_special_token.
// Errors: KINGLET_UNSUPPORTED (the vocabulary contains no such token), KINGLET_INVALID_ARGUMENT (an
// unknown `which`).
KINGLET_API kinglet_status kinglet_model_special_token(const kinglet_model* model, uint32_t which,
                                                       uint32_t* out);

// The id of the token whose text is exactly the `length` bytes at `text`, which needs no NUL.
// Errors: KINGLET_UNKNOWN_WORD, KINGLET_UNSUPPORTED (ids only).
KINGLET_API kinglet_status kinglet_model_find_token(const kinglet_model* model, const char* text,
                                                    uint64_t length, uint32_t* id);

// *out becomes 1 if the model keeps a character CNN (kinglet_model_spell), otherwise 0.
KINGLET_API kinglet_status kinglet_model_spells(const kinglet_model* model, int32_t* out);

// For a model that keeps a character CNN (convert --keep-characters): the number by which its
// sessions read the word of the `length` bytes at `text`, whose first bytes, as many as the CNN
// reads, count. It is the word's id or, for a word that the vocabulary lacks, a number at or above
// kinglet_model_vocabulary_size, which kinglet_session_step and its likes take as an id, and
// kinglet_embedding_vectors; kinglet_session_step_many predicts the unknown word in its place, and
// every query takes ids alone. Equal words have equal numbers as long as the model is open.
// Errors: KINGLET_UNSUPPORTED (any other model), KINGLET_INVALID_ARGUMENT (no bytes),
// KINGLET_OUT_OF_MEMORY (above 2^22 words, or the model's memory limit).
KINGLET_API kinglet_status kinglet_model_spell(const kinglet_model* model, const char* text,
                                               uint64_t length, uint32_t* number);

// The size of the source's vocabulary in a model with an encoder: the number of tokens of the
// language to translate from. 0 without an encoder. kinglet_model_vocabulary_size and the functions
// about texts of tokens describe the target's vocabulary, which the model predicts.
KINGLET_API kinglet_status kinglet_model_source_vocabulary_size(const kinglet_model* model,
                                                                uint32_t* out);

// The most tokens that the model encodes or reads at once: those of a source to translate, or of a
// text that a masked model reads. 0 for any other model.
KINGLET_API kinglet_status kinglet_model_longest_source(const kinglet_model* model, uint32_t* out);

// Like kinglet_model_find_token, for tokens of the source's vocabulary.
// Errors: KINGLET_UNKNOWN_WORD, KINGLET_UNSUPPORTED (no encoder, or ids only).
KINGLET_API kinglet_status kinglet_model_find_source_token(const kinglet_model* model,
                                                           const char* text, uint64_t length,
                                                           uint32_t* id);

// Splits the `length` bytes at `text` into tokens: with the model file's tokenizer, or, if the file
// contains none, at white space. ids[i] becomes the id of token i, and the token is bytes
// [ranges[2 * i], ranges[2 * i + 1]) of the text. `ids` has room for `capacity` elements and
// `ranges` for 2 * `capacity`; both may be NULL. `*needed`, if `needed` is not NULL, becomes the
// number of tokens. If `ids` is NULL, nothing else is written. Byte order marks where a line begins
// and carriage returns where one ends are ignored, as in the command.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_UNKNOWN_WORD, KINGLET_UNSUPPORTED (a model of ids only;
// a masked model without a tokenizer).
KINGLET_API kinglet_status kinglet_model_tokenize(const kinglet_model* model, const char* text,
                                                  uint64_t length, uint32_t* ids, uint64_t* ranges,
                                                  uint64_t capacity, uint64_t* needed);

// Writes the text that the `count` tokens `ids` spell together and a NUL to `buffer`, which has
// room for `capacity` bytes. `buffer`, `capacity` and `needed` as for kinglet_model_token_text.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_UNSUPPORTED (as for
// kinglet_model_tokenize).
KINGLET_API kinglet_status kinglet_model_detokenize(const kinglet_model* model, const uint32_t* ids,
                                                    uint64_t count, char* buffer, uint64_t capacity,
                                                    uint64_t* needed);

// A digest of the model file's content, which identifies it: 32 hexadecimal digits and a NUL.
// `buffer`, `capacity` and `needed` as for kinglet_model_token_text.
KINGLET_API kinglet_status kinglet_model_digest(const kinglet_model* model, char* buffer,
                                                uint64_t capacity, uint64_t* needed);

// The name of the model's backend, such as "cpu", and a NUL. `buffer`, `capacity` and `needed` as
// for kinglet_model_token_text.
KINGLET_API kinglet_status kinglet_model_backend(const kinglet_model* model, char* buffer,
                                                 uint64_t capacity, uint64_t* needed);

// The most bytes that creating a session allocates for each lane. In a session of more than eight
// lanes each takes less, because lanes share the memory in which queries are answered. Not
// included: a few values for each token of the softmax's largest cluster, once for a session, and
// the copy that a lane keeps of a state that was saved, restored or forked.
KINGLET_API kinglet_status kinglet_model_lane_bytes(const kinglet_model* model, uint64_t* out);

// The most bytes that kinglet_state_write needs for any state of this model.
KINGLET_API kinglet_status kinglet_model_state_bytes(const kinglet_model* model, uint64_t* out);

// --- sessions ------------------------------------------------------------------------------------

// One or more streams through a model, each in a lane of its own. What a lane answers does not
// depend on the other lanes, to the last bit. Every function that takes a session and a lane
// returns KINGLET_INVALID_ARGUMENT if the session has no such lane.
typedef struct kinglet_session kinglet_session;

// What a model with a neural cache predicts while its cache is still empty.
enum kinglet_empty_cache {
  // The prediction of the original framework: the tokens' probabilities sum to 1 - lambda, because
  // the probability mass lambda that belongs to the cache is lost.
  KINGLET_EMPTY_CACHE_REFERENCE = 0,
  // The prediction of the softmax alone, whose probabilities sum to 1.
  KINGLET_EMPTY_CACHE_NORMALISED = 1,
};

// How to create a session. 0 in a field means the field's default. A longer structure is accepted
// as for kinglet_model_options.
//
// With `threads` above 1 the session starts worker threads, among which and the calling thread the
// work of each call is divided: `threads` in all, the caller's included, but no more than the
// processors that the caller may run on. The workers end with the session. The workers sleep
// between its calls, handle no signals and never call `log`. No answer changes by a bit.
typedef struct kinglet_session_options {
  uint32_t struct_size;  // set by kinglet_session_options_init
  uint32_t empty_cache;  // a kinglet_empty_cache
  uint32_t lanes;        // number of lanes; 0 means 1
  uint32_t threads;      // number of threads that compute, the caller's included; 0 means 1
} kinglet_session_options;

// Sets every field of `options` to its default. `struct_size` is sizeof(kinglet_session_options).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_session_options_init(kinglet_session_options* options,
                                                        uint32_t struct_size);

// Creates a session whose lanes are all at the start of a stream. `options` may be NULL. On success
// the caller owns *out and destroys it with kinglet_session_destroy.
// Errors: KINGLET_UNSUPPORTED (a model that predicts nothing: use kinglet_embedding_create),
// KINGLET_OUT_OF_MEMORY (also beyond a memory limit of the model's options, or where the system has
// no more threads), KINGLET_INVALID_ARGUMENT (invalid options).
KINGLET_API kinglet_status kinglet_session_create(const kinglet_model* model,
                                                  const kinglet_session_options* options,
                                                  kinglet_session** out);

// Destroys the session, after its workers have ended.
KINGLET_API void kinglet_session_destroy(kinglet_session* session);

// The number of lanes of the session.
KINGLET_API kinglet_status kinglet_session_lanes(const kinglet_session* session, uint32_t* out);

// Processes token `id` on one lane. The backend "cpu" allocates nothing here, except for a model
// with an operation for which it has no kernel of its own and uses the reference; the log names the
// first such operation.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_CANCELLED, KINGLET_NO_SOURCE_YET (the model has an
// encoder, and no source was encoded since the lane was created or reset), KINGLET_UNSUPPORTED (a
// masked model: use kinglet_session_read).
KINGLET_API kinglet_status kinglet_session_step(kinglet_session* session, uint32_t lane,
                                                uint32_t id);

// Processes token ids[i] on lane lanes[i] for every i < count, and reads each weight from memory
// once for all lanes. After an error no lane has processed its token. Both arrays have `count`
// elements and may be NULL if `count` is 0.
// Errors: those of kinglet_session_step, and KINGLET_INVALID_ARGUMENT if a lane occurs twice.
KINGLET_API kinglet_status kinglet_session_step_lanes(kinglet_session* session,
                                                      const uint32_t* lanes, const uint32_t* ids,
                                                      uint64_t count);

// Processes the `count` tokens `ids` of one lane, in order, with the same results as
// kinglet_session_step for each, to the last bit, but quicker: up to 32 tokens go through a
// Transformer together, and in a recurrent network they share the softmax. The call takes memory
// from the model's limit; where too little is left, tokens go one by one.
// log_probabilities[i] becomes the log-probability of ids[i] after the tokens before it, NaN for
// the first token of a stream; the array has `count` elements, or is NULL if they are not wanted.
// All ids are checked first. `*processed`, if `processed` is not NULL, becomes the number of tokens
// that were processed, also after an error, and the log-probabilities of these are written.
// Errors: those of kinglet_session_step and of queries.
KINGLET_API kinglet_status kinglet_session_step_many(kinglet_session* session, uint32_t lane,
                                                     const uint32_t* ids, uint64_t count,
                                                     double* log_probabilities,
                                                     uint64_t* processed);

// Starts a new stream in the lane and, with the model's encoder, encodes the stream's source: the
// `count` tokens of the sentence to translate. Next, step the token that begins a translation
// (OpenNMT's "<s>") and query what follows. Forks and saved states share the encoded source. The
// call allocates.
// Errors: KINGLET_UNSUPPORTED (no encoder), KINGLET_INVALID_ARGUMENT (no tokens, or more than the
// encoder has positions), KINGLET_ID_OUT_OF_RANGE, KINGLET_CANCELLED, KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_encode(kinglet_session* session, uint32_t lane,
                                                  const uint32_t* source, uint64_t count);

// Starts a new stream in the lane: position 0, an empty memory, no source.
KINGLET_API kinglet_status kinglet_session_reset(kinglet_session* session, uint32_t lane);

// The number of tokens that the lane's stream has processed.
KINGLET_API kinglet_status kinglet_session_position(const kinglet_session* session, uint32_t lane,
                                                    uint64_t* out);

// Makes the stream in lane `to` a copy of the one in lane `from`, which may be the same lane. Only
// the memory in which the two differ is copied.
KINGLET_API kinglet_status kinglet_session_fork(kinglet_session* session, uint32_t from,
                                                uint32_t to);

// Stops the call that is running in the session before its next work item, or else the next call
// that computes a source, a token or a query; the stopped call returns KINGLET_CANCELLED. Later
// calls run normally. Any thread may call this function while the session exists. A work item reads
// at most 16 MiB of a weight for each lane that the call computes, or the memory of those lanes
// once, or the vocabulary once, or 256 MiB of weights where a query of all tokens writes its
// answer: less than 100 ms for lanes of less than 1 GiB and 16 million tokens. On a device a work
// item is a complete token or query.
KINGLET_API kinglet_status kinglet_session_cancel(kinglet_session* session);

// --- masked models -------------------------------------------------------------------------------

// A *masked model* (BERT) reads a complete text at once and predicts the token at any of its
// positions, usually one with the token "[MASK]" (kinglet_model_find_token). Read a text, look at a
// position, and then query as after a step. For any other model, and for a masked model without the
// part that answers, the functions of this section that take a lane return KINGLET_UNSUPPORTED.

// segments[i] becomes the segment of token i of the text, as kinglet_model_tokenize splits it. In a
// text "A ||| B" the tokens of A and the "[SEP]" after them are in segment 0, those of B in segment
// 1; in any other text all are in segment 0. `segments` has room for `capacity` elements, or is
// NULL. `*needed`, if `needed` is not NULL, becomes the number of tokens.
// Errors: those of kinglet_model_tokenize.
KINGLET_API kinglet_status kinglet_model_text_segments(const kinglet_model* model, const char* text,
                                                       uint64_t length, uint32_t* segments,
                                                       uint64_t capacity, uint64_t* needed);

// The number of elements of a text's pooled vector; 0 for a model without a pooler.
KINGLET_API kinglet_status kinglet_model_pooled_width(const kinglet_model* model, uint32_t* out);

// The number of scores of a text: one for each class, or two, for a pair whose second text follows
// the first (score 0) or does not (score 1). In a model that finds answers, the number of scores of
// each token: two, for an answer that starts at the token and one that ends there. 0 for a model
// without scores.
KINGLET_API kinglet_status kinglet_model_score_count(const kinglet_model* model, uint32_t* out);

// Starts a new stream in the lane and reads a text of `count` tokens, "[CLS]" and "[SEP]" among
// them as in training. segments[i] is the segment of token i: 0 for the first text of a pair, 1 for
// the second; NULL means that all are 0. Forks and saved states share what was read. The call takes
// the time of the complete text, and allocates.
// Errors: KINGLET_INVALID_ARGUMENT (no tokens, or more than the model has positions),
// KINGLET_ID_OUT_OF_RANGE (a token or a segment), KINGLET_UNSUPPORTED, KINGLET_CANCELLED,
// KINGLET_OUT_OF_MEMORY.
KINGLET_API kinglet_status kinglet_session_read(kinglet_session* session, uint32_t lane,
                                                const uint32_t* ids, const uint32_t* segments,
                                                uint64_t count);

// Directs the lane's queries, from now on, to one position of its text, from 0: they predict the
// token there. Each call of this function counts as a token in kinglet_session_position.
// Errors: KINGLET_NO_SOURCE_YET (no text was read since the lane was created or reset),
// KINGLET_INVALID_ARGUMENT (a position beyond the text), KINGLET_UNSUPPORTED (a model that predicts
// no tokens), KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_session_look_at(kinglet_session* session, uint32_t lane,
                                                   uint64_t position);

// Writes the pooled vector of the lane's text, which is computed from the vector of its first
// token, to `out`: kinglet_model_pooled_width elements. `capacity` is the number of elements that
// `out` has room for; those beyond are left alone. Every backend but "ref64" computes in float.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_NO_SOURCE_YET, KINGLET_UNSUPPORTED (no pooler),
// KINGLET_NOT_FINITE (an overflow in the model's own arithmetic), KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_session_pooled(kinglet_session* session, uint32_t lane,
                                                  double* out, uint64_t capacity);

// Writes the scores of the lane's text to `out`: kinglet_model_score_count logits, before any
// softmax. In a model that finds answers, the scores are those of the token at `position`; in any
// other model `position` is 0. `capacity` is the number of elements that `out` has room for; those
// beyond are left alone.
// Errors: KINGLET_BUFFER_TOO_SMALL, KINGLET_NO_SOURCE_YET, KINGLET_UNSUPPORTED (no scores),
// KINGLET_INVALID_ARGUMENT (a position beyond the text, or not 0 where it must be),
// KINGLET_NOT_FINITE (an overflow in the model's own arithmetic), KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_session_scores(kinglet_session* session, uint32_t lane,
                                                  uint64_t position, double* out,
                                                  uint64_t capacity);

// --- states --------------------------------------------------------------------------------------

// Everything that a stream remembers, as a value: a program can keep a state, compare it, restore
// it in any lane of any session of the same model, or write it as bytes for another process. States
// of one stream share the memory in which they are equal, so a state that is a few tokens older
// than another costs little. A state is immutable, may be shared by any number of threads, and
// stays valid after its session is destroyed and its model closed.
typedef struct kinglet_state kinglet_state;

// Saves the state of the lane's stream. On success the caller owns *out and destroys it with
// kinglet_state_destroy.
KINGLET_API kinglet_status kinglet_session_save(kinglet_session* session, uint32_t lane,
                                                kinglet_state** out);

// Makes the lane's stream the one that was saved as the state. The caller still owns the state.
// Errors: KINGLET_MISMATCH (the state is of another model file, or of a backend that computes in
// another type: float or double).
KINGLET_API kinglet_status kinglet_session_restore(kinglet_session* session, uint32_t lane,
                                                   const kinglet_state* state);

// Destroys the handle.
KINGLET_API void kinglet_state_destroy(kinglet_state* state);

// The number of tokens that the stream had processed when the state was saved.
KINGLET_API kinglet_status kinglet_state_position(const kinglet_state* state, uint64_t* out);

// *out becomes 1 if the states have the same model, position, last token and memory, bit for bit,
// so that streams restored from them always give the same answers; else 0.
KINGLET_API kinglet_status kinglet_state_equal(const kinglet_state* a, const kinglet_state* b,
                                               int32_t* out);

// A hash of the state. Equal states have equal hashes, in every process and on every machine.
KINGLET_API kinglet_status kinglet_state_hash(const kinglet_state* state, uint64_t* out);

// The number of bytes that kinglet_state_write needs for this state.
KINGLET_API kinglet_status kinglet_state_bytes(const kinglet_state* state, uint64_t* out);

// Writes the state to `buffer` as bytes, the same on every machine, with the digest of its model
// and a checksum. `buffer`, `capacity` and `needed` as for kinglet_model_token_text.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_state_write(const kinglet_state* state, void* buffer,
                                               uint64_t capacity, uint64_t* needed);

// Reads a state from the `size` bytes that kinglet_state_write wrote. The bytes are copied and need
// no alignment. The bytes are checked: forged ones can at worst give wrong probabilities. On
// success the caller owns *out and destroys it with kinglet_state_destroy.
// Errors: KINGLET_CORRUPT (bytes that are not a state, truncated, damaged, or of a stream with an
// overflow in the model's own arithmetic), KINGLET_UNSUPPORTED_VERSION, KINGLET_MISMATCH (as for
// kinglet_session_restore), KINGLET_OUT_OF_MEMORY (beyond the model's limits, or a state larger
// than any session's).
KINGLET_API kinglet_status kinglet_state_read(const kinglet_model* model, const void* bytes,
                                              uint64_t size, kinglet_state** out);

// --- embeddings ----------------------------------------------------------------------------------

// Gives the vectors of a model's tokens and, if the model has a classifier, class scores of lists
// of tokens. Every model has vectors: those of a language model are the input of its first layer.
typedef struct kinglet_embedding kinglet_embedding;

// Creates an embedding, which takes as much memory as a lane of a session, and counts as one. On
// success the caller owns *out and destroys it with kinglet_embedding_destroy.
// Errors: KINGLET_OUT_OF_MEMORY (also beyond a memory limit of the model's options).
KINGLET_API kinglet_status kinglet_embedding_create(const kinglet_model* model,
                                                    kinglet_embedding** out);

// Destroys the handle.
KINGLET_API void kinglet_embedding_destroy(kinglet_embedding* embedding);

// The number of elements of a token's vector.
KINGLET_API kinglet_status kinglet_embedding_width(const kinglet_embedding* embedding,
                                                   uint32_t* out);

// The number of classes; 0 if the model has no classifier.
KINGLET_API kinglet_status kinglet_embedding_classes(const kinglet_embedding* embedding,
                                                     uint32_t* out);

// Writes the vectors of `count` tokens to `out`, one after the other: out[i * width + j] becomes
// element j of the vector of token ids[i]. A token may occur more than once. `capacity` is the
// number of elements that `out` has room for; those beyond count * width are left alone. Both
// arrays may be NULL if `count` is 0. The backend "ref64" computes in double and rounds to float
// here. After KINGLET_NOT_FINITE and KINGLET_OUT_OF_MEMORY the first vectors may have been written.
// Errors: KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_NOT_FINITE (an overflow in the
// model's own arithmetic).
KINGLET_API kinglet_status kinglet_embedding_vectors(kinglet_embedding* embedding,
                                                     const uint32_t* ids, uint64_t count,
                                                     float* out, uint64_t capacity);

// Scores every class for the list of `count` tokens `ids`: logits[c] becomes the logit of class c,
// and log_probabilities[c] its log-probability, which is the logit minus the logarithm of the sum
// of all logits' exponentials. Each of these two arrays has room for `capacity` elements, of which
// kinglet_embedding_classes are set, or is NULL.
// Errors: KINGLET_UNSUPPORTED (no classifier), KINGLET_INVALID_ARGUMENT (an empty list, or one of
// padding only), KINGLET_ID_OUT_OF_RANGE, KINGLET_BUFFER_TOO_SMALL, KINGLET_NOT_FINITE (an overflow
// in the model's own arithmetic).
KINGLET_API kinglet_status kinglet_embedding_classify(kinglet_embedding* embedding,
                                                      const uint32_t* ids, uint64_t count,
                                                      double* logits, double* log_probabilities,
                                                      uint64_t capacity);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_KINGLET_H_
