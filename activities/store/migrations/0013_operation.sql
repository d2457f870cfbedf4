CREATE TABLE "batch_items" (
	"batch_id" text NOT NULL,
	"item_id" text NOT NULL,
	"ordinal" integer NOT NULL,
	"digest" text NOT NULL,
	"session_id" text,
	"start" json,
	"manifest" "bytea",
	"pack" "bytea",
	"attempt" integer DEFAULT 0 NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"failure" text,
	CONSTRAINT "batch_items_batch_id_item_id_pk" PRIMARY KEY("batch_id","item_id"),
	CONSTRAINT "batch_items_status_check" CHECK ("batch_items"."status" in ('pending','running','completed','failed','cancelled','max_steps'))
);
--> statement-breakpoint
CREATE TABLE "batches" (
	"id" text PRIMARY KEY NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"owner" text,
	"concurrency" integer NOT NULL,
	"stop_after" integer,
	"max_cost_usd" double precision,
	"status" text DEFAULT 'running' NOT NULL,
	CONSTRAINT "batches_status_check" CHECK ("batches"."status" in ('running','completed','failed','stopped','cancelled'))
);
--> statement-breakpoint
CREATE TABLE "schedules" (
	"name" text PRIMARY KEY NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"owner" text,
	"task" text NOT NULL,
	"config" json NOT NULL
);
--> statement-breakpoint
CREATE TABLE "deleted_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"owner" text,
	"deleted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"deleted_by" text
);
--> statement-breakpoint
ALTER TABLE "guidance" ADD COLUMN "said_by" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "owner" text;--> statement-breakpoint
ALTER TABLE "batch_items" ADD CONSTRAINT "batch_items_batch_id_batches_id_fk" FOREIGN KEY ("batch_id") REFERENCES "public"."batches"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "batch_items_session_idx" ON "batch_items" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "checkpoints_parent_idx" ON "checkpoints" USING btree ("parent_id") WHERE parent_id is not null;--> statement-breakpoint
CREATE INDEX "guidance_blobs_idx" ON "guidance" USING btree ("session_id") WHERE parts::text like '%@blob:%';--> statement-breakpoint
CREATE INDEX "sessions_ended_at_idx" ON "sessions" USING btree ("ended_at");--> statement-breakpoint
CREATE INDEX "sessions_owner_idx" ON "sessions" USING btree ("owner","created_at");--> statement-breakpoint
CREATE INDEX "messages_blobs_idx" ON "stored_messages" USING btree ("session_id") WHERE content::text like '%@blob:%';