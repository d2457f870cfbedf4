-- Safe while old workers run: two columns that they neither read nor write.
ALTER TABLE "tool_calls" ADD COLUMN "mcp_task" text;--> statement-breakpoint
ALTER TABLE "mcp_catalogues" ADD COLUMN "next" json;