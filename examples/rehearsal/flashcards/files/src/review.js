// A review at the prompt: question, a pause to think, the answer, a grade.

import { createSession } from "./session.js";
import { preview } from "./sm2.js";

const KEYS = { 1: "again", 2: "hard", 3: "good", 4: "easy", a: "again", h: "hard", g: "good", e: "easy" };

/** @returns the collection with all answers that were given, also when the person stops in between */
export async function reviewCards({ collection, day, io }, options) {
  const session = createSession(collection, { ...options, day });
  if (session.left === 0) {
    io.out("Nothing is due. Come back tomorrow.");
    return collection;
  }
  for (let card = session.current(); card !== undefined; card = session.current()) {
    io.out(`\n[${session.left} left] ${card.deck}\n  ${card.front}`);
    const thought = await io.ask("  Enter shows the answer, q ends: ");
    if (thought === undefined || isQuit(thought)) break;
    io.out(`  ${card.back}`);
    const key = await gradeKey(io, preview(card.schedule, day));
    if (key === "quit") break;
    if (key === "undo") {
      io.out(session.undo() ? "  The last answer is taken back." : "  There is nothing to take back.");
      continue;
    }
    const next = session.answer(key);
    io.out(`  ${key}: again in ${days(next.schedule.interval)}`);
  }
  io.out(`\n${session.done} answers, ${session.left} left.`);
  return session.collection;
}

async function gradeKey(io, intervals) {
  const choices = Object.entries(intervals).map(
    ([grade, count], at) => `${at + 1} ${grade} (${days(count)})`,
  );
  for (;;) {
    const answer = await io.ask(`  ${choices.join(" · ")} · u undo · q quit: `);
    if (answer === undefined || isQuit(answer)) return "quit";
    const key = answer.trim().toLowerCase();
    if (key === "u") return "undo";
    if (Object.hasOwn(KEYS, key)) return KEYS[key];
    io.out("  Please press 1, 2, 3, 4, u or q.");
  }
}

function isQuit(text) {
  return text.trim().toLowerCase() === "q";
}

function days(count) {
  return count === 1 ? "1 day" : `${count} days`;
}
