-- Safe while old workers run: they leave the new column empty, and take a delivery that was begun for one that was done.
ALTER TABLE "publications" ADD COLUMN "run_id" text;