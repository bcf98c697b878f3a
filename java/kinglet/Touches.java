package kinglet;

import java.util.Arrays;

/**
 * What was typed since the last complete word: for each touch the characters that it may mean, each
 * with a cost in nats. For a touch at a distance d from the middle of a key, and touches of a
 * deviation s, the cost of the key's character is d^2 / 2 s^2.
 */
public final class Touches {
  private int[] begins = {0};
  private int[] characters = new int[16];
  private double[] costs = new double[16];

  /** Touches that mean exactly the letters of a text. */
  public static Touches of(String letters) {
    Touches touches = new Touches();
    letters.codePoints().forEach(character -> touches.next().add(character, 0));
    return touches;
  }

  /** Begins the next touch. */
  public Touches next() {
    begins = Arrays.copyOf(begins, begins.length + 1);
    begins[begins.length - 1] = begins[begins.length - 2];
    return this;
  }

  /** Adds a character, a code point, that the touch may mean. */
  public Touches add(int character, double cost) {
    if (begins.length == 1) throw new IllegalStateException("no touch: expected next() before");
    int at = begins[begins.length - 1]++;
    if (at == characters.length) {
      characters = Arrays.copyOf(characters, 2 * at);
      costs = Arrays.copyOf(costs, 2 * at);
    }
    characters[at] = character;
    costs[at] = cost;
    return this;
  }

  public int count() {
    return begins.length - 1;
  }

  int[] begins() {
    return begins;
  }

  int[] characters() {
    return characters;
  }

  double[] costs() {
    return costs;
  }
}
