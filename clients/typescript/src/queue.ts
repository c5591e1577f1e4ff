// A queue without a limit, from one side that pushes to one that reads. After its end a reader
// gets what is left, and then the error of the end or `done`.

export class Queue<T> {
  readonly #items: T[] = [];
  readonly #readers: (() => void)[] = [];
  #end: { error: unknown } | undefined;

  /** Adds an item; does nothing after the end. */
  push(item: T): void {
    if (this.#end) return;
    this.#items.push(item);
    this.#readers.shift()?.();
  }

  /** Ends the queue, with an error if there is one. */
  end(error?: unknown): void {
    this.#end ??= { error };
    for (const wake of this.#readers.splice(0)) wake();
  }

  async next(): Promise<IteratorResult<T, undefined>> {
    while (this.#items.length === 0) {
      if (this.#end?.error !== undefined) throw this.#end.error;
      if (this.#end) return { done: true, value: undefined };
      await new Promise<void>((resolve) => this.#readers.push(resolve));
    }
    return { done: false, value: this.#items.shift() as T };
  }

  /** Reads the queue to its end. The transport needs a generator, because it may throw into it. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, undefined> {
    for (let next = await this.next(); !next.done; next = await this.next()) yield next.value;
  }
}
