import { expect, it } from "vitest";
import { ClientError, exitCodes } from "../../../client/console/errors.ts";
import { parseSettings } from "../../../client/sessions/with-session.ts";
import { configOf } from "../../support/run-config.ts";

it("gives a session's settings", () => {
  const config = configOf({});
  expect(parseSettings({ id: "calm-otter", config })).toMatchObject({ model: config.model });
});

it("says in words which of them this version does not take", () => {
  const { sandbox, ...rest } = configOf({});
  const config = { ...rest, sandbox: { ...sandbox, image: "My Tools", network: "by-moonlight" } };
  const read = () => parseSettings({ id: "calm-otter", config });
  expect(read).toThrow(ClientError);
  expect(read).toThrow(
    expect.objectContaining({
      exitCode: exitCodes.impossible,
      message: expect.stringMatching(
        /^The session calm-otter has .*\nsandbox\.image: .*\nsandbox\.network: /,
      ),
      fix: expect.stringContaining("longhaul pull"),
    }),
  );
});
