-- Safe while old workers run: they leave the new columns empty. What they hide from a view meanwhile is shown again by a reset.
CREATE TABLE "view_marks" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"kind" text NOT NULL,
	"round" integer,
	"round_epoch" integer,
	"sequences" "int8multirange" NOT NULL,
	"request_id" text,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "checkpoints" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "parent_epoch" integer;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "previous" text;--> statement-breakpoint
ALTER TABLE "runs" ADD COLUMN "forked_from" text;--> statement-breakpoint
ALTER TABLE "tool_calls" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "compaction_events" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "stored_messages" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "egress_rules" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "permission_grants" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "questions" ADD COLUMN "superseded_from" text;--> statement-breakpoint
ALTER TABLE "questions" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
ALTER TABLE "delegations" ADD COLUMN "superseded_from" text;--> statement-breakpoint
ALTER TABLE "delegations" ADD COLUMN "superseded_by" integer[];--> statement-breakpoint
CREATE INDEX "view_marks_session_idx" ON "view_marks" USING btree ("session_id");--> statement-breakpoint
INSERT INTO "view_marks" ("session_id", "epoch", "step", "kind", "sequences")
	SELECT "session_id", max("epoch"), "pruned_step", 'prune', range_agg(int8range("sequence", "sequence", '[]'))
	FROM "stored_messages" WHERE "pruned_step" IS NOT NULL AND "superseded_epoch" IS NULL GROUP BY "session_id", "pruned_step";
