// A question that was asked, and the wait for its outcome.

import type { Channel } from "./channel.js";
import { QuestionService, type Question } from "./gen/v1.js";
import type { CallOptions } from "./scope.js";

export class Asked {
  /** The question as it was when it was asked. */
  readonly question: Question;
  readonly #channel: Channel;

  /** @internal */
  constructor(channel: Channel, question: Question) {
    this.#channel = channel;
    this.question = question;
  }

  /**
   * Waits until the question is answered, has expired or is withdrawn. Returns it as it is then.
   * Without `timeoutMs` the wait has no end.
   *
   * @throws HiveError DEADLINE_EXCEEDED after `timeoutMs`; the question stays open
   */
  outcome(options: CallOptions = {}): Promise<Question> {
    const { id: questionId } = this.question;
    const { watchQuestions } = QuestionService.method;
    return this.#channel.scoped(options, async (scope) => {
      const steps = this.#channel.watch(scope, watchQuestions, () => ({ questionId }));
      for await (const { step } of steps) {
        if (step.case !== "snapshot" && step.case !== "batch") continue;
        const question = step.value.questions.find(({ id }) => id === questionId);
        if (question?.closeTime) return question;
      }
      throw new Error("a watch has no end");
    });
  }
}
