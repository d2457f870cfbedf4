CREATE TABLE "permission_grants" (
	"id" bigserial PRIMARY KEY NOT NULL,
	"session_id" text NOT NULL,
	"epoch" integer NOT NULL,
	"step" integer NOT NULL,
	"tool" text NOT NULL,
	"match" text,
	"granted_by" text,
	"granted_at" timestamp with time zone DEFAULT now() NOT NULL,
	"superseded_epoch" integer
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
	CONSTRAINT "questions_session_id_epoch_id_pk" PRIMARY KEY("session_id","epoch","id"),
	CONSTRAINT "questions_kind_check" CHECK ("questions"."kind" in ('ask','approval','mcp','budget','egress','plan')),
	CONSTRAINT "questions_status_check" CHECK ("questions"."status" in ('open','answered','defaulted','declined','withdrawn','superseded'))
);
--> statement-breakpoint
CREATE TABLE "mcp_catalogues" (
	"session_id" text NOT NULL,
	"server" text NOT NULL,
	"epoch" integer NOT NULL,
	"taken_at" timestamp with time zone DEFAULT now() NOT NULL,
	"era" text NOT NULL,
	"tools" json NOT NULL,
	"digest" text NOT NULL,
	"found" json,
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
	CONSTRAINT "delegations_session_id_epoch_step_call_index_pk" PRIMARY KEY("session_id","epoch","step","call_index"),
	CONSTRAINT "delegations_access_check" CHECK ("delegations"."access" in ('read','write')),
	CONSTRAINT "delegations_status_check" CHECK ("delegations"."status" in ('open','applied','partly','failed','superseded'))
);
--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "parent_id" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "parent_call" text;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "parent_epoch" integer;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "depth" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "sessions" ADD COLUMN "access" text;--> statement-breakpoint
ALTER TABLE "tool_calls" ADD COLUMN "mcp_server" text;--> statement-breakpoint
ALTER TABLE "tool_calls" ADD COLUMN "read_only" boolean;--> statement-breakpoint
ALTER TABLE "tool_calls" ADD COLUMN "mcp_state" text;--> statement-breakpoint
CREATE INDEX "questions_open_idx" ON "questions" USING btree ("asked_at") WHERE status = 'open';--> statement-breakpoint
CREATE INDEX "delegations_child_idx" ON "delegations" USING btree ("child_id");--> statement-breakpoint
CREATE INDEX "sessions_parent_idx" ON "sessions" USING btree ("parent_id") WHERE parent_id is not null;