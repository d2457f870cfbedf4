CREATE TABLE "blobs" (
	"sha256" text PRIMARY KEY NOT NULL,
	"media_type" text NOT NULL,
	"bytes" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "checkpoints" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"parent_id" bigint,
	"manifest" "bytea" NOT NULL,
	"pack" "bytea" NOT NULL,
	"superseded_epoch" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "checkpoints_session_epoch_step_key" UNIQUE("session_id","epoch","step")
);
--> statement-breakpoint
CREATE TABLE "compaction_events" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"round" integer NOT NULL,
	"trigger" text NOT NULL,
	"strategy" text NOT NULL,
	"status" text NOT NULL,
	"reason" text,
	"attempts" json NOT NULL,
	"tokens_before" integer NOT NULL,
	"tokens_after" integer NOT NULL,
	"from_sequence" bigint,
	"to_sequence" bigint,
	"summary_content" text,
	"duration_ms" integer NOT NULL,
	"superseded_epoch" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "cursors" (
	"session_id" text PRIMARY KEY NOT NULL,
	"message_sequence" bigint DEFAULT 0 NOT NULL,
	"event_seq" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "events" (
	"session_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"attempt" integer NOT NULL,
	"type" text NOT NULL,
	"data" json NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "events_session_id_seq_pk" PRIMARY KEY("session_id","seq")
);
--> statement-breakpoint
CREATE TABLE "guidance" (
	"session_id" text NOT NULL,
	"id" text NOT NULL,
	"ordinal" bigserial NOT NULL,
	"parts" json NOT NULL,
	"queued_at" text NOT NULL,
	"delivered_sequence" bigint,
	CONSTRAINT "guidance_session_id_id_pk" PRIMARY KEY("session_id","id")
);
--> statement-breakpoint
CREATE TABLE "messages" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"sequence" bigint NOT NULL,
	"position" double precision NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"slot" text NOT NULL,
	"role" text NOT NULL,
	"kind" text NOT NULL,
	"content" json NOT NULL,
	"meta" json,
	"token_count" integer NOT NULL,
	"is_compacted" boolean DEFAULT false NOT NULL,
	"compacted_round" integer,
	"compacted_at" timestamp with time zone,
	"pruned_step" integer,
	"superseded_epoch" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "messages_session_sequence_key" UNIQUE("session_id","sequence"),
	CONSTRAINT "messages_session_epoch_step_slot_key" UNIQUE("session_id","epoch","step","slot"),
	CONSTRAINT "messages_role_check" CHECK ("messages"."role" in ('user','assistant','tool'))
);
--> statement-breakpoint
CREATE TABLE "model_calls" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"attempt" integer NOT NULL,
	"purpose" text NOT NULL,
	"model" text NOT NULL,
	"status" text NOT NULL,
	"finish" text,
	"error" text,
	"estimated_input" integer NOT NULL,
	"estimate_pure" boolean NOT NULL,
	"input_tokens" integer,
	"cached_tokens" integer,
	"output_tokens" integer,
	"reasoning_tokens" integer,
	"first_token_ms" integer,
	"duration_ms" integer,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "runs" (
	"session_id" text NOT NULL,
	"run_id" text NOT NULL,
	"ordinal" integer NOT NULL,
	"epoch" integer NOT NULL,
	"chain" text NOT NULL,
	"start_step" integer NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "runs_session_id_run_id_pk" PRIMARY KEY("session_id","run_id")
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"status" text DEFAULT 'active' NOT NULL,
	"task" text NOT NULL,
	"config" json NOT NULL,
	"instructions" text,
	"epoch" integer DEFAULT 1 NOT NULL,
	"run_id" text,
	"container" text,
	"host" text,
	"restore_workspace" boolean DEFAULT false NOT NULL,
	"result" text,
	"error" json,
	CONSTRAINT "sessions_status_check" CHECK ("sessions"."status" in ('active','waiting','completed','failed','cancelled','max_steps'))
);
--> statement-breakpoint
CREATE TABLE "stream_chunks" (
	"session_id" text NOT NULL,
	"seq" bigint NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"attempt" integer NOT NULL,
	"chunk_type" text NOT NULL,
	"text" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "stream_chunks_session_id_seq_pk" PRIMARY KEY("session_id","seq")
);
--> statement-breakpoint
CREATE TABLE "token_ratios" (
	"model" text PRIMARY KEY NOT NULL,
	"ratio" double precision NOT NULL,
	"samples" integer NOT NULL,
	"updated_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "tool_calls" (
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"index" integer NOT NULL,
	"call_id" text NOT NULL,
	"name" text NOT NULL,
	"sequence" bigint NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"fence" integer DEFAULT 0 NOT NULL,
	"container" text,
	"exit_code" integer,
	"truncated" boolean DEFAULT false NOT NULL,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"superseded_epoch" integer,
	CONSTRAINT "tool_calls_session_id_epoch_step_index_pk" PRIMARY KEY("session_id","epoch","step","index"),
	CONSTRAINT "tool_calls_session_sequence_key" UNIQUE("session_id","sequence"),
	CONSTRAINT "tool_calls_status_check" CHECK ("tool_calls"."status" in ('pending','running','completed','error','interrupted','unknown'))
);
--> statement-breakpoint
CREATE TABLE "tool_outputs" (
	"session_id" text NOT NULL,
	"handle" text NOT NULL,
	"part" integer NOT NULL,
	"offset" bigint NOT NULL,
	"content" text NOT NULL,
	CONSTRAINT "tool_outputs_session_id_handle_part_pk" PRIMARY KEY("session_id","handle","part")
);
--> statement-breakpoint
ALTER TABLE "cursors" ADD CONSTRAINT "cursors_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "compaction_events_round_key" ON "compaction_events" USING btree ("session_id","epoch","round") WHERE status <> 'failed';--> statement-breakpoint
CREATE INDEX "messages_view_idx" ON "messages" USING btree ("session_id","position") WHERE is_compacted = false and superseded_epoch is null;--> statement-breakpoint
CREATE INDEX "model_calls_session_idx" ON "model_calls" USING btree ("session_id","step");--> statement-breakpoint
CREATE INDEX "sessions_created_at_idx" ON "sessions" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "tool_calls_call_id_idx" ON "tool_calls" USING btree ("session_id","call_id");