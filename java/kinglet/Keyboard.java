package kinglet;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.SortedMap;
import java.util.TreeMap;

/**
 * Finds the words that touches on a keyboard mean, after a text, and learns a person's own words.
 * The rules are those of kinglet/typing.h. Any thread may call; calls wait for each other.
 *
 * <pre>
 *   try (Keyboard keyboard = new Keyboard("model.kgl")) {
 *     keyboard.openWords("words");
 *     keyboard.read("the president of the");
 *     keyboard.find(Touches.of("unit"), 3, new Options());  // United, unit, units
 *     keyboard.read("United");
 *     keyboard.learn("the", "United");
 *   }
 * </pre>
 */
public final class Keyboard implements AutoCloseable {
  static {
    System.loadLibrary("kinglet_jni");
  }

  /** How the word begins; in the order of kinglet_capitals. */
  public enum Capitals { AS_WRITTEN, FIRST, ALL }

  /** How touches are read. Costs are in nats; infinity: never. */
  public static final class Options {
    public double insertion = 6.5;
    public double deletion = 3.5;
    public double transposition = 4;
    public double substitution = 14;
    public double missingSpace = 4.5;
    public Capitals capitals = Capitals.AS_WRITTEN;
    /** Whether the word ends with the last touch. */
    public boolean finished = false;
    /** Microseconds after which the best candidates so far are the answer; 0: no limit. */
    public long deadline = 0;
    /** The word before, which decides which of the person's own words are likely. */
    public String before = "";
  }

  /** A place in the text, to which restore() goes back: for a caret that moves. */
  public final class Place implements AutoCloseable {
    private long state;

    private Place(long state) {
      this.state = state;
    }

    @Override
    public void close() {
      synchronized (Keyboard.this) {
        if (state != 0) destroyState(state);
        state = 0;
      }
    }
  }

  private volatile long handle;
  private boolean complete = true;

  /** Opens a model file. */
  public Keyboard(String model) {
    handle = open(utf8(model), true);
    if (handle == 0) throw new OutOfMemoryError("kinglet: no memory for a keyboard");
  }

  /** Opens the bytes of a model file, such as those of an asset. */
  public Keyboard(byte[] model) {
    handle = open(model, false);
    if (handle == 0) throw new OutOfMemoryError("kinglet: no memory for a keyboard");
  }

  @Override
  public synchronized void close() {
    long closed = handle;
    handle = 0;
    if (closed != 0) close(closed);
  }

  /** Reads a text after what was read: words that are complete, and marks. */
  public synchronized void read(String text) {
    read(opened(), text.getBytes(StandardCharsets.UTF_8));
  }

  /** Forgets what was read. */
  public synchronized void reset() {
    reset(opened());
  }

  /** The place after what was read. The caller closes it. */
  public synchronized Place save() {
    return new Place(save(opened()));
  }

  /** What was read is again what it was at the place, which must be of this keyboard. */
  public synchronized void restore(Place place) {
    if (place.state == 0) throw new IllegalStateException("place: expected an open one");
    restore(opened(), place.state);
  }

  /** Computes what the next find needs about the text; after a word is complete. */
  public synchronized void prepare() {
    prepare(opened());
  }

  /** The best candidates for the touches after the text, best first, at most `most`. */
  public synchronized List<Candidate> find(Touches touches, int most, Options options) {
    if (most < 0 || most > 1000) throw new IllegalArgumentException("most: expected 0 to 1000");
    double[] errors = {options.insertion, options.deletion, options.transposition,
        options.substitution, options.missingSpace};
    long[] numbers = {options.capitals.ordinal(), options.finished ? 1 : 0, options.deadline};
    double[] scores = new double[2 * most];
    int[] kinds = new int[most];
    int[] found = new int[2];
    byte[] texts = find(opened(), touches.begins(), touches.characters(), touches.costs(), errors,
        numbers, utf8(options.before), most, scores, kinds, found);
    if (texts == null) throw new OutOfMemoryError("kinglet: no memory for candidates");
    complete = found[1] != 0;
    List<String> words = split(texts);
    List<Candidate> candidates = new ArrayList<>();
    for (int i = 0; i < found[0]; ++i) {
      candidates.add(new Candidate(words.get(i), scores[2 * i], scores[2 * i + 1],
          Candidate.Kind.values()[kinds[i]]));
    }
    return candidates;
  }

