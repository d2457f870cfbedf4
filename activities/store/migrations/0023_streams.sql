-- Safe while old workers run: their results are said as not kept apart.
ALTER TABLE "tool_calls" ADD COLUMN "streams" json;