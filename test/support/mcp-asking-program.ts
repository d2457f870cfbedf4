/** An MCP server of the revision 2026-07-28 as a program for the sandbox: it asks a person, or works as a task. */

const PROGRAM = `
import json, os, sys, time

def say(call, result):
    print(json.dumps({"jsonrpc": "2.0", "id": call, "result": {"resultType": "complete", **result}}), flush=True)

def text(words):
    return {"content": [{"type": "text", "text": words}]}

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ASK = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": FORM}}
TIMES = {"createdAt": "2026-11-23T09:00:00Z", "lastUpdatedAt": "2026-11-23T09:00:00Z", "ttlMs": None, "pollIntervalMs": 100}
for line in sys.stdin:
    request = json.loads(line)
    method, call, params = request["method"], request.get("id"), request.get("params", {})
    if call is None:
        continue
    if method == "server/discover":
        say(call, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "ttlMs": 0, "cacheScope": "private"})
    elif method == "tools/list":
        tools = [{"name": name, "description": name, "inputSchema": {"type": "object"}} for name in ("ask", "work")]
        say(call, {"tools": tools, "ttlMs": 0, "cacheScope": "private"})
    elif method == "tasks/get":
        done = os.path.exists("/tmp/go")
        end = {"status": "completed", "result": text("worked in " + str(os.getpid()))} if done else {"status": "working"}
        say(call, {"taskId": params["taskId"], **TIMES, **end})
    elif method == "tools/call":
        open("/workspace/calls.log", "a").write(params["name"] + "\\n")
        answers = params.get("inputResponses")
        if params["name"] == "work":
            say(call, {"resultType": "task", "taskId": "t1", "status": "working", **TIMES})
        elif answers is None:
            say(call, {"resultType": "input_required", "inputRequests": {"which": ASK}, "requestState": "kept"})
        else:
            while not os.path.exists("/tmp/answered"):
                time.sleep(0.05)
            say(call, text(answers["which"]["content"]["name"] + " " + params["requestState"]))
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": call, "error": {"code": -32601, "message": "Method not found"}}), flush=True)
`;

/** Its settings. */
export const mcpAskingProgram = { command: "python3", args: ["-c", PROGRAM] };
