// Typing on a keyboard: the words that touches mean, after the text before them. A part of
// kinglet.h, which includes this file and whose rules apply here. docs/TYPING.md explains more.
#ifndef KINGLET_TYPING_H_
#define KINGLET_TYPING_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_model kinglet_model;
typedef struct kinglet_session kinglet_session;

// Finds words for one keyboard, after the text that a lane of a session has processed: the lane is
// stepped when a word is complete, and saved there if the caret may come back
// (kinglet_session_save). A decoder remembers what it computed about the last context, so that one
// touch more takes a search only. One thread at a time may use a decoder, and its session with it.
typedef struct kinglet_typing kinglet_typing;

// How the word begins.
enum kinglet_capitals {
  KINGLET_CAPITALS_AS_WRITTEN = 0,  // as the vocabulary has it
  KINGLET_CAPITALS_FIRST = 1,  // its first letter in upper case: after shift, or in a new sentence
  KINGLET_CAPITALS_ALL = 2,    // all letters in upper case
};

// What was typed since the last complete word, and what typing errors cost. A *touch* is one
// position of the input: a few characters that it may mean, each with a cost. All costs are in
// nats, minus the logarithm of a probability or, for touches, of a density of the place touched:
// d^2 / (2 s^2) for a distance d from the middle of a key and a deviation s. Costs are 0 or more;
// infinity means that something never happens.
typedef struct kinglet_typing_input {
  uint32_t struct_size;  // set by kinglet_typing_input_init
  uint32_t touches;      // number of touches, at most 64; with 0 all words are completions, unless
                         // `finished`: then the letters of a word were all omitted
  // Characters begins[i] to begins[i + 1] - 1 are those of touch i: code points, in any order, with
  // their costs. begins[0] is 0, and `begins` has touches + 1 elements. The arrays are read during
  // the call only, and may be NULL if there are no touches. A touch without characters is an
  // unknown letter. A letter without an accent also stands for letters with one.
  const uint32_t* begins;
  const uint32_t* characters;
  const double* costs;
  double insertion;      // a touch that the word lacks; 6.5 by default
  double deletion;       // a letter that was omitted; 3.5. Apostrophes and hyphens cost nothing.
  double transposition;  // two letters in the other order, besides the costs of their touches; 4
  double substitution;   // a letter that is none of its touch's characters; 14
  double missing_space;  // a space that was omitted; 4.5
  uint32_t capitals;     // a kinglet_capitals
  uint32_t finished;     // 1: the word ends with the last touch; 0: letters may follow
  // Microseconds of the call, after which it returns the best candidates found; 0: no limit. What
  // is computed once for each context (kinglet_typing_prepare) is not interrupted.
  uint64_t deadline;
} kinglet_typing_input;

// Sets every field of `input` to its default. `struct_size` is sizeof(kinglet_typing_input).
// Errors: KINGLET_INVALID_ARGUMENT (a size that no version of the structure has).
KINGLET_API kinglet_status kinglet_typing_input_init(kinglet_typing_input* input,
                                                     uint32_t struct_size);

// What a candidate is.
enum kinglet_typing_kind {
  KINGLET_TYPING_WORD = 0,       // a word of the vocabulary
  KINGLET_TYPING_TWO_WORDS = 1,  // two of them, with a space between or joined
  KINGLET_TYPING_LETTERS = 2,    // the cheapest characters as typed, which are no word
};

// Creates a decoder of the model's words: the tokens with a letter or a digit that are no marks of
// the training text (the unknown word, the end of a line, "<..>", "@-@"). On success the caller
// owns *out and destroys it with kinglet_typing_destroy. The model may be closed before that.
// Errors: KINGLET_UNSUPPORTED (ids only, no language model, tokens that are pieces of words, or a
// small library, which lacks typing),
// KINGLET_OUT_OF_MEMORY (also beyond the model's memory limit, which counts the tree of words).
KINGLET_API kinglet_status kinglet_typing_create(const kinglet_model* model, kinglet_typing** out);

// Destroys the handle.
KINGLET_API void kinglet_typing_destroy(kinglet_typing* typing);

// From now on the `count` words are never candidates, in any spelling that differs in capitals,
// accents, apostrophes and hyphens only. Word i is the bytes from offsets[i] up to offsets[i + 1]
// of `texts`; offsets[0] is 0, and `offsets` has count + 1 elements. Replaces the words of earlier
// calls; with a count of 0 no word is blocked, and the arrays may be NULL.
// Errors: KINGLET_INVALID_ARGUMENT (offsets that descend).
KINGLET_API kinglet_status kinglet_typing_set_blocked(kinglet_typing* typing, const char* texts,
                                                      const uint64_t* offsets, uint64_t count);

// From now on only these words, in any such spelling, and sequences of two of them are candidates;
// each is a token of its own.
// With a count of 0 all words are. Arguments and errors as for kinglet_typing_set_blocked.
KINGLET_API kinglet_status kinglet_typing_set_allowed(kinglet_typing* typing, const char* texts,
                                                      const uint64_t* offsets, uint64_t count);

// Computes what the next call about this context needs, the probabilities of all words after it. A
// keyboard calls this function when a word is complete, and has its answers sooner at the next
// touch. Errors: those of queries (queries.h), KINGLET_MISMATCH (a session of another model).
KINGLET_API kinglet_status kinglet_typing_prepare(kinglet_typing* typing, kinglet_session* session,
                                                  uint32_t lane);

// The k best candidates for the input after the lane's text, best first; fewer if there are fewer.
// The score of a candidate is log_probabilities[i], of its text after the context, minus costs[i],
// of the typing errors that would explain the input: the least costly way to match letters and
// touches. Candidates are all words, or all words that begin so; the letters as typed, where they
// are no word and each touch has a character, with their share of the probability of the unknown
// word; and two words without the space between. For these the 8 best first words of each place are
// looked at, and of all the 8 most promising ones are tried with every second word, where they may
// be nearly as good as the best candidate. Of candidates that read alike the best counts; equal
// scores are in byte order, and any of them may be the last that k leaves. Otherwise the answer is
// that of trying all words. Candidates whose scores are 8 nats below the best one's are omitted.
//
// `buffer`, of `capacity` bytes, gets the candidates' texts, each with a NUL; unless it is NULL,
// offsets[i] becomes the byte at which text i begins, and offsets[*count] the end of the last one.
// `offsets` has room for k + 1 elements; `log_probabilities`, `costs` and `kinds` (of
// kinglet_typing_kind) for k. All may be NULL. `*count`, `*needed` (bytes of the texts) and
// `*complete` (0 if the deadline ended the search), where not NULL, are written also when the call
// fails with KINGLET_BUFFER_TOO_SMALL.
// The lane's stream does not change. To try missing spaces the decoder makes a session of one lane.
// kinglet_session_cancel stops the call.
// Errors: KINGLET_INVALID_ARGUMENT (a cost that is negative or NaN, more than 64 touches, begins
// that descend, a character that is no code point, unknown capitals), KINGLET_BUFFER_TOO_SMALL,
// KINGLET_OUT_OF_MEMORY and those of kinglet_typing_prepare.
KINGLET_API kinglet_status kinglet_typing_find(kinglet_typing* typing, kinglet_session* session,
                                               uint32_t lane, const kinglet_typing_input* input,
                                               uint32_t k, char* buffer, uint64_t capacity,
                                               uint64_t* needed, uint64_t* offsets,
                                               double* log_probabilities, double* costs,
                                               uint32_t* kinds, uint32_t* count, int32_t* complete);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_TYPING_H_
