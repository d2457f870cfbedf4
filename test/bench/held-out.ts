/**
 * Texts that the token sketch was not made on: documents and sources of packages that are installed anyway, Chinese
 * written for this benchmark, and tool output as tools print it about those packages. The sketch's own samples are in
 * test/unit/context/samples.ts.
 */
import { globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { fixtureText } from "../support/fixture-text.ts";

const modules = new URL("../../node_modules/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, modules), "utf8");

/** What people write: lines of documents that are sentences. */
function prose(): string {
  const documents = [
    "terser/README.md",
    "yargs/README.md",
    "rxjs/README.md",
    "acorn/CHANGELOG.md",
    "pg/README.md",
  ];
  const lines = documents.flatMap((path) => read(path).split("\n"));
  return lines.filter((line) => /^[\w*-].{60,}[.:)]$/.test(line) && !line.includes("](")).join("\n");
}

function code(): string {
  const paths = [
    "Observable.ts",
    "ReplaySubject.ts",
    "operators/share.ts",
    "operators/retry.ts",
    "ajax/ajax.ts",
  ];
  return paths.map((path) => read(`rxjs/src/internal/${path}`)).join("\n");
}

function json(): string {
  return ["rxjs", "pg", "yargs", "terser", "zod", "commander"]
    .map((name) => read(`${name}/package.json`))
    .join("\n");
}

const chinese = `导入程序现在会逐行读取文件，遇到格式错误的行时不会中断，而是把它记在报告里，等全部处理完以后一起告诉用户。
昨天下午我们讨论了复习计划的算法：如果一张卡片连续三次答对，下次复习的间隔就按照难度系数延长；一旦答错，间隔立刻回到一天。
数据库里保存的金额一律使用整数，单位是分，这样可以避免浮点数带来的误差。请不要修改对外公开的接口，因为移动端的旧版本还在使用。
测试覆盖了空文件、只有表头的文件、重复的卡片以及包含表情符号的内容，全部通过。剩下的工作是把导出功能做完，并在说明文档里补充几个例子。
部署的时候要先停掉后台任务，备份数据，然后再执行迁移脚本；如果中途失败，可以直接恢复备份，不会丢失任何学习记录。
老师建议把界面上的按钮放大一些，颜色也要更柔和，因为很多学生是在手机上学习的，晚上看屏幕时间长了眼睛容易疲劳。
`;

/** `ls -l` and matches of a search in the installed packages; then the log of a build and a test run, made from a seed. */
function toolOutput(): string {
  const folder = new URL("rxjs/src/internal/operators/", modules);
  const list = readdirSync(folder).map((name) => {
    const size = String(statSync(new URL(name, folder)).size).padStart(6);
    return `-rw-r--r-- 1 agent agent ${size} Nov 21 11:42 ${name}`;
  });
  const matches = globSync("rxjs/src/internal/scheduler/*.ts", { cwd: modules })
    .toSorted()
    .flatMap((path) =>
      read(path)
        .split("\n")
        .flatMap((line, at) => (line.includes("schedule") ? [`${path}:${at + 1}:${line}`] : [])),
    );
  return [list.join("\n"), matches.join("\n"), fixtureText("tool-output.txt").trimEnd()].join("\n\n");
}

export type HeldOutKind = "prose" | "code" | "json" | "chinese" | "toolOutput";

/** Reads the packages' files. */
export function heldOutTexts(): Readonly<Record<HeldOutKind, string>> {
  return { prose: prose(), code: code(), json: json(), chinese, toolOutput: toolOutput() };
}
