// The Chat that useChat drives, over many UI message streams: `node read.mjs 7|6`, one base64 stream a line on standard input;
// with `messages` behind the version each line is a request's body, and what is wrong with its messages is told, or null;
// with `loops` each line is {"url", "headers", "text", "result"}: a question to a server, whose calls have that result.
// with `resumes` each line is {"url", "text", "keeps"}: a question whose page is left as soon as there is text, and loaded again,
// with the messages so far or without any.
// with `approvals` each line is {"stream", "answer"}: a base64 stream that asks the user, and what the user says to all of it.
// Its one tool answers each call that it is asked to run, and the chat asks again once every call has a result.
// Each line of the output says of one stream what a user and a server would see of it.
import process from 'node:process';
import { createInterface } from 'node:readline';

const suffix = process.argv[2] === '6' ? '-6' : '';
const sdk = await import(`ai${suffix}`);
const { Chat } = await import(`@ai-sdk/react${suffix}`);
for (const level of ['log', 'warn', 'error']) console[level] = () => {};

const chunks = [{ type: 'start' }, { type: 'start-step' }, { type: 'text-start', id: 'z' }, { type: 'text-delta', id: 'z', delta: 'ok' }, { type: 'text-end', id: 'z' }, { type: 'finish-step' }, { type: 'finish' }];
const nextAnswer = chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join('');

async function watch(bytes) {
  const ran = [];
  let requests = 0, failure = null, seen = null;
  const fetch = async () => {
    requests += 1;
    if (requests > 9) throw new Error('asks without end');
    return new Response(requests === 1 ? bytes : nextAnswer, { status: 200, headers: { 'content-type': 'text/event-stream' } });
  };
  const chat = new Chat({
    id: 'chat',
    transport: new sdk.DefaultChatTransport({ api: 'http://server/api/chat', fetch }),
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
    onError: error => { failure ??= error.message; },
    onFinish: () => { seen ??= structuredClone(chat.messages.at(-1)); },
    onToolCall: ({ toolCall }) => {
      ran.push({ id: toolCall.toolCallId, input: toolCall.input });
      setTimeout(() => chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: 'done' }), 0);
    },
  });
  await chat.sendMessage({ text: 'go' });
  if (ran.length) await new Promise(resolve => setTimeout(resolve, 10));
  const parts = seen?.role === 'assistant' ? seen.parts : [];
  const texts = kind => parts.filter(part => part.type === kind).map(part => part.text).join('');
  const valid = parts.length ? (await sdk.safeValidateUIMessages({ messages: [seen] })).success : true;
  return { status: chat.status, failure, ran, requests, valid, text: texts('text'), reasoning: texts('reasoning'),
    calls: parts.filter(part => part.toolCallId).map(part => part.state) };
}

async function validate({ messages }) {
  const found = await sdk.safeValidateUIMessages({ messages });
  if (!found.success) return found.error.message;
  return sdk.convertToModelMessages(messages).then(() => null, error => error.message);
}

async function loop({ url, headers, text, result }) {
  const ran = [];
  let open = 0, requests = 0, failure = null;
  const fetch = async (...asked) => {
    requests += 1;
    open += 1;
    try { return await globalThis.fetch(...asked); } finally { open -= 1; }
  };
  const chat = new Chat({
    id: 'chat 7',
    transport: new sdk.DefaultChatTransport({ api: url, headers, fetch }),
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithToolCalls,
    onError: error => { failure ??= error.message; },
    onToolCall: ({ toolCall }) => {
      ran.push(toolCall.input);
      setTimeout(() => chat.addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: result }), 0);
    },
  });
  await chat.sendMessage({ text });
  for (let quiet = 0; quiet < 5; quiet = open || ['submitted', 'streaming'].includes(chat.status) ? 0 : quiet + 1)
    await new Promise(resolve => setTimeout(resolve, 20));
  const seen = { status: chat.status, failure, ran, requests, messages: structuredClone(chat.messages) };
  await chat.resumeStream();
  return { ...seen, resumed: chat.status };
}

async function resume({ url, text, keeps }) {
  const statuses = [];
  let failure = null;
  const fetch = async (...asked) => {
    const response = await globalThis.fetch(...asked);
    statuses.push(response.status);
    return response;
  };
  const page = messages => new Chat({
    id: 'chat 7',
    messages,
    transport: new sdk.DefaultChatTransport({ api: url, fetch }),
    onError: error => { failure ??= error.message; },
  });
  const left = page([]);
  const asking = left.sendMessage({ text });
  while (!left.messages.at(-1)?.parts.some(part => part.type === 'text' && part.text) || left.messages.length < 2)
    await new Promise(resolve => setTimeout(resolve, 5));
  await left.stop();
  await asking;
  const before = structuredClone(left.messages);
  const back = page(keeps ? before : []);
  await back.resumeStream();
  return { status: back.status, failure, statuses, before, messages: back.messages };
}

// what the user is asked to approve, and the request with the answer
async function approve({ stream, answer }) {
  const ran = [], bodies = [];
  let failure = null;
  const fetch = async (_, { body }) => {
    bodies.push(JSON.parse(body));
    return new Response(bodies.length === 1 ? Buffer.from(stream, 'base64') : nextAnswer, { headers: { 'content-type': 'text/event-stream' } });
  };
  const chat = new Chat({
    id: 'chat',
    transport: new sdk.DefaultChatTransport({ api: 'http://server/api/chat', fetch }),
    sendAutomaticallyWhen: sdk.lastAssistantMessageIsCompleteWithApprovalResponses,
    onError: error => { failure ??= error.message; },
    onToolCall: ({ toolCall }) => { ran.push(toolCall); },
  });
  await chat.sendMessage({ text: 'go' });
  const asked = chat.messages.at(-1).parts.filter(part => part.state === 'approval-requested');
  for (const part of asked) await chat.addToolApprovalResponse({ id: part.approval.id, ...answer });
  await new Promise(resolve => setTimeout(resolve, 20));
  return { failure, ran, asked: asked.map(part => [part.toolName, part.input]), bodies };
}

const judges = {
  approvals: line => approve(JSON.parse(line)),
  messages: line => validate(JSON.parse(line)),
  loops: line => loop(JSON.parse(line)),
  resumes: line => resume(JSON.parse(line)),
};
const judge = judges[process.argv[3]] ?? (line => watch(Buffer.from(line, 'base64')));
for await (const line of createInterface({ input: process.stdin })) process.stdout.write(`${JSON.stringify(await judge(line))}\n`);
process.exit(0);
