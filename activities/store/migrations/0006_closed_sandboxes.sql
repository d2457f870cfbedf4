-- Not safe while older workers run, stop those first: what one of them opens again counts as closed by an earlier run.
ALTER TABLE "boxes" ADD COLUMN "closed_run" text;--> statement-breakpoint
-- Sessions that have ended had their sandbox saved and removed, but for those that say otherwise.
UPDATE "boxes" SET "closed_run" = coalesce("sessions"."run_id", '') FROM "sessions" WHERE "sessions"."id" = "boxes"."session_id" AND "sessions"."container" IS NULL AND "sessions"."ended_at" IS NOT NULL AND NOT EXISTS (SELECT 1 FROM "events" WHERE "events"."session_id" = "boxes"."session_id" AND "events"."type" = 'sandbox:not-closed');
