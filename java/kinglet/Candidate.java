package kinglet;

/** A word, or two, that touches may mean. */
public final class Candidate {
  /** What a candidate is; in the order of kinglet_typing_kind. */
  public enum Kind { WORD, TWO_WORDS, LETTERS, USER_WORD }

  private final String text;
  private final double logProbability;
  private final double cost;
  private final Kind kind;

  Candidate(String text, double logProbability, double cost, Kind kind) {
    this.text = text;
    this.logProbability = logProbability;
    this.cost = cost;
    this.kind = kind;
  }

  public String text() {
    return text;
  }

  /** Of the text after what was read, in nats. */
  public double logProbability() {
    return logProbability;
  }

  /** Of the typing errors that explain the touches, in nats. */
  public double cost() {
    return cost;
  }

  public Kind kind() {
    return kind;
  }

  /** By which candidates are ordered, best first. */
  public double score() {
    return logProbability - cost;
  }

  @Override
  public String toString() {
    return text;
  }
}
