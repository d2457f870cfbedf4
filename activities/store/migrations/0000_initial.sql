-- The first migration, from which a database is recognised as one of ours: an earlier build's is refused.
CREATE TABLE "blob_uses" (
	"session_id" text NOT NULL,
	"sha256" text NOT NULL,
	"kept_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "blob_uses_session_id_sha256_pk" PRIMARY KEY("session_id","sha256")
);
--> statement-breakpoint
CREATE TABLE "blobs" (
	"sha256" text PRIMARY KEY NOT NULL,
	"media_type" text NOT NULL,
	"bytes" "bytea" NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "bases" (
	"key" text PRIMARY KEY NOT NULL,
	"base_family" text NOT NULL,
	"url" text NOT NULL,
	"commit" text NOT NULL,
	"manifest" "bytea" NOT NULL,
	"pack" "bytea" NOT NULL,
	"is_whole" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"pack_object" text,
	"object_bytes" bigint
);
--> statement-breakpoint
CREATE TABLE "checkpoints" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"parent_id" bigint,
	"base_key" text,
	"manifest" "bytea" NOT NULL,
	"pack" "bytea" NOT NULL,
	"before_pack" "bytea",
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"pack_object" text,
	"object_bytes" bigint,
	CONSTRAINT "checkpoints_session_epoch_step_key" UNIQUE("session_id","epoch","step")
);
--> statement-breakpoint
CREATE TABLE "cursors" (
	"session_id" text PRIMARY KEY NOT NULL,
	"message_sequence" bigint DEFAULT 0 NOT NULL,
	"event_seq" bigint DEFAULT 0 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "guidance" (
	"session_id" text NOT NULL,
	"id" text NOT NULL,
	"ordinal" bigserial NOT NULL,
	"parts" json NOT NULL,
	"queued_at" text NOT NULL,
	"received" boolean DEFAULT false NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"author" text,
	"delivered_sequence" bigint,
	"dropped" boolean DEFAULT false NOT NULL,
	CONSTRAINT "guidance_session_id_id_pk" PRIMARY KEY("session_id","id")
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
	"cache_write_tokens" integer,
	"output_tokens" integer,
	"reasoning_tokens" integer,
	"first_token_ms" integer,
	"duration_ms" integer,
	"cost_usd" double precision,
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
	"parent_epoch" integer,
	"previous" text,
	"forked_from" text,
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
	"epoch" integer DEFAULT 1 NOT NULL,
	"run_id" text,
	"namespace" text,
	"container" text,
	"restore_workspace" boolean DEFAULT false NOT NULL,
	"result" text,
	"error" json,
	"parent_id" text,
	"parent_call" text,
	"parent_epoch" integer,
	"access" text,
	"owner" text,
	"verified" text,
	CONSTRAINT "sessions_status_check" CHECK ("sessions"."status" in ('active','waiting','completed','failed','cancelled','max_steps'))
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
	"streams" json,
	"truncated" boolean DEFAULT false NOT NULL,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"mcp_server" text,
	"mcp_state" text,
	"mcp_task" text,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"background" text,
	"background_end" json,
	CONSTRAINT "tool_calls_session_id_epoch_step_index_pk" PRIMARY KEY("session_id","epoch","step","index"),
	CONSTRAINT "tool_calls_session_sequence_key" UNIQUE("session_id","sequence"),
	CONSTRAINT "tool_calls_status_check" CHECK ("tool_calls"."status" in ('pending','running','completed','error','interrupted','unknown')),
	CONSTRAINT "tool_calls_background_check" CHECK ("tool_calls"."background" in ('running','ended','told'))
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
CREATE TABLE "sandboxes" (
	"session_id" text PRIMARY KEY NOT NULL,
	"host" text NOT NULL,
	"volume" text NOT NULL,
	"container" text NOT NULL,
	"boot" text NOT NULL,
	"image" text,
	"base_key" text,
	"task_queue" text,
	"saved_step" integer,
	"closed_run" text,
	"saves_begun" integer DEFAULT 0 NOT NULL,
	"left_out" json DEFAULT '[]'::json NOT NULL,
	"notice" text,
	"parked_at" timestamp with time zone,
	"parked_until" timestamp with time zone,
	"parked_bytes" bigint,
	"unparked" text
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
	"replaced" "int8multirange",
	"duration_ms" integer NOT NULL,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stored_messages" (
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
	"pruned_step" integer,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "stored_messages_session_sequence_key" UNIQUE("session_id","sequence"),
	CONSTRAINT "stored_messages_session_epoch_step_slot_key" UNIQUE("session_id","epoch","step","slot"),
	CONSTRAINT "stored_messages_role_check" CHECK ("stored_messages"."role" in ('system','user','assistant','tool'))
);
--> statement-breakpoint
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
CREATE TABLE "workers" (
	"id" serial PRIMARY KEY NOT NULL,
	"identity" text NOT NULL,
	"namespace" text NOT NULL,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"sessions" text[] DEFAULT '{}' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "publications" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"kind" text NOT NULL,
	"ref" text NOT NULL,
	"commit" text NOT NULL,
	"url" text,
	"status" text NOT NULL,
	"reason" text,
	"run_id" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"remarks" json,
	CONSTRAINT "publications_session_kind_ref_commit_key" UNIQUE("session_id","kind","ref","commit")
);
--> statement-breakpoint
CREATE TABLE "repositories" (
	"session_id" text PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"ref" text,
	"base_commit" text NOT NULL,
	"branch" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "egress_rules" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"domain" text NOT NULL,
	"by" text NOT NULL,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "egress_rules_session_epoch_domain_key" UNIQUE("session_id","epoch","domain")
);
--> statement-breakpoint
CREATE TABLE "permission_grants" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"tool" text NOT NULL,
	"match" text,
	"granted_by" text,
	"granted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"superseded_epoch" integer,
	"superseded_by" integer[]
);
--> statement-breakpoint
CREATE TABLE "questions" (
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"id" text NOT NULL,
	"step" integer NOT NULL,
	"call_index" integer,
	"kind" text NOT NULL,
	"text" text NOT NULL,
	"options" json,
	"default_text" text,
	"input_hash" text,
	"asked_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"status" text DEFAULT 'open' NOT NULL,
	"answer" text,
	"answered_by" text,
	"answered_at" timestamp with time zone,
	"superseded_from" text,
	"superseded_by" integer[],
	"blocks" boolean DEFAULT true NOT NULL,
	CONSTRAINT "questions_session_id_epoch_id_pk" PRIMARY KEY("session_id","epoch","id"),
	CONSTRAINT "questions_kind_check" CHECK ("questions"."kind" in ('ask','approval','mcp','budget','egress','plan')),
	CONSTRAINT "questions_status_check" CHECK ("questions"."status" in ('open','answered','defaulted','declined','withdrawn','superseded'))
);
--> statement-breakpoint
CREATE TABLE "installation" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"id" text DEFAULT gen_random_uuid() NOT NULL,
	"money_zone" text DEFAULT 'UTC' NOT NULL,
	"budgets" json,
	CONSTRAINT "installation_only_check" CHECK ("installation"."only")
);
--> statement-breakpoint
CREATE TABLE "mcp_catalogues" (
	"session_id" text NOT NULL,
	"server" text NOT NULL,
	"epoch" integer NOT NULL,
	"era" text NOT NULL,
	"tools" json NOT NULL,
	"digest" text NOT NULL,
	"found" json,
	"next" json,
	CONSTRAINT "mcp_catalogues_session_id_server_pk" PRIMARY KEY("session_id","server")
);
--> statement-breakpoint
CREATE TABLE "mcp_credentials" (
	"server" text NOT NULL,
	"principal" text NOT NULL,
	"sealed" "bytea" NOT NULL,
	"key_id" text NOT NULL,
	"expires_at" timestamp with time zone,
	"version" integer DEFAULT 1 NOT NULL,
	CONSTRAINT "mcp_credentials_server_principal_pk" PRIMARY KEY("server","principal")
);
--> statement-breakpoint
CREATE TABLE "delegations" (
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"call_index" integer NOT NULL,
	"child_id" text NOT NULL,
	"access" text NOT NULL,
	"base_checkpoint" bigint,
	"status" text DEFAULT 'open' NOT NULL,
	"files" json,
	"superseded_from" text,
	"superseded_by" integer[],
	CONSTRAINT "delegations_session_id_epoch_step_call_index_pk" PRIMARY KEY("session_id","epoch","step","call_index"),
	CONSTRAINT "delegations_access_check" CHECK ("delegations"."access" in ('read','write')),
	CONSTRAINT "delegations_status_check" CHECK ("delegations"."status" in ('open','applied','partly','failed','superseded'))
);
--> statement-breakpoint
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
	"attempts" json,
	"chosen" json,
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
CREATE TABLE "client_roles" (
	"role" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "waits" (
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"call_index" integer NOT NULL,
	"kind" text NOT NULL,
	"until" timestamp with time zone,
	"target" json,
	"reason" text,
	"started_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"how" text,
	"superseded_epoch" integer,
	"superseded_by" integer[],
	CONSTRAINT "waits_session_id_epoch_step_call_index_pk" PRIMARY KEY("session_id","epoch","step","call_index")
);
--> statement-breakpoint
CREATE TABLE "verifications" (
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"round" integer NOT NULL,
	"command" integer NOT NULL,
	"outcome" text NOT NULL,
	"exit_code" integer,
	"duration_ms" integer NOT NULL,
	"tree" text NOT NULL,
	"command_text" text NOT NULL,
	"signature" text,
	"output_text" text DEFAULT '' NOT NULL,
	"commit" text,
	"protected" json,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"result" double precision,
	"changed_lines" integer,
	"output_handle" text,
	CONSTRAINT "verifications_session_id_epoch_step_round_command_pk" PRIMARY KEY("session_id","epoch","step","round","command"),
	CONSTRAINT "verifications_outcome_check" CHECK ("verifications"."outcome" in ('passed','failed','unavailable','changed-checks'))
);
--> statement-breakpoint
CREATE TABLE "sandbox_hosts" (
	"name" text PRIMARY KEY NOT NULL,
	"task_queue" text,
	"seen_at" timestamp with time zone DEFAULT now() NOT NULL,
	"disk_used" bigint,
	"disk_limit" bigint,
	"bases" integer,
	"parked" integer,
	"unsaved" integer
);
--> statement-breakpoint
CREATE TABLE "warm_bases" (
	"warm_id" text NOT NULL,
	"host" text NOT NULL,
	"base_key" text,
	"commit_id" text,
	"files" integer,
	"bytes" bigint,
	"made_at" timestamp with time zone,
	"checked_at" timestamp with time zone DEFAULT now() NOT NULL,
	"failure" text,
	CONSTRAINT "warm_bases_warm_id_host_pk" PRIMARY KEY("warm_id","host")
);
--> statement-breakpoint
CREATE TABLE "warms" (
	"id" text PRIMARY KEY NOT NULL,
	"url" text NOT NULL,
	"config" json NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "budget_reservations" (
	"session_id" text PRIMARY KEY NOT NULL,
	"id" bigserial NOT NULL,
	"usd" double precision NOT NULL,
	"scopes" text[] NOT NULL,
	"model" text NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "budget_warnings" (
	"scope" text NOT NULL,
	"period_start" date NOT NULL,
	"used_share" double precision NOT NULL,
	CONSTRAINT "budget_warnings_scope_period_start_used_share_pk" PRIMARY KEY("scope","period_start","used_share")
);
--> statement-breakpoint
CREATE TABLE "spending" (
	"day" date NOT NULL,
	"owner" text DEFAULT '' NOT NULL,
	"tenant" text DEFAULT '' NOT NULL,
	"repo" text DEFAULT '' NOT NULL,
	"model" text NOT NULL,
	"purpose" text NOT NULL,
	"of_session" text NOT NULL,
	"sessions" integer DEFAULT 0 NOT NULL,
	"calls" integer NOT NULL,
	"uncosted" integer DEFAULT 0 NOT NULL,
	"input_tokens" bigint DEFAULT 0 NOT NULL,
	"cached_tokens" bigint DEFAULT 0 NOT NULL,
	"output_tokens" bigint DEFAULT 0 NOT NULL,
	"cost_usd" double precision NOT NULL,
	CONSTRAINT "spending_day_owner_tenant_repo_model_purpose_of_session_pk" PRIMARY KEY("day","owner","tenant","repo","model","purpose","of_session")
);
--> statement-breakpoint
CREATE TABLE "budget_allowances" (
	"session_id" text NOT NULL,
	"question" text NOT NULL,
	"scope" text NOT NULL,
	"usd" double precision NOT NULL,
	"base_usd" double precision NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "budget_allowances_session_id_question_pk" PRIMARY KEY("session_id","question")
);
--> statement-breakpoint
CREATE TABLE "follow_rounds" (
	"session_id" text NOT NULL,
	"round_number" integer NOT NULL,
	"head_commit" text NOT NULL,
	"digest" text NOT NULL,
	"reasons" json NOT NULL,
	"told_at" timestamp with time zone DEFAULT now() NOT NULL,
	"ended_at" timestamp with time zone,
	"pushed" text,
	"outcome" text,
	"answered_at" timestamp with time zone,
	"cost_before_usd" double precision DEFAULT 0 NOT NULL,
	"cost_usd" double precision,
	CONSTRAINT "follow_rounds_session_id_round_number_pk" PRIMARY KEY("session_id","round_number")
);
--> statement-breakpoint
CREATE TABLE "follows" (
	"session_id" text PRIMARY KEY NOT NULL,
	"forge" text NOT NULL,
	"project" text NOT NULL,
	"pull_number" integer NOT NULL,
	"pull_url" text NOT NULL,
	"branch" text NOT NULL,
	"base_branch" text,
	"head_commit" text,
	"follow_state" text DEFAULT 'following' NOT NULL,
	"reason" text,
	"rounds" integer DEFAULT 0 NOT NULL,
	"rounds_up_to" integer NOT NULL,
	"max_cost_usd" double precision NOT NULL,
	"opened_at" timestamp with time zone DEFAULT now() NOT NULL,
	"until" timestamp with time zone NOT NULL,
	"facts" json,
	"digest" text,
	"changed_at" timestamp with time zone,
	"quiet_looks" integer DEFAULT 0 NOT NULL,
	"looked_at" timestamp with time zone,
	"next_look_at" timestamp with time zone,
	"lost_at" timestamp with time zone,
	"ended_at" timestamp with time zone,
	"merge_commit" text,
	"posts" text[] DEFAULT '{}' NOT NULL,
	"rounds_from" integer DEFAULT 0 NOT NULL,
	"heard_from" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "follows_state_check" CHECK ("follows"."follow_state" in ('following','paused','merged','closed','lost','stopped'))
);
--> statement-breakpoint
CREATE TABLE "follow_replies" (
	"session_id" text NOT NULL,
	"round_number" integer NOT NULL,
	"reply_kind" text NOT NULL,
	"target" text NOT NULL,
	"reply_text" text NOT NULL,
	"outcome" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"call_index" integer NOT NULL,
	CONSTRAINT "follow_replies_session_id_round_number_reply_kind_target_pk" PRIMARY KEY("session_id","round_number","reply_kind","target")
);
--> statement-breakpoint
CREATE TABLE "stored_objects" (
	"key" text PRIMARY KEY NOT NULL,
	"bytes" bigint NOT NULL,
	"is_used" boolean DEFAULT false NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "bases" ADD CONSTRAINT "bases_pack_object_stored_objects_key_fk" FOREIGN KEY ("pack_object") REFERENCES "public"."stored_objects"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkpoints" ADD CONSTRAINT "checkpoints_pack_object_stored_objects_key_fk" FOREIGN KEY ("pack_object") REFERENCES "public"."stored_objects"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "checkpoints" ADD CONSTRAINT "checkpoints_base_key_bases_key_fk" FOREIGN KEY ("base_key") REFERENCES "public"."bases"("key") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "cursors" ADD CONSTRAINT "cursors_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "runs" ADD CONSTRAINT "runs_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "batch_items" ADD CONSTRAINT "batch_items_batch_id_batches_id_fk" FOREIGN KEY ("batch_id") REFERENCES "public"."batches"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "bases_family_idx" ON "bases" USING btree ("base_family","created_at");--> statement-breakpoint
CREATE INDEX "blob_uses_blob_idx" ON "blob_uses" USING btree ("sha256");--> statement-breakpoint
CREATE INDEX "checkpoints_base_idx" ON "checkpoints" USING btree ("base_key") WHERE base_key is not null;--> statement-breakpoint
CREATE INDEX "checkpoints_parent_idx" ON "checkpoints" USING btree ("parent_id") WHERE parent_id is not null;--> statement-breakpoint
CREATE INDEX "guidance_waiting_idx" ON "guidance" USING btree ("session_id","due_at","ordinal") WHERE delivered_sequence is null and not dropped;--> statement-breakpoint
CREATE INDEX "model_calls_session_idx" ON "model_calls" USING btree ("session_id","step");--> statement-breakpoint
CREATE INDEX "sessions_created_at_idx" ON "sessions" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "sessions_parent_idx" ON "sessions" USING btree ("parent_id") WHERE parent_id is not null;--> statement-breakpoint
CREATE INDEX "sessions_ended_at_idx" ON "sessions" USING btree ("ended_at");--> statement-breakpoint
CREATE INDEX "sessions_owner_idx" ON "sessions" USING btree ("owner","created_at");--> statement-breakpoint
CREATE INDEX "tool_calls_call_id_idx" ON "tool_calls" USING btree ("session_id","call_id");--> statement-breakpoint
CREATE INDEX "events_queued_idx" ON "events" USING btree ("session_id",(data->>'id')) WHERE type = 'message:queued';--> statement-breakpoint
CREATE INDEX "compaction_events_session_idx" ON "compaction_events" USING btree ("session_id","id");--> statement-breakpoint
CREATE UNIQUE INDEX "compaction_events_round_key" ON "compaction_events" USING btree ("session_id","epoch","round") WHERE status <> 'failed';--> statement-breakpoint
CREATE INDEX "stored_messages_live_idx" ON "stored_messages" USING btree ("session_id","position") WHERE superseded_epoch is null;--> statement-breakpoint
CREATE INDEX "stored_messages_user_idx" ON "stored_messages" USING btree ("session_id","position") WHERE superseded_epoch is null and role = 'user';--> statement-breakpoint
CREATE INDEX "stored_messages_summary_idx" ON "stored_messages" USING btree ("session_id","position") WHERE superseded_epoch is null and kind = 'summary';--> statement-breakpoint
CREATE INDEX "stored_messages_notes_idx" ON "stored_messages" USING btree ("session_id") WHERE superseded_epoch is null and role = 'tool' and meta is not null;--> statement-breakpoint
CREATE INDEX "view_marks_session_idx" ON "view_marks" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "questions_open_idx" ON "questions" USING btree ("asked_at") WHERE status = 'open';--> statement-breakpoint
CREATE INDEX "delegations_child_idx" ON "delegations" USING btree ("child_id");--> statement-breakpoint
CREATE INDEX "batch_items_session_idx" ON "batch_items" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "open_requests_key_idx" ON "open_requests" USING btree ("key");--> statement-breakpoint
CREATE INDEX "tool_calls_background_idx" ON "tool_calls" USING btree ("session_id") WHERE background in ('running', 'ended');--> statement-breakpoint
CREATE INDEX "warm_bases_base_idx" ON "warm_bases" USING btree ("base_key");--> statement-breakpoint
CREATE INDEX "spending_owner_idx" ON "spending" USING btree ("owner","day");--> statement-breakpoint
CREATE INDEX "spending_tenant_idx" ON "spending" USING btree ("tenant","day");--> statement-breakpoint
CREATE INDEX "spending_repo_idx" ON "spending" USING btree ("repo","day");--> statement-breakpoint
CREATE UNIQUE INDEX "one_follower" ON "follows" USING btree ("forge","project","pull_number") WHERE "follows"."ended_at" is null;--> statement-breakpoint
CREATE INDEX "bases_object_idx" ON "bases" USING btree ("pack_object") WHERE pack_object is not null;--> statement-breakpoint
CREATE INDEX "checkpoints_object_idx" ON "checkpoints" USING btree ("pack_object") WHERE pack_object is not null;--> statement-breakpoint
CREATE VIEW "public"."messages" WITH (security_invoker = true) AS (select "stored_messages"."id", "stored_messages"."session_id", "stored_messages"."sequence", "stored_messages"."position", "stored_messages"."epoch", "stored_messages"."step", "stored_messages"."slot", "stored_messages"."role", "stored_messages"."kind", "stored_messages"."content", "stored_messages"."meta", "stored_messages"."token_count", "stored_messages"."pruned_step", "stored_messages"."superseded_epoch", "stored_messages"."created_at", "compaction_events"."id" is not null as "is_compacted", "compaction_events"."round" as "compacted_round", "compaction_events"."created_at" as "compacted_at", case when "stored_messages"."pruned_step" is not null then (
          select max(m.created_at) from view_marks m
          where m.session_id = "stored_messages"."session_id" and m.kind = 'prune' and m.superseded_epoch is null
            and m.step = "stored_messages"."pruned_step" and "stored_messages"."sequence" <@ m.sequences) end as "pruned_at" from "stored_messages" left join "compaction_events" on ("compaction_events"."session_id" = "stored_messages"."session_id" and "compaction_events"."superseded_epoch" is null and "stored_messages"."sequence" <@ "compaction_events"."replaced"));--> statement-breakpoint
-- Blobs belong to no session. Who knows a SHA-256 has the bytes or a message that names them; nobody can list them.
CREATE FUNCTION "longhaul_blobs"("hashes" text[]) RETURNS TABLE ("sha256" text, "bytes" bytea)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
  AS $$ select b.sha256, b.bytes from blobs b where b.sha256 = any($1) $$;--> statement-breakpoint
-- The name is counted here: nobody can put other bytes under it.
CREATE FUNCTION "longhaul_save_blob"("media_type" text, "bytes" bytea) RETURNS text
  LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp
  AS $$ insert into blobs (sha256, media_type, bytes) values (encode(sha256($2), 'hex'), $1, $2)
    on conflict (sha256) do update set created_at = now() returning sha256 $$;--> statement-breakpoint
REVOKE ALL ON FUNCTION "longhaul_blobs"(text[]), "longhaul_save_blob"(text, bytea) FROM PUBLIC;--> statement-breakpoint
-- As who calls them: what that role cannot see is not there. For policies, in which a table cannot ask for its own rows.
CREATE FUNCTION "longhaul_sees_session"(text) RETURNS boolean LANGUAGE sql STABLE SET search_path = public, pg_temp
  AS $$ select exists (select 1 from sessions where id = $1) $$;--> statement-breakpoint
-- Volatile, so that it sees what the statement that asks has inserted.
CREATE FUNCTION "longhaul_sees_checkpoint"(bigint) RETURNS boolean LANGUAGE sql VOLATILE SET search_path = public, pg_temp
  AS $$ select exists (select 1 from checkpoints where id = $1) $$;--> statement-breakpoint
CREATE FUNCTION "longhaul_sees_object"(text) RETURNS boolean LANGUAGE sql VOLATILE SET search_path = public, pg_temp
  AS $$ select exists (select 1 from checkpoints where pack_object = $1) $$;--> statement-breakpoint
CREATE FUNCTION "longhaul_sees_base"(text) RETURNS boolean LANGUAGE sql VOLATILE SET search_path = public, pg_temp
  AS $$ select exists (select 1 from bases where key = $1) $$;--> statement-breakpoint
-- The id of a delegate's session follows from its parent's call, and no other session has such an id. The id of a batch's item
-- is kept for its session. Runs as the tables' owner, because a client's role does not see other persons' rows.
CREATE FUNCTION "longhaul_own_id"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
begin
  if new.parent_id is null then
    if new.id ~* '[.]s[0-9]+c[0-9]+(e[0-9]+)?$' then
      raise exception 'session %: only the session of a delegate can have this id', new.id using errcode = 'check_violation';
    end if;
    if exists (select 1 from batch_items i join batches b on b.id = i.batch_id where i.session_id = new.id and i.start is not null
        and (b.owner is distinct from new.owner or i.start->>'task' is distinct from new.task)) then
      -- As if the session existed.
      return null;
    end if;
  elsif new.id is distinct from
      new.parent_id || '.' || regexp_replace(new.parent_call, '^(e[0-9]+)?(s[0-9]+c[0-9]+)$', '\2\1')
    or not exists (select 1 from sessions p where p.id = new.parent_id and p.owner is not distinct from new.owner) then
    raise exception 'session %: it is not the delegate of a call of %', new.id, new.parent_id using errcode = 'check_violation';
  end if;
  return new;
end $$;--> statement-breakpoint
CREATE TRIGGER "longhaul_own_id" BEFORE INSERT ON "sessions" FOR EACH ROW EXECUTE FUNCTION longhaul_own_id();--> statement-breakpoint
-- The ids among these that cannot be an item's: of sessions, other persons' too, and of other items.
CREATE FUNCTION "longhaul_taken"(ids text[], batch text, item text) RETURNS SETOF text
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  select id from sessions where id = any(ids)
  union select session_id from batch_items
    where session_id = any(ids) and (batch_id, item_id) is distinct from (batch, item)
  union select id from unnest(ids) id where id ~* '[.]s[0-9]+c[0-9]+(e[0-9]+)?$' $$;--> statement-breakpoint
-- A right to delete would be one to lock the whole table.
CREATE FUNCTION "longhaul_remove_schedule"(text) RETURNS boolean
  LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
  with gone as (delete from schedules where name = $1 and (owner = (select owner from client_roles where role = session_user)
    or not exists (select 1 from client_roles where role = session_user)) returning 1)
  select exists (select 1 from gone) $$;--> statement-breakpoint
-- The id of this installation, made when it is first asked for. Who asks cannot choose it.
CREATE FUNCTION "longhaul_installation"() RETURNS text
  LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = public, pg_temp AS $$
begin
  if not exists (select 1 from installation) then
    insert into installation default values on conflict do nothing;
  end if;
  return (select id from installation);
end $$;--> statement-breakpoint
REVOKE ALL ON FUNCTION "longhaul_installation"(), "longhaul_taken"(text[], text, text), "longhaul_remove_schedule"(text) FROM PUBLIC;
--> statement-breakpoint
-- Runs as the tables' owner, as clients' roles only read that table. The argument is the column that may name blobs.
CREATE FUNCTION "longhaul_note_blobs"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
declare words text;
begin
  execute format('select ($1).%I::text', tg_argv[0]) into words using new;
  insert into blob_uses (session_id, sha256)
    select distinct new.session_id, named[1] from regexp_matches(words, '@blob:([0-9a-f]{64})', 'g') as named
    on conflict do nothing;
  return null;
end $$;--> statement-breakpoint
CREATE TRIGGER "stored_messages_blobs" AFTER INSERT OR UPDATE OF content ON "stored_messages" FOR EACH ROW
  WHEN (new.content::text like '%@blob:%') EXECUTE FUNCTION longhaul_note_blobs('content');--> statement-breakpoint
CREATE TRIGGER "guidance_blobs" AFTER INSERT OR UPDATE OF parts ON "guidance" FOR EACH ROW
  WHEN (new.parts::text like '%@blob:%') EXECUTE FUNCTION longhaul_note_blobs('parts');--> statement-breakpoint
CREATE TRIGGER "batch_items_blobs" AFTER INSERT OR UPDATE OF start ON "batch_items" FOR EACH ROW
  WHEN (new.session_id is not null and new.start::text like '%@blob:%') EXECUTE FUNCTION longhaul_note_blobs('start');--> statement-breakpoint
-- A blob and its use at once: whoever removes unused blobs sees both or neither.
-- A client's role keeps files for its own sessions only: those of its owner, and ids that no other person's session or item has.
CREATE FUNCTION "longhaul_keep_blob"("session" text, "media_type" text, "bytes" bytea) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
declare mine text;
begin
  select c.owner into mine from client_roles c where c.role = session_user;
  if found and (
    exists (select 1 from sessions s where s.id = $1 and s.owner is distinct from mine)
    or exists (select 1 from batch_items i join batches b on b.id = i.batch_id
      where i.session_id = $1 and b.owner is distinct from mine)
    or ($1 ~* '[.]s[0-9]+c[0-9]+(e[0-9]+)?$' and not exists (select 1 from sessions s where s.id = $1)))
  then
    raise exception 'session %: it is not a session of %', $1, mine using errcode = 'insufficient_privilege';
  end if;
  insert into blob_uses (session_id, sha256) values ($1, encode(sha256($3), 'hex')) on conflict do nothing;
  return longhaul_save_blob($2, $3);
end $$;--> statement-breakpoint
REVOKE ALL ON FUNCTION "longhaul_keep_blob"(text, text, bytea), "longhaul_note_blobs"() FROM PUBLIC;--> statement-breakpoint
-- The name by which people know a repository, the same for all its addresses: host and path in small letters, without scheme, user,
-- usual port, a forge's other name for itself, and `.git`.
CREATE FUNCTION "longhaul_repository"(address text) RETURNS text LANGUAGE sql IMMUTABLE SET search_path = pg_catalog
  AS $$ with plain(place) as (select regexp_replace(regexp_replace(lower($1), '^([^/:@]*@)?([^/:]+):(?!//)', '\2/'),
      '^(?:(https://[^/]*):443|(http://[^/]*):80|(ssh://[^/]*):22)/', '\1\2\3/')),
    named(place) as (select regexp_replace(regexp_replace(regexp_replace(place, '^[a-z+]+://', ''), '^[^/@]*@', ''), '/+', '/', 'g') from plain)
  select coalesce(regexp_replace(regexp_replace(regexp_replace(place, '^([^/:]*[^/:.])\.(?=[/:])', '\1'),
    '^(?:ssh\.(github\.com)|altssh\.(gitlab\.com|bitbucket\.org))(:443)?/', '\1\2/'), '(\.git)?/*$', ''), '') from named $$;--> statement-breakpoint
-- In the statement that stores the bill, whoever does: no call is counted twice, and none is left out. In one order, so that two never
-- wait for each other.
CREATE FUNCTION "longhaul_count_spending"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
begin
  insert into spending (day, owner, tenant, repo, model, purpose, of_session, sessions, calls, uncosted, input_tokens, cached_tokens, output_tokens, cost_usd)
  select ((c.created_at - coalesce(c.duration_ms, 0) * interval '1 ms') at time zone coalesce((select money_zone from installation), 'UTC'))::date,
    coalesce(s.owner, ''), coalesce(r.config->>'tenant', ''), longhaul_repository(r.config->'repository'->>'url'), c.model, c.purpose, md5(c.session_id),
    count(*) filter (where s.parent_id is null
      and not exists (select from model_calls m where m.session_id = c.session_id and m.id < c.id)),
    count(*), count(*) filter (where c.cost_usd is null and c.input_tokens is not null),
    coalesce(sum(c.input_tokens), 0), coalesce(sum(c.cached_tokens), 0), coalesce(sum(c.output_tokens), 0), coalesce(sum(c.cost_usd), 0)
  from new_calls c join sessions s on s.id = c.session_id join sessions r on r.id = coalesce(s.parent_id, s.id)
  group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 4, 5, 6, 7
  on conflict (day, owner, tenant, repo, model, purpose, of_session) do update set sessions = spending.sessions + excluded.sessions,
    calls = spending.calls + excluded.calls, uncosted = spending.uncosted + excluded.uncosted,
    input_tokens = spending.input_tokens + excluded.input_tokens, cached_tokens = spending.cached_tokens + excluded.cached_tokens,
    output_tokens = spending.output_tokens + excluded.output_tokens, cost_usd = spending.cost_usd + excluded.cost_usd;
  -- The bill replaces what was reserved for it.
  delete from budget_reservations b using new_calls c where b.session_id = c.session_id;
  return null;
end $$;--> statement-breakpoint
CREATE TRIGGER "model_calls_spending" AFTER INSERT ON "model_calls" REFERENCING NEW TABLE AS new_calls
  FOR EACH STATEMENT EXECUTE FUNCTION longhaul_count_spending();--> statement-breakpoint
-- A bill that comes after the estimate of its call replaces it, on the day of the call.
CREATE FUNCTION "longhaul_correct_spending"() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
begin
  insert into spending (day, owner, tenant, repo, model, purpose, of_session, calls, uncosted, input_tokens, cached_tokens, output_tokens, cost_usd)
  select ((o.created_at - coalesce(o.duration_ms, 0) * interval '1 ms') at time zone coalesce((select money_zone from installation), 'UTC'))::date,
    coalesce(s.owner, ''), coalesce(r.config->>'tenant', ''), longhaul_repository(r.config->'repository'->>'url'), o.model, o.purpose, md5(o.session_id), 0,
    sum((n.cost_usd is null and n.input_tokens is not null)::int - (o.cost_usd is null and o.input_tokens is not null)::int),
    sum(coalesce(n.input_tokens, 0) - coalesce(o.input_tokens, 0)), sum(coalesce(n.cached_tokens, 0) - coalesce(o.cached_tokens, 0)),
    sum(coalesce(n.output_tokens, 0) - coalesce(o.output_tokens, 0)), sum(coalesce(n.cost_usd, 0) - coalesce(o.cost_usd, 0))
  from old_calls o join new_calls n on n.id = o.id join sessions s on s.id = o.session_id
    join sessions r on r.id = coalesce(s.parent_id, s.id)
  group by 1, 2, 3, 4, 5, 6, 7 order by 1, 2, 3, 4, 5, 6, 7
  on conflict (day, owner, tenant, repo, model, purpose, of_session) do update set uncosted = spending.uncosted + excluded.uncosted,
    input_tokens = spending.input_tokens + excluded.input_tokens, cached_tokens = spending.cached_tokens + excluded.cached_tokens,
    output_tokens = spending.output_tokens + excluded.output_tokens, cost_usd = spending.cost_usd + excluded.cost_usd;
  return null;
end $$;--> statement-breakpoint
CREATE TRIGGER "model_calls_corrected" AFTER UPDATE ON "model_calls" REFERENCING OLD TABLE AS old_calls NEW TABLE AS new_calls
  FOR EACH STATEMENT EXECUTE FUNCTION longhaul_correct_spending();--> statement-breakpoint
REVOKE ALL ON FUNCTION "longhaul_count_spending"(), "longhaul_correct_spending"() FROM PUBLIC;
