import { describe, expect, it } from "vitest";
import { classOfError } from "../../../activities/model/to-model-error.ts";
import { readErrorFacts } from "../../../activities/model/error-facts.ts";

const classOf = (statusCode: number, message: string) =>
  classOfError(readErrorFacts({ statusCode, responseBody: JSON.stringify({ error: { message } }) }));

describe("what a provider says decides before its status", () => {
  it.each([
    [400, "输入内容过长，超过模型最大上下文长度限制", "overflow"],
    [400, "上下文长度超出限制", "overflow"],
    [400, "请求的 tokens 超过最大限制", "overflow"],
    [400, "Total tokens of image and text exceed max message tokens", "overflow"],
    [400, "Request body length 4718592 exceeding max size 4194304", "overflow"],
    [500, "Conversation roles must alternate user/assistant/user/assistant/...", "rejected"],
    [500, "Only user and assistant roles are supported!", "rejected"],
    [500, "System message must be at the beginning.", "rejected"],
    [500, "The request was blocked by our usage policy", "rejected"],
    [503, "No endpoints found matching your data policy", "rejected"],
    [400, "账户余额不足，请充值", "quota"],
    [400, "Insufficient account balance", "quota"],
    [403, "Your account is in arrears", "quota"],
    // And those that only look like these.
    [500, "Internal server error", "unavailable"],
    [503, "The model is overloaded", "unavailable"],
    [400, "请求过于频繁", "rejected"],
    [429, "请求过于频繁，请稍后再试", "rate-limit"],
  ])("%i %s", (status, message, kind) => {
    expect(classOf(status, message)).toBe(kind);
  });

  it.each(["<title>Just a moment...</title>", "<p>Checking your browser before you go on</p>"])(
    "a browser check passes, any other page with 403 does not: %s",
    (words) => {
      const page = (body: string) => ({
        statusCode: 403,
        responseBody: `<!DOCTYPE html><html>${body}</html>`,
      });
      expect(classOfError(readErrorFacts(page(words)))).toBe("unavailable");
      expect(classOfError(readErrorFacts(page("<h1>Blocked by the proxy</h1>")))).toBe("rejected");
    },
  );
});
