/** The engine's client. */
import Dockerode from "dockerode";
import { engineAddress } from "./engine-address.ts";

/**
 * How long the engine may take to answer a request, in ms. A stream (exec, attach, build, pull) counts as answered when it
 * begins. Source: the default of Docker's own client for Python.
 */
const ANSWER_MS = 60_000;

type Callback = (error: unknown, answer?: unknown) => void;
type Request = {
  readonly abortSignal?: AbortSignal;
  readonly file?: unknown;
  readonly path?: string;
  readonly options?: object;
} & object;

/**
 * Connects when first used; an engine that restarts or hangs costs only the calls in flight.
 * @throws EngineSettingWrong if the environment names no engine that can be reached
 */
export function connectDocker(
  options: Dockerode.DockerOptions = engineAddress().client,
  answerMs: number = ANSWER_MS,
): Dockerode {
  const docker = new Dockerode(options);
  const modem = docker.modem as { dial(request: Request, callback: Callback): void };
  const dial = modem.dial.bind(modem);
  // The library's own timeout counts silence, and so would end idle streams.
  const send = (request: Request, callback: Callback) => {
    if (!isPlain(request.path)) return callback(notPlain(request.path));
    // An upload (an image, by the set-up) is answered only when it is complete.
    if (request.file !== undefined) return dial(request, callback);
    const late = new AbortController();
    const timer = setTimeout(() => {
      const error = new Error(`no answer within ${answerMs / 1_000} s`);
      late.abort(error);
      callback(error);
    }, answerMs);
    const { abortSignal } = request;
    const signal = abortSignal === undefined ? late.signal : AbortSignal.any([abortSignal, late.signal]);
    dial({ ...request, abortSignal: signal }, (error, answer) => {
      clearTimeout(timer);
      if (!late.signal.aborted) callback(error, answer);
    });
  };
  modem.dial = (request, callback) => {
    if (request.path !== CREATE) return send(request, callback);
    // Asked each time: the engine may have been replaced since.
    docker
      .version()
      .then(({ ApiVersion }) => send(creating(request, ApiVersion), callback))
      .catch((error: unknown) => callback(error));
  };
  return docker;
}

/**
 * The engine redirects a path with an empty segment or a dot segment, and the library takes the start of the redirect's target
 * for a host: an error that nothing catches. Names that we validate cannot have such segments; this check covers all others.
 */
const isPlain = (path = ""): boolean =>
  !path
    .split("?", 1)[0]
    ?.split("/")
    .slice(1)
    .some((segment) => ["", ".", ".."].includes(segment));

const notPlain = (path: string | undefined): Error =>
  Object.assign(new Error(`${path} is no path of the Docker engine's API`), { statusCode: 400 });

const CREATE = "/containers/create?";

/**
 * Puts the engine's version into the path: a proxy that refuses mounts of host folders checks only such paths (wollomatic's
 * 1.12.2). And keeps all options but the name out of the address, where the library puts them too: with the supervisor's source
 * the address has 40 KB, which a proxy in between refuses (HAProxy and Node accept 16 KB).
 */
function creating(request: Request, version: string): Request {
  const { name, ...body } = request.options as { readonly name?: string };
  const options = { _query: name === undefined ? {} : { name }, _body: body };
  return { ...request, path: `/v${version}${CREATE}`, options };
}
