/** Workspaces that try to break saving, restoring, pulling and comparing, as programs that create them in a sandbox. */
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface Hostile {
  /** Python that creates it in the current folder, with `os`, `socket` and `sub(folder)` defined. */
  readonly fill: string;
  /** Files that are not saved, and why: the beginning of `path reason`; and Python that removes them. */
  readonly skipped?: readonly [named: string, removal: string];
  /** Runs during the first save, and ends when a file named `stop` exists. */
  readonly beside?: string;
}

/** Deep trees are created and read through open folders: their paths are longer than the kernel accepts. */
export const TOOLS = String.raw`
import hashlib, os, socket, stat, sys
def sub(name, at=None):
    os.mkdir(name, dir_fd=at)
    return os.open(name, os.O_RDONLY, dir_fd=at)
def touch(name, at=None, data=b""):
    fd = os.open(name, os.O_CREAT | os.O_WRONLY, 0o644, dir_fd=at)
    os.write(fd, data)
    os.close(fd)
def nested(depth, name="d"):
    at = os.open(".", os.O_RDONLY)
    for _ in range(depth):
        inner = sub(name, at)
        os.close(at)
        at = inner
    return at
`;

/** A hash of everything but sockets and pipes: kinds, modes, names, targets, times of files, contents. */
export const HASH = String.raw`
digest, count = hashlib.sha256(), 0
stack = [(b"", os.open(".", os.O_RDONLY), None)]
todo = [(1, b"", None)]
def listing(at, prefix, depth):
    global count
    for name in sorted(map(os.fsencode, os.listdir(at)), reverse=True):
        todo.append((depth, prefix, name))
todo = []
listing(stack[0][1], b"", 1)
def put(*parts):
    digest.update(b"\0".join(part if isinstance(part, bytes) else str(part).encode() for part in parts) + b"\0\0")
while todo:
    depth, prefix, name = todo.pop()
    while len(stack) > depth:
        _, fd, mode = stack.pop()
        if mode is not None: os.fchmod(fd, mode)
        os.close(fd)
    at = stack[-1][1]
    info = os.stat(name, dir_fd=at, follow_symlinks=False)
    mode = stat.S_IMODE(info.st_mode)
    count += 1
    if stat.S_ISLNK(info.st_mode):
        put("l", name, os.readlink(name, dir_fd=at))
    elif stat.S_ISREG(info.st_mode):
        if not mode & 0o400: os.chmod(name, mode | 0o400, dir_fd=at)
        content = hashlib.sha256()
        if info.st_size:
            with open(os.open(name, os.O_RDONLY, dir_fd=at), "rb") as file:
                while data := file.read(1 << 20): content.update(data)
        if not mode & 0o400: os.chmod(name, mode, dir_fd=at)
        put("f", name, mode, info.st_size, info.st_mtime_ns, content.digest())
    elif stat.S_ISDIR(info.st_mode):
        put("d", name, mode, depth)
        if mode & 0o500 != 0o500: os.chmod(name, mode | 0o500, dir_fd=at)
        fd = os.open(name, os.O_RDONLY, dir_fd=at)
        stack.append((name, fd, mode if mode & 0o500 != 0o500 else None))
        listing(fd, b"", depth + 1)
    else: count -= 1
while stack:
    _, fd, mode = stack.pop()
    if mode is not None: os.fchmod(fd, mode)
print(count, digest.hexdigest())
`;

/** Created by programs that a repository names. */
export const MARKER = join(tmpdir(), `longhaul-was-run-${process.pid}`);

