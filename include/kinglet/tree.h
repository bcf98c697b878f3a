// Scores sequences of tokens that share beginnings: a part of kinglet.h, which includes this file
// and whose rules apply here.
#ifndef KINGLET_TREE_H_
#define KINGLET_TREE_H_

#include <stdint.h>

#include "kinglet/export.h"
#include "kinglet/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct kinglet_session kinglet_session;

// The parent of a node that begins a stream.
#define KINGLET_NO_PARENT UINT32_MAX

// Scores sequences of tokens that share beginnings, such as a recogniser's hypotheses, in all lanes
// of the session at once. The sequences form a tree of `count` nodes: node n is token ids[n] after
// node parents[n], which is below n; a node whose parent is KINGLET_NO_PARENT begins a stream, and
// several nodes may. out[n] becomes the log-probability of node n's token after the tokens that
// lead to node n, and 0 where a stream begins: the same value, to the last bit, as in a stream of
// these tokens alone. *stepped, if `stepped` is not NULL, becomes the number of tokens that were
// processed, one for each node that is a parent; nodes of one parent and one token count once, and
// tokens that were processed again for want of memory twice. The arrays may be NULL if `count` is
// 0.
//
// The first token of a stream is the one that is stepped first: kinglet_model_start_token, or else
// the token that ends the sentence before, such as "<eos>". The last node of a sentence is the
// token that ends the sentence. The session's streams are replaced: after the call, also after an
// error in the session, every lane is as after kinglet_session_reset. The call allocates.
// Errors: KINGLET_INVALID_ARGUMENT (parents that form no tree), KINGLET_ID_OUT_OF_RANGE,
// KINGLET_NO_SOURCE_YET (a model with an encoder), KINGLET_NOT_FINITE, KINGLET_CANCELLED.
KINGLET_API kinglet_status kinglet_session_score_tree(kinglet_session* session,
                                                      const uint32_t* parents, const uint32_t* ids,
                                                      uint64_t count, double* out,
                                                      uint64_t* stepped);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // KINGLET_TREE_H_
