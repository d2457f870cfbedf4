-- Safe while older workers run: columns, tables and functions that they do not use.
ALTER TABLE "tool_calls" ADD COLUMN "mcp_task" text;--> statement-breakpoint
ALTER TABLE "mcp_catalogues" ADD COLUMN "next" json;--> statement-breakpoint
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
CREATE INDEX "open_requests_key_idx" ON "open_requests" USING btree ("key");--> statement-breakpoint
CREATE TABLE "client_roles" (
	"role" text PRIMARY KEY NOT NULL,
	"owner" text NOT NULL
);
--> statement-breakpoint
ALTER VIEW "public"."messages" SET (security_invoker = true);--> statement-breakpoint
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
ALTER TABLE "boxes" ADD COLUMN "image" text;
