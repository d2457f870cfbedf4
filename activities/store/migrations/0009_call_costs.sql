-- Safe while old workers run: their calls have no cost of their own.
ALTER TABLE "model_calls" ADD COLUMN "cache_write_tokens" integer;--> statement-breakpoint
ALTER TABLE "model_calls" ADD COLUMN "cost_usd" double precision;