/** What models call the fields of our tools, learned from other agents' tools. Data. */

/**
 * By our name, or its place inside another field: others' names, without case, `-` and `_`. A name counts only where the tool has
 * the field and the call lacks it.
 */
export const SYNONYMS: Readonly<Record<string, readonly string[]>> = {
  command: ["cmd", "commands", "shellcommand", "bashcommand", "commandline", "script"],
  timeout_seconds: [
    "timeout",
    "timeouts",
    "timeoutsec",
    "timeoutsecs",
    "timeoutms",
    "timeoutmillis",
    "timeoutmilliseconds",
  ],
  background: ["runinbackground", "isbackground", "inbackground", "async"],
  cwd: ["workdir", "workingdir", "workingdirectory", "dir", "directory", "dirpath", "folder", "path"],
  id: ["bashid", "shellid", "processid", "commandid", "taskid", "sessionid", "callid", "pid"],
  path: [
    "filepath",
    "filename",
    "file",
    "targetfile",
    "absolutepath",
    "relativepath",
    "relativeworkspacepath",
    "imagepath",
    "image",
    "dir",
    "dirpath",
    "directory",
    "directorypath",
    "targetdirectory",
    "folder",
    "folderpath",
    "searchpath",
  ],
  offset: ["startline", "lineoffset", "fromline", "start", "startoffset"],
  limit: ["maxlines", "numlines", "linecount", "lines", "length", "maxchars"],
  content: ["contents", "filecontent", "filecontents", "filetext", "text", "body"],
  "items.content": ["task", "title", "text", "description", "name", "step"],
  old_string: ["oldstr", "oldtext", "old", "search"],
  new_string: ["newstr", "newtext", "new", "replace", "replacement"],
  replace_all: ["all", "replaceallmatches", "allowmultiple"],
  patch: ["diff", "patchtext", "patchcontent", "input"],
  pattern: [
    "regex",
    "regexp",
    "regexpattern",
    "query",
    "search",
    "searchpattern",
    "glob",
    "globpattern",
    "filepattern",
  ],
  include: ["glob", "globpattern", "includepattern", "filepattern", "includes", "fileglob"],
  handle: ["outputid", "callid", "id"],
  query: ["q", "search", "searchterm", "keywords", "pattern", "words"],
  items: ["todos", "todolist", "tasks", "list"],
  question: ["prompt", "message", "text", "query"],
  options: ["choices", "answers"],
  task: ["prompt", "instructions", "message"],
  plan: ["text", "content"],
};

/** By tool: what it cannot do, and would do something else without. Such a call is refused. */
export const NOT_TO_DROP: Readonly<Record<string, readonly string[]>> = {
  bash: ["env", "environment", "stdin", "user", "dryrun"],
  write_file: ["append", "startline", "endline", "insertline", "line", "dryrun"],
  edit_file: ["dryrun", "preview"],
  apply_patch: ["dryrun", "preview", "reverse"],
};

/** Without case and the marks between words. */
export const squashed = (name: string): string => name.toLowerCase().replaceAll(/[^\p{L}\p{N}]/gu, "");
