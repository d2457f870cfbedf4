-- Safe while old workers run: what they deliver meanwhile is not kept for a reset to say again.
ALTER TABLE "guidance" ADD COLUMN "dropped" boolean DEFAULT false NOT NULL;--> statement-breakpoint
CREATE INDEX "guidance_waiting_idx" ON "guidance" USING btree ("session_id","ordinal") WHERE delivered_sequence is null and not dropped;