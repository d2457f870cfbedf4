/** Ids of questions, which people paste before an answer. */
import { expect, test } from "vitest";
import { isQuestionId } from "../../activities/contract/questions.ts";
import { questionId } from "../../activities/tools/permissions/approval.ts";

test("each kind of question has an id that is not taken for an answer", () => {
  const call = { step: 12, index: 0 };
  const ids = [questionId(call), questionId({ ...call, about: "egress" }), `${questionId(call)}q1`];
  for (const id of [...ids, "s13cost", "s13steps", "s13budget", "s13cost2"])
    expect(isQuestionId(id), id).toBe(true);
  for (const word of ["s12", "steps", "yes", "s1c0 npm", "s3costs"])
    expect(isQuestionId(word), word).toBe(false);
});
