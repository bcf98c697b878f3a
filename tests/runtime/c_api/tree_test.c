#include "tests/runtime/c_api/expect.h"

enum { NODES = 9 };
#define NONE KINGLET_NO_PARENT

static const uint32_t kParents[NODES] = {NONE, 0, 1, 1, 0, NONE, 5, 4, 6};
static const uint32_t kIds[NODES] = {1, 3, 4, 5, 3, 1, 3, 22, 4};

// Every node's value equals that of a lane that was stepped to the node.
const char* TestTrees(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 3);
  kinglet_session* alone = StartTest(TEST_MODEL_CACHE, 1);
  double out[NODES + 1];
  uint64_t stepped = 99, position = 99;
  for (int i = 0; i <= NODES; ++i) out[i] = 5;
  EXPECT_OK(kinglet_session_step(session, 1, 7));
  EXPECT_OK(kinglet_session_score_tree(session, kParents, kIds, NODES, out, &stepped));
  EXPECT(stepped == 4 && out[NODES] == 5);  // nodes 1 and 4 are one token after one parent
  EXPECT_OK(kinglet_session_position(session, 1, &position));
  EXPECT(position == 0);
  for (uint32_t node = 0; node < NODES; ++node) {
    uint32_t path[NODES], length = 0;
    for (uint32_t at = kParents[node]; at != KINGLET_NO_PARENT; at = kParents[at]) {
      path[length++] = kIds[at];
    }
    double expected = 0;
    EXPECT_OK(kinglet_session_reset(alone, 0));
    while (length > 0) {
      EXPECT_OK(kinglet_session_step(alone, 0, path[--length]));
      if (length == 0) {
        EXPECT_OK(kinglet_session_log_probability(alone, 0, kIds[node], &expected));
      }
    }
    EXPECT(out[node] == expected);
  }
  EXPECT_OK(kinglet_session_score_tree(session, NULL, NULL, 0, NULL, NULL));
  kinglet_session_destroy(alone);
  kinglet_session_destroy(session);
  return NULL;
}

const char* TestTreeErrors(void) {
  kinglet_session* session = StartTest(TEST_MODEL_CACHE, 2);
  const uint32_t parents[] = {NONE, 1, 0}, ids[] = {1, 2, TEST_WORDS};
  double out[] = {5, 5, 5};
  uint64_t stepped = 99, position = 99;
  EXPECT_INVALID(kinglet_session_score_tree(NULL, kParents, kIds, 3, out, &stepped));
  EXPECT_INVALID(kinglet_session_score_tree(session, NULL, kIds, 3, out, &stepped));
  EXPECT_INVALID(kinglet_session_score_tree(session, kParents, NULL, 3, out, &stepped));
  EXPECT_INVALID(kinglet_session_score_tree(session, kParents, kIds, 3, NULL, &stepped));
  EXPECT_INVALID(kinglet_session_score_tree(session, kParents, kIds, UINT64_MAX, out, &stepped));
  EXPECT_INVALID(kinglet_session_score_tree(session, parents, kIds, 2, out, &stepped));
  EXPECT(kinglet_session_score_tree(session, kParents, ids, 3, out, &stepped) ==
         KINGLET_ID_OUT_OF_RANGE);
  EXPECT_OK(kinglet_session_step(session, 0, 1));
  EXPECT_OK(kinglet_session_cancel(session));
  EXPECT(kinglet_session_score_tree(session, kParents, kIds, 3, out, &stepped) ==
         KINGLET_CANCELLED);
  EXPECT_OK(kinglet_session_position(session, 0, &position));
  EXPECT(position == 0 && stepped == 99);
  for (int i = 0; i < 3; ++i) EXPECT(out[i] == 5);
  kinglet_session_destroy(session);

  session = StartTest(TEST_MODEL_OVERFLOWS, 1);
  EXPECT(kinglet_session_score_tree(session, kParents, kIds, 3, out, NULL) == KINGLET_NOT_FINITE);
  kinglet_session_destroy(session);
  session = StartTest(TEST_MODEL_TRANSLATION, 1);
  EXPECT(kinglet_session_score_tree(session, kParents, kIds, 2, out, NULL) ==
         KINGLET_NO_SOURCE_YET);
  kinglet_session_destroy(session);
  return NULL;
}
