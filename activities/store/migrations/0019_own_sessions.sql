-- Safe while old workers run: they give delegates the same ids. An old client that chooses a derived id is refused.
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
REVOKE ALL ON FUNCTION "longhaul_taken"(text[], text, text), "longhaul_remove_schedule"(text) FROM PUBLIC;
