/** An MCP server of the older revisions as a program for the sandbox. */

const PROGRAM = `
import json, os, sys, time

def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

TOOLS = {
    "whoami": "Which process this is, how often it was called, and what it was given of the environment.",
    "slow": "Waits until a file is there, then writes a line.",
    "die": "Ends this server.",
}
calls = 0
for line in sys.stdin:
    request = json.loads(line)
    method, call, params = request["method"], request.get("id"), request.get("params", {})
    if call is None:
        continue
    if method == "initialize":
        info = {"name": "program", "version": "1"}
        say({"id": call, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}})
    elif method == "tools/list":
        tools = [{"name": name, "description": text, "inputSchema": {"type": "object"}} for name, text in TOOLS.items()]
        say({"id": call, "result": {"tools": tools}})
    elif method == "tools/call":
        calls += 1
        print("a line that is no message", flush=True)
        if params["name"] == "die":
            print("it was asked to", file=sys.stderr, flush=True)
            sys.exit(3)
        if params["name"] == "slow":
            open("/workspace/slow.marks", "a").write("begun\\n")
            while not os.path.exists("/tmp/go"):
                time.sleep(0.05)
            open("/workspace/slow.marks", "a").write("done\\n")
        secrets = [name for name in os.environ if name.startswith(("LONGHAUL_", "DATABASE_", "OPENAI_")) and name != "LONGHAUL_CALL"]
        text = json.dumps({"pid": os.getpid(), "calls": calls, "secrets": secrets, "given": os.environ.get("GIVEN")})
        say({"id": call, "result": {"content": [{"type": "text", "text": text}]}})
    else:
        say({"id": call, "error": {"code": -32601, "message": "Method not found"}})
`;

/** Its settings. */
export const mcpProgram = {
  command: "python3",
  args: ["-c", PROGRAM],
  env: { GIVEN: "this" },
};
