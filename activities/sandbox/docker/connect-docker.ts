/** The engine's client, as DOCKER_HOST and its companions (DOCKER_TLS_VERIFY, DOCKER_CERT_PATH) say. */
import Dockerode from "dockerode";

/**
 * How long the engine may leave a request without an answer, in ms. A stream (exec, attach, build, pull) has answered when it
 * begins: what comes over it is not timed here. Source: the default of Docker's own client for Python.
 */
const ANSWER_MS = 60_000;

type Answered = (error: unknown, answer?: unknown) => void;
type Request = { readonly abortSignal?: AbortSignal; readonly file?: unknown } & object;

/** Connects when first used; an engine that restarts or hangs costs only the calls in flight. */
export function connectDocker(
  options: Dockerode.DockerOptions = {},
  answerMs: number = ANSWER_MS,
): Dockerode {
  const docker = new Dockerode(options);
  const modem = docker.modem as { dial(request: Request, answered: Answered): void };
  const dial = modem.dial.bind(modem);
  // The library's own timeout counts silence, and so ends streams over which nothing is said for a while.
  modem.dial = (request, answered) => {
    // What is uploaded (images, by the set-up alone) is answered when all of it is there.
    if (request.file !== undefined) return dial(request, answered);
    const late = new AbortController();
    const timer = setTimeout(() => {
      const error = new Error(`no answer within ${answerMs / 1_000} s`);
      late.abort(error);
      answered(error);
    }, answerMs);
    const { abortSignal } = request;
    const signal = abortSignal === undefined ? late.signal : AbortSignal.any([abortSignal, late.signal]);
    dial({ ...request, abortSignal: signal }, (error, answer) => {
      clearTimeout(timer);
      if (!late.signal.aborted) answered(error, answer);
    });
  };
  return docker;
}
