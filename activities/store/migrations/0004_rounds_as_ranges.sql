-- Not safe while old workers run: stop them first. Their rounds mark rows of a table that is a view from here on.
ALTER TABLE "messages" RENAME TO "stored_messages";--> statement-breakpoint
ALTER TABLE "compaction_events" ADD COLUMN "replaced" "int8multirange";--> statement-breakpoint
CREATE INDEX "compaction_events_session_idx" ON "compaction_events" USING btree ("session_id","id");--> statement-breakpoint
-- The marks of a round that was undone are on its summary alone.
UPDATE "compaction_events" r SET "replaced" = (
	SELECT range_agg(int8range(m."sequence", m."sequence", '[]')) FROM "stored_messages" m
	WHERE m."session_id" = r."session_id" AND m."compacted_round" = r."round" AND m."superseded_epoch" IS NULL
) WHERE r."status" <> 'failed' AND r."superseded_epoch" IS NULL;--> statement-breakpoint
ALTER TABLE "stored_messages" DROP COLUMN "is_compacted";--> statement-breakpoint
ALTER TABLE "stored_messages" DROP COLUMN "compacted_round";--> statement-breakpoint
ALTER TABLE "stored_messages" DROP COLUMN "compacted_at";--> statement-breakpoint
CREATE VIEW "messages" AS (select "stored_messages"."id", "stored_messages"."session_id", "stored_messages"."sequence", "stored_messages"."position", "stored_messages"."epoch", "stored_messages"."step", "stored_messages"."slot", "stored_messages"."role", "stored_messages"."kind", "stored_messages"."content", "stored_messages"."meta", "stored_messages"."token_count", "stored_messages"."pruned_step", "stored_messages"."superseded_epoch", "stored_messages"."created_at", "compaction_events"."id" is not null as "is_compacted", "compaction_events"."round" as "compacted_round", "compaction_events"."created_at" as "compacted_at" from "stored_messages" left join "compaction_events" on ("compaction_events"."session_id" = "stored_messages"."session_id" and "compaction_events"."superseded_epoch" is null and "stored_messages"."sequence" <@ "compaction_events"."replaced"));--> statement-breakpoint
-- No round writes its rows again: the server's own defaults take less room, and a view is unpacked faster.
ALTER TABLE "stored_messages" RESET (toast_tuple_target, fillfactor);
