-- Safe while old workers run: triggers note the blobs that they name in rows. Writes of messages wait until it has ended.
CREATE TABLE "blob_uses" (
	"session_id" text NOT NULL,
	"sha256" text NOT NULL,
	CONSTRAINT "blob_uses_session_id_sha256_pk" PRIMARY KEY("session_id","sha256")
);
--> statement-breakpoint
CREATE INDEX "blob_uses_blob_idx" ON "blob_uses" USING btree ("sha256");--> statement-breakpoint
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
INSERT INTO "blob_uses" SELECT DISTINCT session_id, found[1] FROM (
  SELECT session_id, content::text AS words FROM stored_messages WHERE content::text LIKE '%@blob:%'
  UNION ALL SELECT session_id, parts::text FROM guidance WHERE parts::text LIKE '%@blob:%'
  UNION ALL SELECT session_id, start::text FROM batch_items WHERE session_id IS NOT NULL AND start::text LIKE '%@blob:%'
) AS said, regexp_matches(words, '@blob:([0-9a-f]{64})', 'g') AS found;--> statement-breakpoint
DROP INDEX "guidance_blobs_idx";--> statement-breakpoint
DROP INDEX "messages_blobs_idx";--> statement-breakpoint
-- A blob and its use at once: whoever removes unused blobs sees both or neither.
CREATE FUNCTION "longhaul_keep_blob"("session" text, "media_type" text, "bytes" bytea) RETURNS text
  LANGUAGE sql SECURITY DEFINER SET search_path = public, pg_temp AS $$
  insert into blob_uses (session_id, sha256) values ($1, encode(sha256($3), 'hex')) on conflict do nothing;
  select longhaul_save_blob($2, $3) $$;--> statement-breakpoint
REVOKE ALL ON FUNCTION "longhaul_keep_blob"(text, text, bytea), "longhaul_note_blobs"() FROM PUBLIC;