  /** Whether the last find came to its end before its deadline. */
  public synchronized boolean isComplete() {
    return complete;
  }

  /** From now on the person's words are those of the file, which gets every later change. */
  public synchronized void openWords(String path) {
    openWords(opened(), utf8(path));
  }

  /** The person used the word after `before`, which is empty at a start. */
  public synchronized void learn(String before, String word) {
    learn(opened(), utf8(before), utf8(word));
  }

  /** Removes a word in every spelling; the number of words that were there. */
  public synchronized long unlearn(String word) {
    return unlearn(opened(), utf8(word));
  }

  /** Removes all words of the person. */
  public synchronized void forget() {
    forget(opened());
  }

  /** The person's words, and how often each was used. */
  public synchronized SortedMap<String, Long> words() {
    long[] count = new long[1];
    list(opened(), null, count);
    SortedMap<String, Long> words = new TreeMap<>();
    if (count[0] == 0) return words;
    long[] uses = new long[(int) count[0]];
    byte[] texts = list(opened(), uses, count);
    if (texts == null) throw new OutOfMemoryError("kinglet: no memory for the words");
    List<String> listed = split(texts);
    for (int i = 0; i < uses.length; ++i) words.put(listed.get(i), uses[i]);
    return words;
  }

  /** From now on these words are never found, in any spelling; replaces earlier ones. */
  public synchronized void block(Collection<String> words) {
    setWords(words, true);
  }

  /** From now on only these words are found; all are if there are none. */
  public synchronized void allow(Collection<String> words) {
    setWords(words, false);
  }

  /** The weights of the person's words and of letters in the probability of a word. */
  public synchronized void setWeights(double user, double spelling) {
    setWeights(opened(), user, spelling);
  }

  private long opened() {
    if (handle == 0) throw new IllegalStateException("keyboard: expected an open one");
    return handle;
  }

  private void setWords(Collection<String> words, boolean areBlocked) {
    long[] offsets = new long[words.size() + 1];
    StringBuilder joined = new StringBuilder();
    int at = 0;
    for (String word : words) {
      joined.append(word);
      offsets[at + 1] = offsets[at] + word.getBytes(StandardCharsets.UTF_8).length;
      ++at;
    }
    setWords(opened(), joined.toString().getBytes(StandardCharsets.UTF_8), offsets, areBlocked);
  }

  // With the NUL at which C stops.
  private static byte[] utf8(String text) {
    if (text.indexOf(0) >= 0) throw new IllegalArgumentException("text: expected no NUL");
    return (text + '\0').getBytes(StandardCharsets.UTF_8);
  }

  private static List<String> split(byte[] texts) {
    List<String> words = new ArrayList<>();
    for (int first = 0, at = 0; at < texts.length; ++at) {
      if (texts[at] != 0) continue;
      words.add(new String(texts, first, at - first, StandardCharsets.UTF_8));
      first = at + 1;
    }
    return words;
  }

  private static native long open(byte[] source, boolean isFile);
  private static native void close(long handle);
  private static native void read(long handle, byte[] text);
  private static native void reset(long handle);
  private static native long save(long handle);
  private static native void restore(long handle, long state);
  private static native void destroyState(long state);
  private static native void prepare(long handle);
  private static native byte[] find(long handle, int[] begins, int[] characters, double[] costs,
      double[] errors, long[] numbers, byte[] before, int most, double[] scores, int[] kinds,
      int[] found);
  private static native void openWords(long handle, byte[] path);
  private static native void learn(long handle, byte[] before, byte[] word);
  private static native long unlearn(long handle, byte[] word);
  private static native void forget(long handle);
  private static native byte[] list(long handle, long[] uses, long[] count);
  private static native void setWords(long handle, byte[] texts, long[] offsets, boolean areBlocked);
  private static native void setWeights(long handle, double user, double spelling);
}
