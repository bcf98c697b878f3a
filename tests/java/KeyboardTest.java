import java.util.Arrays;
import java.util.List;
import kinglet.Candidate;
import kinglet.Keyboard;
import kinglet.KingletException;
import kinglet.Touches;

/** Types with the binding, and prints what keyboard_test.py compares. */
public final class KeyboardTest {
  private static void print(String name, List<Candidate> candidates) {
    for (Candidate candidate : candidates) {
      System.out.println(name + "\t" + candidate + "\t" + candidate.logProbability() + "\t"
          + candidate.cost() + "\t" + candidate.kind().name().toLowerCase());
    }
  }

  private static void expect(boolean condition, String message) {
    if (!condition) throw new AssertionError(message);
  }

  private interface Call {
    void run();
  }

  private static void refuses(Class<? extends Exception> type, String part, Call call) {
    try {
      call.run();
    } catch (RuntimeException found) {
      expect(type.isInstance(found) && found.getMessage().contains(part), found.toString());
      return;
    }
    throw new AssertionError("no exception: " + part);
  }

  public static void main(String[] arguments) throws Exception {
    String model = arguments[0];
    String words = arguments[1];
    Keyboard keyboard = new Keyboard(model);
    print("start", keyboard.find(new Touches(), 3, new Keyboard.Options()));
    keyboard.read("the president of the ");
    keyboard.prepare();
    print("letters", keyboard.find(Touches.of("unit"), 5, new Keyboard.Options()));

    Touches touches = new Touches();
    touches.next().add('u', 0.5).add('y', 1).add('i', 2);
    touches.next().add('m', 0.25).add('n', 0.5);
    touches.next().add('i', 0).add(0xE9, 4);
    Keyboard.Options options = new Keyboard.Options();
    options.capitals = Keyboard.Capitals.FIRST;
    options.before = "the";
    options.deletion = 2;
    print("touches", keyboard.find(touches, 4, options));
    options.capitals = Keyboard.Capitals.ALL;
    options.finished = true;
    print("finished", keyboard.find(touches, 4, options));
    expect(keyboard.isComplete(), "complete");
    print("many", keyboard.find(new Touches(), 1000, new Keyboard.Options()));

    try (Keyboard.Place place = keyboard.save()) {
      keyboard.read("United States of America");
      print("later", keyboard.find(Touches.of("an"), 2, new Keyboard.Options()));
      keyboard.restore(place);
      print("again", keyboard.find(Touches.of("unit"), 5, new Keyboard.Options()));
      place.close();
      refuses(IllegalStateException.class, "place", () -> keyboard.restore(place));
    }

    keyboard.openWords(words);
    String face = new String(Character.toChars(0x1F600));
    keyboard.learn("the", "caf\u00e9" + face);
    keyboard.learn("the", "caf\u00e9" + face);
    keyboard.learn("", "zyxwvly");
    System.out.println("words\t" + keyboard.words());
    options = new Keyboard.Options();
    options.before = "the";
    print("own", keyboard.find(Touches.of("cafe"), 2, options));
    expect(keyboard.unlearn("ZYXWVLY") == 1, "unlearn");
    keyboard.block(Arrays.asList("united", "caf\u00e9" + face));
    print("blocked", keyboard.find(Touches.of("unit"), 3, options));
    keyboard.block(Arrays.asList());
    keyboard.allow(Arrays.asList("unity"));
    print("allowed", keyboard.find(Touches.of("unit"), 3, options));
    keyboard.allow(Arrays.asList());
    keyboard.setWeights(0.2, 0.001);
    print("weights", keyboard.find(Touches.of("cafe"), 2, options));
    keyboard.forget();
    expect(keyboard.words().isEmpty(), "forgotten");
    keyboard.reset();
    print("reset", keyboard.find(new Touches(), 3, new Keyboard.Options()));

    refuses(KingletException.class, "at most 64", () -> keyboard.find(
        Touches.of("a".repeat(65)), 3, new Keyboard.Options()));
    refuses(KingletException.class, "word", () -> keyboard.learn("", "two words"));
    refuses(KingletException.class, "missing.kgl", () -> new Keyboard("missing.kgl"));
    refuses(KingletException.class, "", () -> new Keyboard(new byte[] {1, 2, 3}));
    refuses(IllegalArgumentException.class, "NUL", () -> keyboard.learn("", "a\0"));
    refuses(IllegalStateException.class, "next()", () -> new Touches().add('a', 0));
    keyboard.close();
    keyboard.close();
    refuses(IllegalStateException.class, "open", () -> keyboard.read("a"));

    byte[] bytes = java.nio.file.Files.readAllBytes(java.nio.file.Path.of(model));
    try (Keyboard again = new Keyboard(bytes)) {
      print("bytes", again.find(new Touches(), 3, new Keyboard.Options()));
    }
  }
}
