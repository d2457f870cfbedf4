import { describe, expect, it } from "vitest";
import { createBackgroundSaves } from "../../activities/workspace/background-save.ts";

/** A promise that the test resolves. */
function gate() {
  let open: () => void = () => {};
  const passed = new Promise<void>((resolve) => (open = resolve));
  return { passed, open };
}

describe("saving in parallel with the next step", () => {
  it("saves once, after the last of several calls at once, when one of them changes files", async () => {
    const saves = createBackgroundSaves();
    const slow = gate();
    const log: string[] = [];
    const save = async () => void log.push("save");
    const first = saves.around("s", { changes: true, save }, async () => void log.push("first"));
    const second = saves.around("s", { changes: false, save }, () =>
      slow.passed.then(() => void log.push("second")),
    );
    await first;
    expect(log).toEqual(["first"]);
    slow.open();
    await second;
    await saves.settled("s");
    expect(log).toEqual(["first", "second", "save"]);
  });

  it("saves nothing when no call changes files", async () => {
    const saves = createBackgroundSaves();
    let saved = false;
    await saves.around("s", { changes: false, save: async () => void (saved = true) }, async () => {});
    await saves.settled("s");
    expect(saved).toBe(false);
  });

  it("reports a save in progress to a call of its session, and delays no other session", async () => {
    const saves = createBackgroundSaves();
    const saving = gate();
    const log: string[] = [];
    await saves.around(
      "s",
      { changes: true, save: () => saving.passed.then(() => void log.push("saved")) },
      async () => {},
    );
    const call = (name: string) => async (saved: Promise<void>) => {
      await saved;
      log.push(name);
    };
    const next = saves.around("s", { changes: false, save: async () => {} }, call("next"));
    await saves.around("other", { changes: false, save: async () => {} }, call("other"));
    saving.open();
    await next;
    expect(log).toEqual(["other", "saved", "next"]);
  });

  it("saves once more on request, after a save in progress, although a call did not wait", async () => {
    const saves = createBackgroundSaves();
    const saving = gate();
    const log: string[] = [];
    const save = (name: string) => () => saving.passed.then(() => void log.push(name));
    await saves.around("s", { changes: true, save: save("first") }, async () => {});
    await saves.around("s", { changes: true, save: save("second") }, async () => {});
    const third = saves.saving("s", save("third"));
    saving.open();
    await third;
    expect(log).toEqual(["first", "second", "third"]);
  });

  it("continues after a failed save, and passes on a call's own failure", async () => {
    const saves = createBackgroundSaves();
    const failing = { changes: true, save: () => Promise.reject(new Error("disk full")) };
    await saves.around("s", failing, async () => {});
    await expect(saves.around("s", failing, () => Promise.reject(new Error("lost")))).rejects.toThrow("lost");
    await expect(saves.settled("s")).resolves.toBeUndefined();
  });
});
