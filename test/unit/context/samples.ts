/** Texts of the kinds that an agent reads, to measure estimates against a real tokenizer. */
import { readFileSync } from "node:fs";

const root = new URL("../../../", import.meta.url);
const file = (path: string) => readFileSync(new URL(path, root), "utf8");

const prose = `The worker keeps the conversation in a database and hands the engine nothing but ids. When a step has
been paid for, its answer is stored before anybody is told, so that a crash afterwards costs no second call. People can
send guidance while the agent works; it waits in a queue until the step is over and then enters the conversation as one
message. A long task outgrows any window, which is why older messages are replaced by a summary that names every file,
every decision and everything that is still open. Nothing is ever deleted: rows are marked, and whoever wants to know
what happened on Tuesday night can read it again on Wednesday morning. We walked along the river for an hour, talking
about the harvest, and by the time the lamps were lit nobody remembered who had started the argument.\n`;

const toolOutput = `$ npm test
> cards@1.0.0 test
> node --test

✔ schedules a new card for tomorrow (1.482917ms)
✔ keeps the ease factor above 1.3 (0.214583ms)
✖ imports a deck of 10000 cards (5012.337042ms)
  AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:
  9998 !== 10000
      at TestContext.<anonymous> (file:///workspace/test/import.test.js:41:10)
      at async Test.run (node:internal/test_runner/test:1054:7)
ℹ tests 3
ℹ pass 2
ℹ fail 1
ℹ duration_ms 5086.91025

total 88
drwxr-xr-x 6 agent agent  4096 Nov 21 12:01 .
drwxr-xr-x 1 root  root   4096 Nov 21 11:58 ..
-rw-r--r-- 1 agent agent  1284 Nov 21 12:01 README.md
-rw-r--r-- 1 agent agent 31822 Nov 21 12:01 package-lock.json
src/scheduler.js:17:export function nextInterval(card, quality) {
src/scheduler.js:58:  return Math.round(card.interval * card.ease);
commit 9f2c1d07b6e4a85f3c0d9e17a2b4c68d5f1e0a93
Author: agent <agent@localhost>
 src/import.js | 14 +++++++++-----
 2 files changed, 21 insertions(+), 9 deletions(-)
`;

export const samples = {
  prose,
  typescript: file("activities/store/schema/index.ts") + file("activities/contract/activities.ts"),
  json: file("activities/store/migrations/meta/0000_snapshot.json"),
  hashes: file("package-lock.json").slice(0, 60_000),
  toolOutput,
  chinese:
    "程序会检查每个工具调用是否恰好有一个结果。如果与数据库的连接丢失，代理会等待并重试。消息历史不会被删除，只会被标记，以便人们以后可以阅读。上下文压缩之后，任务、规则以及用户最近的消息都会逐字保留。我们沿着河边走了很久，傍晚时分水面上升起了浓雾；远处有狗在叫，窗户里已经亮起了温暖的灯光。请先运行测试，然后修改配置文件，最后提交代码。每一步都必须可以恢复，即使工作进程被强制终止，任务也要从中断的地方继续执行。",
  japanese:
    "プログラムは、すべてのツール呼び出しに対して結果がちょうど一つあることを確認します。データベースへの接続が失われた場合、エージェントは待機してから再試行します。メッセージの履歴は削除されず、後で人が読めるように印が付けられるだけです。私たちは川沿いを長い間歩き、夕方になると水面に濃い霧が立ちこめました。",
  russian:
    "Программа проверяет, что каждый вызов инструмента имеет ровно один результат. Если соединение с базой данных потеряно, агент ждёт и пробует снова. История сообщений не удаляется, она только помечается, чтобы человек мог прочитать её позже. Мы долго гуляли вдоль реки, и вечером над водой поднялся густой туман; где-то далеко лаяла собака, а в окнах уже загорался тёплый свет.",
};
