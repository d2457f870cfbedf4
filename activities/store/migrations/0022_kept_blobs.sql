-- Safe while old workers run. What was stored before counts as stored today.
ALTER TABLE "blob_uses" ADD COLUMN "kept_at" timestamp with time zone DEFAULT now() NOT NULL;--> statement-breakpoint
-- A client's role keeps files for its own sessions only: those of its owner, and ids that no other person's session or item has.
CREATE OR REPLACE FUNCTION "longhaul_keep_blob"("session" text, "media_type" text, "bytes" bytea) RETURNS text
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
end $$;
