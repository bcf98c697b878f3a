// The Java binding (Keyboard.java) over the C interface: a keyboard is a model, a session of one
// lane that has read the text so far, and a decoder. Texts cross as UTF-8 in arrays of bytes,
// because strings of JNI are UTF-8 with exceptions. Java passes handles that are open, from one
// thread at a time, and texts that end with a NUL where C reads them so.
#include <jni.h>
#include <kinglet/kinglet.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct keyboard {
  kinglet_model* model;
  kinglet_session* session;
  kinglet_typing* typing;
} keyboard;

enum { LANE = 0, SHORT_TEXT = 4096 };

static keyboard* keyboard_of(jlong handle) { return (keyboard*)(intptr_t)handle; }
static jlong handle_of(void* object) { return (jlong)(intptr_t)object; }

// Makes a failed call a KingletException, unless Java has an exception already.
static int failed(JNIEnv* env, kinglet_status status) {
  if (status == KINGLET_OK) return (*env)->ExceptionCheck(env);
  if ((*env)->ExceptionCheck(env)) return 1;
  const jclass type = (*env)->FindClass(env, "kinglet/KingletException");
  if (type == NULL) return 1;
  const jmethodID make =
      (*env)->GetMethodID(env, type, "<init>", "(Ljava/lang/String;Ljava/lang/String;)V");
  if (make == NULL) return 1;
  const jstring name = (*env)->NewStringUTF(env, kinglet_status_name(status));
  // A message may quote a text that is no UTF-8 for JNI: other bytes than ASCII become "?".
  char message[1024];
  size_t length = 0;
  for (const char* from = kinglet_error_message(); *from != '\0' && length + 1 < sizeof message;) {
    message[length++] = (unsigned char)*from < 0x80 ? *from : '?';
    ++from;
  }
  message[length] = '\0';
  const jstring text = (*env)->NewStringUTF(env, message);
  if (name != NULL && text != NULL) {
    (*env)->Throw(env, (jthrowable)(*env)->NewObject(env, type, make, name, text));
  }
  return 1;
}

// The bytes of an array, NULL with an exception in Java if there is no memory. Ends with
// release().
static jbyte* bytes_of(JNIEnv* env, jbyteArray array) {
  return (*env)->GetByteArrayElements(env, array, NULL);
}
static void release(JNIEnv* env, jbyteArray array, jbyte* bytes) {
  if (bytes != NULL) (*env)->ReleaseByteArrayElements(env, array, bytes, JNI_ABORT);
}

static jbyteArray array_of(JNIEnv* env, const char* bytes, uint64_t count) {
  const jbyteArray array = (*env)->NewByteArray(env, (jsize)count);
  if (array != NULL) {
    (*env)->SetByteArrayRegion(env, array, 0, (jsize)count, (const jbyte*)bytes);
  }
  return array;
}

static void destroy(keyboard* made) {
  kinglet_typing_destroy(made->typing);
  kinglet_session_destroy(made->session);
  kinglet_model_close(made->model);
  free(made);
}

static kinglet_status begin(keyboard* made) {
  uint32_t id = 0;
  kinglet_status status = kinglet_model_special_token(made->model, KINGLET_TOKEN_BEGIN, &id);
  if (status == KINGLET_UNSUPPORTED)
    id = 0;  // any token comes before a text then
  else if (status != KINGLET_OK)
    return status;
  return kinglet_session_step(made->session, LANE, id);
}

