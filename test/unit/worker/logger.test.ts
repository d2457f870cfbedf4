import { afterEach, expect, test, vi } from "vitest";
import { createSanitizer } from "../../../activities/redaction/sanitizer.ts";
import { createLogger, temporalLogger } from "../../../worker/logger.ts";

afterEach(() => {
  vi.restoreAllMocks();
});

test("a line of Temporal's says why an activity failed, masked, without what could complete it", () => {
  const written = vi.spyOn(process.stderr, "write").mockReturnValue(true);
  const logger = temporalLogger(createLogger("info", createSanitizer(["s3cret-word"])));
  const cause = new Error("invalid reference format");
  logger.warn("Activity failed", {
    error: new Error("the engine refused s3cret-word", { cause }),
    attempt: 4,
    taskToken: "CiQwMWEyMDhhOS1kM2U5",
  });
  const line = JSON.parse(String(written.mock.calls[0]?.[0])) as Record<string, unknown>;
  expect(line).toMatchObject({ msg: "Activity failed", attempt: 4 });
  expect(line["error"]).toMatchObject({ message: "the engine refused [masked]: invalid reference format" });
  expect(line).not.toHaveProperty("taskToken");
});
