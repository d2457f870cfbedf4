-- Safe while old workers run: two columns that they neither read nor write.
ALTER TABLE "tool_calls" ADD COLUMN "mcp_task" text;--> statement-breakpoint
ALTER TABLE "mcp_catalogues" ADD COLUMN "next" json;--> statement-breakpoint
CREATE TABLE "open_requests" (
	"session_id" text PRIMARY KEY NOT NULL,
	"id" bigserial NOT NULL,
	"key" text NOT NULL,
	"minute" bigint NOT NULL,
	"tokens" bigint NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "rate_windows" (
	"key" text NOT NULL,
	"minute" bigint NOT NULL,
	"requests" integer NOT NULL,
	"tokens" bigint NOT NULL,
	CONSTRAINT "rate_windows_key_minute_pk" PRIMARY KEY("key","minute")
);
--> statement-breakpoint
CREATE INDEX "open_requests_key_idx" ON "open_requests" USING btree ("key");