export const HOSTILE: Readonly<Record<string, Hostile>> = {
  "2,040 nested folders with 1,000 empty files": {
    fill: `at = nested(2040)\nfor i in range(1000): touch(f"{i}", at)`,
  },
  "200,000 empty files": {
    fill: `for d in range(100):\n  at = sub(f"folder{d}")\n  for i in range(2000): os.mknod(f"file{i}", 0o100644, dir_fd=at)\n  os.close(at)`,
  },
  "names of 255 bytes that are no UTF-8": {
    fill: String.raw`
for i in range(2000): touch(b"\xff\xfe%05d" % i + b"\xc3" * 248, data=b"%d" % i)
at = nested(15, b"\xe2\x82" + b"\xed\xa0\x80" * 84 + b"x")
touch(b"line\nbreak\r\x1b]52;c;x\x07", at, b"odd")
os.symlink(b"to\xe9" * 100, b"link\xff")`,
  },
  "paths longer than any program takes": {
    fill: `os.mkdir("short"); touch("short/kept", data=b"kept")\nat = nested(30, "n" * 255)\ntouch("unreachable", at)`,
    skipped: [
      "n".repeat(255),
      String.raw`
at = [os.open(".", os.O_RDONLY)]
for _ in range(30): at.append(os.open("n" * 255, os.O_RDONLY, dir_fd=at[-1]))
os.unlink("unreachable", dir_fd=at.pop())
while len(at) > 16: os.rmdir("n" * 255, dir_fd=at.pop())`,
    ],
  },
  "a file that changes while it is saved": {
    fill: `touch("still", data=b"still"); os.mkdir("moving")\nfor i in range(200): touch(f"moving/{i}", data=os.urandom(20000))`,
    beside: String.raw`
import time
step = 0
while not os.path.exists("/tmp/stop"):
    step += 1
    touch("growing", data=os.urandom(step * 1000 % 3000000))
    os.truncate("growing", step * 777 % 100000)
    os.rename(f"moving/{step % 200}", "moving/away"); touch(f"moving/{step % 200}", data=os.urandom(50))
    os.chmod("moving", 0 if step % 2 else 0o755); os.chmod("moving", 0o755)`,
  },
  "folders and files closed to their owner": {
    fill: String.raw`
for d in ("a", "a/b", "a/b/c", "e"): os.mkdir(d)
for f in ("a/1", "a/b/2", "a/b/c/3", "e/4", "5"): touch(f, data=f.encode()); os.chmod(f, 0)
for d in ("a/b/c", "a/b", "a"): os.chmod(d, 0o644)
os.chmod("e", 0); os.mkdir("f"); os.chmod("f", 0o111)`,
  },
  "sparse files": {
    fill: `touch("60M"); os.truncate("60M", 60 << 20); touch("1T"); os.truncate("1T", 1 << 40)`,
    skipped: ["1T too-large", `os.unlink("1T")`],
  },
  "hard links": {
    fill: `touch("one", data=os.urandom(1 << 20)); os.mkdir("links")\nfor i in range(20): os.link("one", f"links/{i}")\ntouch("none")\nfor i in range(1000): os.link("none", f"links/none{i}")`,
  },
  "sockets and pipes": {
    fill: `s = socket.socket(socket.AF_UNIX); s.bind("socket"); os.mkfifo("pipe"); touch("file", data=b"file"); os.symlink("pipe", "link")`,
  },
  "links through links": {
    fill: String.raw`
os.symlink("/", "root"); os.symlink("root/etc", "etc"); os.symlink("etc/passwd", "passwd"); os.symlink("loop", "loop")
os.mkdir("folder"); os.symlink("..", "folder/up"); os.symlink("folder/up/folder/up/../../..", "far"); os.symlink("x" * 4000, "long")
touch("folder/file", data=b"file")`,
  },
  "a repository with a monitor, hooks and credentials": {
    fill: String.raw`
for d in (".git", ".git/hooks", ".git/refs", ".git/objects", ".git/modules", ".git/modules/m", ".git/modules/m/hooks", "m"): os.mkdir(d)
touch(".git/HEAD", data=b"ref: refs/heads/main\n")
config = b"[core]\n\tfsmonitor = \"touch ${MARKER}\"\n\tsshCommand = touch ${MARKER}\n[remote \"origin\"]\n\turl = https://user:sk-secret-credential@example.invalid/x.git\n[include]\n\tpath = ../evil\n"
touch(".git/config", data=config); touch(".git/modules/m/config", data=config)
touch("m/.git", data=b"gitdir: ../.git/modules/m\n")
for hook in ("post-checkout", "pre-commit", "fsmonitor-watchman"):
  for base in (".git/hooks/", ".git/modules/m/hooks/"):
    touch(base + hook, data=b"#!/bin/sh\ntouch ${MARKER}\n"); os.chmod(base + hook, 0o755)
touch(".gitattributes", data=b"* filter=evil diff=evil\n"); touch("a.txt", data=b"a\n")`,
  },
};
