package kinglet;

/** A call of the library that failed. The message names the place, what was expected and found. */
public final class KingletException extends RuntimeException {
  private static final long serialVersionUID = 1;
  private final String status;

  KingletException(String status, String message) {
    super(message);
    this.status = status;
  }

  /** The name of the library's status, such as "KINGLET_IO_ERROR" (kinglet/status.h). */
  public String status() {
    return status;
  }
}
