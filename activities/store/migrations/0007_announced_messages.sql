-- Safe while old workers run: an index alone.
CREATE INDEX "events_queued_idx" ON "events" USING btree ("session_id",(data->>'id')) WHERE type = 'message:queued';