// Opens a file, or the bytes of one if `is_file` is false.
JNIEXPORT jlong JNICALL Java_kinglet_Keyboard_open(JNIEnv* env, jclass type, jbyteArray source,
                                                   jboolean is_file) {
  (void)type;
  keyboard* const made = calloc(1, sizeof *made);
  jbyte* const bytes = bytes_of(env, source);
  if (made == NULL || bytes == NULL) {
    free(made);
    release(env, source, bytes);
    return 0;
  }
  const uint64_t size = (uint64_t)(*env)->GetArrayLength(env, source);
  kinglet_status status = is_file ? kinglet_model_open((const char*)bytes, NULL, &made->model)
                                  : kinglet_model_open_memory(bytes, size, NULL, &made->model);
  release(env, source, bytes);
  if (!status) status = kinglet_session_create(made->model, NULL, &made->session);
  if (!status) status = kinglet_typing_create(made->model, &made->typing);
  if (!status) status = begin(made);
  if (!failed(env, status)) return handle_of(made);
  destroy(made);
  return 0;
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_close(JNIEnv* env, jclass type, jlong handle) {
  (void)env;
  (void)type;
  destroy(keyboard_of(handle));
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_read(JNIEnv* env, jclass type, jlong handle,
                                                  jbyteArray text) {
  (void)type;
  keyboard* const into = keyboard_of(handle);
  jbyte* const bytes = bytes_of(env, text);
  if (bytes == NULL) return;
  const char* const from = (const char*)bytes;
  const uint64_t length = (uint64_t)(*env)->GetArrayLength(env, text);
  uint64_t count = 0;
  kinglet_status status = kinglet_model_tokenize(into->model, from, length, NULL, NULL, 0, &count);
  if (!failed(env, status) && count > 0) {
    const jintArray array = (*env)->NewIntArray(env, (jsize)count);
    jint* const ids = array == NULL ? NULL : (*env)->GetIntArrayElements(env, array, NULL);
    if (ids != NULL) {
      uint32_t* const tokens = (uint32_t*)ids;
      status = kinglet_model_tokenize(into->model, from, length, tokens, NULL, count, &count);
      if (!status) {
        status = kinglet_session_step_many(into->session, LANE, tokens, count, NULL, NULL);
      }
      (*env)->ReleaseIntArrayElements(env, array, ids, JNI_ABORT);
      failed(env, status);
    }
  }
  release(env, text, bytes);
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_reset(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  keyboard* const given = keyboard_of(handle);
  kinglet_status status = kinglet_session_reset(given->session, LANE);
  if (!status) status = begin(given);
  failed(env, status);
}

JNIEXPORT jlong JNICALL Java_kinglet_Keyboard_save(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  kinglet_state* state = NULL;
  return failed(env, kinglet_session_save(keyboard_of(handle)->session, LANE, &state))
             ? 0
             : handle_of(state);
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_restore(JNIEnv* env, jclass type, jlong handle,
                                                     jlong state) {
  (void)type;
  failed(env, kinglet_session_restore(keyboard_of(handle)->session, LANE,
                                      (const kinglet_state*)(intptr_t)state));
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_destroyState(JNIEnv* env, jclass type, jlong state) {
  (void)env;
  (void)type;
  kinglet_state_destroy((kinglet_state*)(intptr_t)state);
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_prepare(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  keyboard* const given = keyboard_of(handle);
  failed(env, kinglet_typing_prepare(given->typing, given->session, LANE));
}

// The texts of candidates, each with a NUL, or NULL without memory. costs_of_errors: insertion,
// deletion, transposition, substitution, missing_space. numbers: capitals, finished, deadline. Of
// candidate i scores[2 i] is the log-probability and scores[2 i + 1] the cost; found becomes the
// number of candidates and whether the search was complete.
JNIEXPORT jbyteArray JNICALL Java_kinglet_Keyboard_find(
    JNIEnv* env, jclass type, jlong handle, jintArray begins, jintArray characters,
    jdoubleArray costs, jdoubleArray costs_of_errors, jlongArray numbers, jbyteArray before, jint k,
    jdoubleArray scores, jintArray kinds, jintArray found) {
  (void)type;
  keyboard* const given = keyboard_of(handle);
  kinglet_typing_input input;
  if (failed(env, kinglet_typing_input_init(&input, sizeof input))) return NULL;
  jdouble errors[5];
  jlong number[3];
  (*env)->GetDoubleArrayRegion(env, costs_of_errors, 0, 5, errors);
  (*env)->GetLongArrayRegion(env, numbers, 0, 3, number);
  input.insertion = errors[0];
  input.deletion = errors[1];
  input.transposition = errors[2];
  input.substitution = errors[3];
  input.missing_space = errors[4];
  input.capitals = (uint32_t)number[0];
  input.finished = (uint32_t)number[1];
  input.deadline = (uint64_t)number[2];
  input.touches = (uint32_t)(*env)->GetArrayLength(env, begins) - 1;

  jbyteArray answer = NULL;
  const uint32_t most = (uint32_t)k;
  char short_text[SHORT_TEXT], *texts = short_text;
  double* const logs = calloc(2 * (size_t)most + 1, sizeof *logs);
  uint32_t* const which = calloc((size_t)most + 1, sizeof *which);
  jint* const first = (*env)->GetIntArrayElements(env, begins, NULL);
  jint* const letters = (*env)->GetIntArrayElements(env, characters, NULL);
  jdouble* const cost = (*env)->GetDoubleArrayElements(env, costs, NULL);
  jbyte* const word_before = bytes_of(env, before);
  if (logs != NULL && which != NULL && first != NULL && letters != NULL && cost != NULL &&
      word_before != NULL) {
    input.begins = (const uint32_t*)first;
    input.characters = (const uint32_t*)letters;
    input.costs = cost;
    input.before = (const char*)word_before;
    uint64_t needed = 0, room = SHORT_TEXT;
    uint32_t count = 0;
    int32_t complete = 0;
    kinglet_status status = KINGLET_BUFFER_TOO_SMALL;
    while (texts != NULL) {
      status = kinglet_typing_find(given->typing, given->session, LANE, &input, most, texts, room,
                                   &needed, NULL, logs, logs + most, which, &count, &complete);
      if (status != KINGLET_BUFFER_TOO_SMALL || needed <= room) break;
      if (texts != short_text) free(texts);
      texts = malloc(needed);
      room = needed;
    }
    if (texts != NULL && !failed(env, status)) {
      const jint facts[2] = {(jint)count, complete};
      (*env)->SetIntArrayRegion(env, found, 0, 2, facts);
      for (uint32_t i = 0; i < count; ++i) {
        const jdouble pair[2] = {logs[i], logs[most + i]};
        (*env)->SetDoubleArrayRegion(env, scores, (jsize)(2 * i), 2, pair);
      }
      (*env)->SetIntArrayRegion(env, kinds, 0, (jsize)count, (const jint*)which);
      answer = array_of(env, texts, needed);
    }
  }
  release(env, before, word_before);
  if (cost != NULL) (*env)->ReleaseDoubleArrayElements(env, costs, cost, JNI_ABORT);
  if (letters != NULL) (*env)->ReleaseIntArrayElements(env, characters, letters, JNI_ABORT);
  if (first != NULL) (*env)->ReleaseIntArrayElements(env, begins, first, JNI_ABORT);
  if (texts != short_text) free(texts);
  free(which);
  free(logs);
  return answer;
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_openWords(JNIEnv* env, jclass type, jlong handle,
                                                       jbyteArray path) {
  (void)type;
  jbyte* const bytes = bytes_of(env, path);
  if (bytes == NULL) return;
  failed(env, kinglet_typing_open_words(keyboard_of(handle)->typing, (const char*)bytes));
  release(env, path, bytes);
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_learn(JNIEnv* env, jclass type, jlong handle,
                                                   jbyteArray before, jbyteArray word) {
  (void)type;
  jbyte* const first = bytes_of(env, before);
  jbyte* const second = bytes_of(env, word);
  if (first != NULL && second != NULL) {
    failed(env, kinglet_typing_learn(keyboard_of(handle)->typing, (const char*)first,
                                     (const char*)second));
  }
  release(env, word, second);
  release(env, before, first);
}

JNIEXPORT jlong JNICALL Java_kinglet_Keyboard_unlearn(JNIEnv* env, jclass type, jlong handle,
                                                      jbyteArray word) {
  (void)type;
  jbyte* const bytes = bytes_of(env, word);
  uint64_t removed = 0;
  if (bytes == NULL) return 0;
  failed(env, kinglet_typing_unlearn(keyboard_of(handle)->typing, (const char*)bytes, &removed));
  release(env, word, bytes);
  return (jlong)removed;
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_forget(JNIEnv* env, jclass type, jlong handle) {
  (void)type;
  failed(env, kinglet_typing_forget(keyboard_of(handle)->typing));
}

// uses.length is the number of words to list; without `uses` the words are counted alone.
JNIEXPORT jbyteArray JNICALL Java_kinglet_Keyboard_list(JNIEnv* env, jclass type, jlong handle,
                                                        jlongArray uses, jlongArray count) {
  (void)type;
  kinglet_typing* const typing = keyboard_of(handle)->typing;
  uint64_t most = uses == NULL ? 0 : (uint64_t)(*env)->GetArrayLength(env, uses);
  uint64_t needed = 0, all = 0;
  kinglet_status status = kinglet_typing_list(typing, most, NULL, 0, &needed, NULL, NULL, &all);
  const jlong number = (jlong)all;
  (*env)->SetLongArrayRegion(env, count, 0, 1, &number);
  if (uses == NULL || needed == 0) {
    if (status != KINGLET_BUFFER_TOO_SMALL) failed(env, status);
    return NULL;
  }
  jbyteArray answer = NULL;
  char* const texts = malloc(needed);
  uint64_t* const used = malloc((most + 1) * sizeof *used);
  if (texts != NULL && used != NULL) {
    status = kinglet_typing_list(typing, most, texts, needed, &needed, NULL, used, NULL);
    if (!failed(env, status)) {
      (*env)->SetLongArrayRegion(env, uses, 0, (jsize)most, (const jlong*)used);
      answer = array_of(env, texts, needed);
    }
  }
  free(used);
  free(texts);
  return answer;
}

// Sets the blocked words, or the allowed ones.
JNIEXPORT void JNICALL Java_kinglet_Keyboard_setWords(JNIEnv* env, jclass type, jlong handle,
                                                      jbyteArray texts, jlongArray offsets,
                                                      jboolean are_blocked) {
  (void)type;
  jbyte* const bytes = bytes_of(env, texts);
  jlong* const places = (*env)->GetLongArrayElements(env, offsets, NULL);
  if (bytes != NULL && places != NULL) {
    const uint64_t count = (uint64_t)(*env)->GetArrayLength(env, offsets) - 1;
    kinglet_typing* const typing = keyboard_of(handle)->typing;
    failed(env, (are_blocked ? kinglet_typing_set_blocked : kinglet_typing_set_allowed)(
                    typing, (const char*)bytes, (const uint64_t*)places, count));
  }
  if (places != NULL) (*env)->ReleaseLongArrayElements(env, offsets, places, JNI_ABORT);
  release(env, texts, bytes);
}

JNIEXPORT void JNICALL Java_kinglet_Keyboard_setWeights(JNIEnv* env, jclass type, jlong handle,
                                                        jdouble user, jdouble spelling) {
  (void)type;
  failed(env, kinglet_typing_set_weights(keyboard_of(handle)->typing, user, spelling));
}
