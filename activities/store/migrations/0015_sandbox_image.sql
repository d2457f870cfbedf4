-- Safe while older workers run: a column that may be empty.
ALTER TABLE "boxes" ADD COLUMN "image" text;