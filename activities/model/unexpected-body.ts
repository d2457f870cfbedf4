/** A successful response that is neither a stream nor an answer: the words of its body say what it is. */
export class UnexpectedBody extends Error {
  override readonly name = "UnexpectedBody";
  /** Read by `readErrorFacts`, as that of a refused request. */
  readonly responseBody: string;

  constructor(body: string) {
    super(body.trim() === "" ? "The response has no body." : "The response is not an answer.");
    this.responseBody = body;
  }
}
