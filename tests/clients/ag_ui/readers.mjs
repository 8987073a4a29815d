// What AG-UI's own readers make of streams: HttpAgent of two versions, and CopilotKit, which runs tools.
//   node readers.mjs streams < lines    each line {"name", "pieces": [base64, …], "tools": [name, …]}
//   node readers.mjs requests < lines   each line a body: whether both versions' schemas of a request take it
//   node readers.mjs resumes < lines    each line {"url", "version", "text"}: a run that is left, and gone on with
//   node readers.mjs interrupts < lines each line {"version", "stream": base64, "next": base64, "payload"}: a run that waits for the user
//   node readers.mjs loops < lines      each line {"url", "key", "version", "text", "tool": {"name", "result"}}
import { createInterface } from 'node:readline';

const write = console.log.bind(console);
for (const level of ['log', 'info', 'debug', 'warn', 'error']) console[level] = () => {};

const VERSIONS = {
  '1.0.0': await import('@ag-ui/client'),
  '0.0.59': await import('client-of-version-0'),
};
// what the client's second request is answered with, if it makes one
const LAST = ['RUN_STARTED', 'RUN_FINISHED'].map((type) => `data: ${JSON.stringify({ type, threadId: 't', runId: 'r2' })}\n\n`).join('');

function answering(pieces) {
  let posts = 0;
  const fetch = async () => {
    const chunks = posts++ ? [Buffer.from(LAST)] : pieces;
    const body = new ReadableStream({
      start(controller) {
        for (const chunk of chunks) controller.enqueue(new Uint8Array(chunk));
        controller.close();
      },
    });
    return new Response(body, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };
  return { fetch, posts: () => posts };
}

function agentOf(version, pieces) {
  const server = answering(pieces);
  const agent = new VERSIONS[version].HttpAgent({ agentId: 'a', url: 'http://gateway.test/', fetch: server.fetch, threadId: 't' });
  const seen = { finished: false, runError: null, failed: null };
  agent.subscribe({
    onRunFinishedEvent: () => { seen.finished = true; },
    onRunErrorEvent: ({ event }) => { seen.runError = event.message; },
    onRunFailed: ({ error }) => { seen.failed = String(error.message); },
  });
  return { agent, seen, server };
}

async function read(version, pieces) {
  const { agent, seen } = agentOf(version, pieces);
  try {
    await agent.runAgent({ runId: 'r' });
  } catch (error) {
    seen.failed ??= String(error.message);
  }
  const texts = (role) => agent.messages.filter((message) => message.role === role).map((message) => message.content ?? '').join('');
  const calls = agent.messages.flatMap((message) => message.toolCalls ?? []);
  return { ...seen, text: texts('assistant'), reasoning: texts('reasoning'), calls: calls.map((call) => call.function) };
}

async function run(pieces, names) {
  const { CopilotKitCore } = await import('@copilotkit/core');
  const { agent, seen, server } = agentOf('0.0.59', pieces);
  const ran = [], errors = [];
  const tools = names.map((name) => ({ name, handler: async (given) => { ran.push({ name, given }); return 'ok'; } }));
  const core = new CopilotKitCore({ agents__unsafe_dev_only: { a: agent }, tools });
  core.subscribe({ onError: ({ error }) => { errors.push(String(error.message)); } });
  try {
    await core.runAgent({ agent });
  } catch (error) {
    errors.push(String(error.message));
  }
  await new Promise((later) => setTimeout(later, 2));
  return { ...seen, ran, errors, posts: server.posts() };
}

async function streamed({ name, pieces, tools }) {
  const chunks = pieces.map((piece) => Buffer.from(piece, 'base64'));
  const found = { name, copilotkit: await run(chunks, tools) };
  for (const version of Object.keys(VERSIONS)) found[version] = await read(version, chunks);
  return found;
}

async function asked(body) {
  const { RunAgentInputSchema } = await import('@ag-ui/core/schemas');
  const old = await import('core-of-version-0');
  const faults = [RunAgentInputSchema, old.RunAgentInputSchema].map((schema) => schema.safeParse(body));
  return faults.map((found) => (found.success ? null : JSON.stringify(found.error.issues)));
}

// a whole loop with a tool, through a server
async function looped({ url, key, version, text, tool }) {
  const { CopilotKitCore } = await import('@copilotkit/core');
  const headers = { authorization: `Bearer ${key}` };
  const messages = [{ id: 'u1', role: 'user', content: text }];
  const agent = new VERSIONS[version].HttpAgent({ agentId: 'a', url, headers, threadId: 'thread-7', initialMessages: messages });
  const runs = [], ran = [], errors = [];
  agent.subscribe({ onRunStartedEvent: ({ event, input }) => { runs.push([event.threadId, event.runId === input.runId]); } });
  const handler = async (given) => { ran.push(given); return tool.result; };
  const core = new CopilotKitCore({ agents__unsafe_dev_only: { a: agent }, tools: [{ name: tool.name, description: 'd', handler }] });
  core.subscribe({ onError: ({ error }) => { errors.push(String(error.message)); } });
  await core.runAgent({ agent });
  return { runs, ran, errors, messages: agent.messages };
}

// connectAgent is what the client has to come back with, and connect, which it calls, is for an application to write
async function resumed({ url, version, text }) {
  const { HttpAgent, runHttpRequest, transformHttpEventStream } = VERSIONS[version];
  let requests = 0, location = null, finished = false, failed = null;
  const fetch = async (...asked) => {
    requests += 1;
    const response = await globalThis.fetch(...asked);
    location ??= response.headers.get('location');
    return response;
  };
  class Resumable extends HttpAgent {
    connect() {
      return transformHttpEventStream(runHttpRequest(() => fetch(new URL(location, url))));
    }
  }
  const options = { agentId: 'a', url, fetch, threadId: 'thread-7', headers: { 'x-streamkit-resumable': '1' } };
  const messages = [{ id: 'u1', role: 'user', content: text }];
  await new HttpAgent(options).connectAgent();
  const unasked = requests;
  const left = new HttpAgent({ ...options, initialMessages: messages });
  const before = await new Promise((resolve) => {
    const seen = ({ event, messages }) => { if (event.delta) { left.abortRun(); resolve(structuredClone(messages)); } };
    left.runAgent({}, { onTextMessageContentEvent: seen }).catch(() => {});
  });
  const back = new Resumable({ ...options, initialMessages: messages });
  back.subscribe({ onRunFinishedEvent: () => { finished = true; }, onRunFailed: ({ error }) => { failed = String(error); } });
  await back.connectAgent();
  return { unasked, requests, before, finished, failed, messages: back.messages };
}

// a run that waits for the user, and the request with the answer; the next run gives that answer as a result
async function interrupted({ version, stream, next, payload }) {
  const bodies = [];
  const fetch = async (_, { body }) => {
    bodies.push(JSON.parse(body));
    return new Response(Buffer.from(bodies.length === 1 ? stream : next, 'base64'), { headers: { 'content-type': 'text/event-stream' } });
  };
  const messages = [{ id: 'u1', role: 'user', content: 'go' }];
  const agent = new VERSIONS[version].HttpAgent({ agentId: 'a', url: 'http://gateway.test/', fetch, threadId: 't', initialMessages: messages });
  await agent.runAgent({ runId: 'r' });
  const waits = agent.pendingInterrupts;
  const resume = waits.map(({ id }) => ({ interruptId: id, status: 'resolved', payload }));
  await agent.runAgent({ runId: 'r2', resume });
  await agent.runAgent({ runId: 'r3' });
  return { waits, left: agent.pendingInterrupts, bodies };
}

const judge = { interrupts: interrupted, requests: asked, streams: streamed, loops: looped, resumes: resumed }[process.argv[2]];
for await (const line of createInterface({ input: process.stdin })) write(JSON.stringify(await judge(JSON.parse(line))));
process.exit(0);
