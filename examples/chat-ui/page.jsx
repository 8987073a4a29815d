// A chat with useChat of the AI SDK. Its one tool runs here, in the page, once the answer that calls it is whole. A page that is
// loaded again has the messages that were whole, and goes on with the answer that was under way.
import { useChat } from '@ai-sdk/react';
import { DefaultChatTransport, getToolName, isToolUIPart, lastAssistantMessageIsCompleteWithToolCalls } from 'ai';
import { useEffect, useState } from 'react';
import { createRoot } from 'react-dom/client';

const MODELS = { demo: 'answers', 'demo-cut': 'breaks off', 'demo-error': 'fails' };

function weatherOf(city) {
  return { city, sky: 'clear', celsius: 21 };
}

// The chat's name on the server, which nobody can guess, and its messages: they are this tab's.
function kept(model) {
  const found = sessionStorage.getItem(model);
  return found ? JSON.parse(found) : { id: crypto.randomUUID(), messages: [] };
}

function Part({ part }) {
  if (part.type === 'text') return <p>{part.text}</p>;
  if (part.type === 'reasoning') return <p><em>{part.text}</em></p>;
  if (!isToolUIPart(part)) return null;
  return (
    <p className="tool" data-state={part.state}>
      {getToolName(part)}({JSON.stringify(part.input)}) <span className="state">{part.state}</span>
      {part.state === 'output-available' && <> → {JSON.stringify(part.output)}</>}
    </p>
  );
}

function Chat({ model }) {
  const [text, setText] = useState('How is the weather in Zürich?');
  const [before] = useState(() => kept(model));
  const api = `/api/${model}`;
  const { messages, sendMessage, addToolOutput, status, error, stop } = useChat({
    id: before.id,
    messages: before.messages,
    resume: true,
    transport: new DefaultChatTransport({ api }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
    onToolCall({ toolCall }) {
      addToolOutput({ tool: toolCall.toolName, toolCallId: toolCall.toolCallId, output: weatherOf(toolCall.input.city) });
    },
  });
  useEffect(() => {  // half of an answer is the server's to repeat
    if (status !== 'streaming') sessionStorage.setItem(model, JSON.stringify({ id: before.id, messages }));
  }, [status, messages]);
  const leave = () => {
    stop();
    fetch(`${api}/${before.id}/stream`, { method: 'DELETE' });
  };
  const busy = status === 'submitted' || status === 'streaming';
  const send = event => {
    event.preventDefault();
    sendMessage({ text });
    setText('');
  };
  return (
    <main data-status={status}>
      {messages.map(message => (
        <section key={message.id} className={`message ${message.role}`}>
          {message.parts.map((part, number) => <Part key={number} part={part} />)}
        </section>
      ))}
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <input value={text} onChange={event => setText(event.target.value)} aria-label="message" />
        {busy ? <button type="button" onClick={leave}>Stop</button> : <button disabled={!text}>Send</button>}
      </form>
    </main>
  );
}

function Page() {
  const [model, setModel] = useState(new URLSearchParams(location.search).get('model') ?? 'demo');
  return (
    <>
      <header>
        <h1>chat-ui</h1>
        <select value={model} onChange={event => setModel(event.target.value)} aria-label="model">
          {Object.entries(MODELS).map(([name, does]) => <option key={name} value={name}>{name}: {does}</option>)}
        </select>
      </header>
      <Chat key={model} model={model} />
    </>
  );
}

createRoot(document.getElementById('root')).render(<Page />);
