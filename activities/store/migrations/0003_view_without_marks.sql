-- Safe while old workers run: indexes and storage alone. Their view is read by the first of the new indexes.
CREATE INDEX "messages_live_idx" ON "messages" USING btree ("session_id","position") WHERE superseded_epoch is null;--> statement-breakpoint
CREATE INDEX "messages_said_idx" ON "messages" USING btree ("session_id","position") WHERE superseded_epoch is null and role = 'user';--> statement-breakpoint
CREATE INDEX "messages_summary_idx" ON "messages" USING btree ("session_id","position") WHERE superseded_epoch is null and kind = 'summary';--> statement-breakpoint
DROP INDEX "messages_view_idx";--> statement-breakpoint
-- Contents of more than half a kilobyte lie beside the row, and a page is half full of rows: so a round marks its rows in place,
-- without copying what they hold and without a new entry in any index.
ALTER TABLE "messages" SET (toast_tuple_target = 512, fillfactor = 50);
