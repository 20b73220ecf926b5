// Lines of JSON between a client and its test.
import { createInterface } from "node:readline";

/** Returns the lines that the test writes, as values. */
export function reading() {
  const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  return { next: async () => JSON.parse((await lines.next()).value) };
}

/** Tells the test something. */
export const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
