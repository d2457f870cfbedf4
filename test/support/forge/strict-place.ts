/** The circle's people on a strict fake of a forge. */
import type { CirclePlace } from "./circle.ts";
import { PEOPLE } from "./kept-pull.ts";
import { gitIn } from "../remotes.ts";
import type { StrictForge } from "./strict-forge.ts";

export function strictPlace(forge: StrictForge): CirclePlace {
  const done = () => Promise.resolve();
  return {
    get branch() {
      return forge.branch;
    },
    head: () => Promise.resolve(forge.head()),
    report(result, log) {
      forge.report(forge.head(), { name: "ci / test", result, log: log.join("\n") });
      return done();
    },
    review(comments) {
      const lines = comments.map((one) => ({ path: "one", ...one }));
      forge.review(PEOPLE.dev, "changes", lines);
      return done();
    },
    push: (branch, path, text) =>
      Promise.resolve(forge.push(branch === "base" ? forge.into : forge.branch, path, text)),
    squash() {
      forge.squash();
      return done();
    },
    isMergeable: () => Promise.resolve(forge.isMergeable()),
    comments: () => Promise.resolve(forge.comments.map(({ text }) => text)),
    threads: () =>
      Promise.resolve(
        forge.threads.map(({ id, line, isResolved, comments }) => ({
          name: id,
          line,
          isResolved,
          texts: comments.map(({ text }) => text),
        })),
      ),
    git: (...args) => gitIn(forge.remote.folder, ...args),
  };
}
