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
  // The word before, of any kind, as text that ends with a NUL; NULL or empty at a start. Decides
  // which of the person's own words are likely, and is read during the call only.
  const char* before;
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
  KINGLET_TYPING_USER_WORD = 3,  // a word of the person's own that the vocabulary lacks
};

// Creates a decoder of the model's words: the tokens with a letter or a digit that are no marks of
// the training text (the unknown word, the end of a line, "<..>", "@-@"). On success the caller
// owns *out and destroys it with kinglet_typing_destroy. The model may be closed before that.
// Of a model of pieces: the words that pieces of letters spell, found by a beam search that keeps 8
// beginnings after each piece; so a word may be missing, and none lacks its space.
// Errors: KINGLET_UNSUPPORTED (ids only, no language model, one that reads backward, or a small
// library, which lacks typing),
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
// touches. Candidates are all words of the vocabulary and of the person, or all that begin so; the
// letters as typed, where they are no word of the vocabulary and each touch has a character, with
// their share of the probability of the unknown word; and two words of the vocabulary without the
// space between. For these the 8 best first words of each place are looked at, and of all the 8
// most promising ones are tried with every second word, where they may be nearly as good as the
// best candidate. Of candidates that read alike the best counts; equal scores are in byte order,
// and any of them may be the last that k leaves. Otherwise the answer is that of trying all words.
// Candidates whose scores are 8 nats below the best one's are omitted.
//
// `buffer`, of `capacity` bytes, gets the candidates' texts, each with a NUL; unless it is NULL,
// offsets[i] becomes the byte at which text i begins, and offsets[*count] the end of the last one.
// `offsets` has room for k + 1 elements; `log_probabilities`, `costs` and `kinds` (of
// kinglet_typing_kind) for k. All may be NULL. `*count`, `*needed` (bytes of the texts) and
// `*complete` (0 if the deadline ended the search), where not NULL, are written also when the call
// fails with KINGLET_BUFFER_TOO_SMALL.
// To try missing spaces the lane reads one token more and takes it back; its stream is the same
// afterwards.
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

// --- a person's own words
//
// A decoder learns words that it is told, known to the vocabulary or not: how often, how lately and
// after which word each was used, at most 16,384 words and 24,576 pairs, of which those that count
// least are dropped. The probability of a word is
//
//   p = (1 - user - spelling) network + user own + spelling letters
//
// where each of the three adds up to 1 over all words: `network` is the model's, in which words
// that the vocabulary lacks share the probability of the unknown word by their letters; `own` is
// that of the person's words, and the network's as far as there are few of them; `letters` is that
// of words which the vocabulary lacks. Words are texts of UTF-8 that end with a NUL, written as
// inside a sentence; two that differ in any byte are different words.

// From now on the words are those of the file, which is made if there is none, and gets every later
// change. A use is appended in one write: a program that is killed loses the last word at most, and
// what is damaged is passed over the next time. The file is locked while the decoder lives.
// Errors: KINGLET_IO_ERROR (also for a file that is open already), KINGLET_CORRUPT (another
// kind of file, or above 24 MiB, or 1 MiB of damage: no change). After an error there are no words.
KINGLET_API kinglet_status kinglet_typing_open_words(kinglet_typing* typing, const char* path);

// The person used the word after `before`, which may be NULL or empty as in kinglet_typing_input.
// Errors: KINGLET_INVALID_ARGUMENT (more than 64 characters, spaces, controls, no letter or digit),
// KINGLET_IO_ERROR, KINGLET_OUT_OF_MEMORY (nothing is learned). A file that cannot be shortened is
// no error: shortening is tried again later.
KINGLET_API kinglet_status kinglet_typing_learn(kinglet_typing* typing, const char* before,
                                                const char* word);

// Removes a word from memory and file, in any spelling that differs in capitals, accents,
// apostrophes and hyphens only; nothing of it stays. `*removed`, unless `removed` is NULL, becomes
// the number of words that were there. Errors: KINGLET_IO_ERROR (nothing is removed).
KINGLET_API kinglet_status kinglet_typing_unlearn(kinglet_typing* typing, const char* word,
                                                  uint64_t* removed);

// Removes all words from memory and file. Errors: KINGLET_IO_ERROR (nothing is removed).
KINGLET_API kinglet_status kinglet_typing_forget(kinglet_typing* typing);

// The person's words in byte order: `*count` becomes their number, and of the first `most` of them
// texts and offsets are written as by kinglet_typing_find and `uses` (which has room for `most`)
// gets how often each was used. A `most` of 0 asks for the number only.
// Errors: KINGLET_BUFFER_TOO_SMALL.
KINGLET_API kinglet_status kinglet_typing_list(kinglet_typing* typing, uint64_t most, char* buffer,
                                               uint64_t capacity, uint64_t* needed,
                                               uint64_t* offsets, uint64_t* uses, uint64_t* count);

// Sets the weights of the person's words and of letters, 0.1 and 0.00001 at first; `kinglet type
// --tune` finds them on a text. Errors: KINGLET_INVALID_ARGUMENT (a negative number or NaN, or a
// sum that is not below 1).
KINGLET_API kinglet_status kinglet_typing_set_weights(kinglet_typing* typing, double user,
                                                      double spelling);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_TYPING_H_
