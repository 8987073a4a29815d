// Reads one answer to its end with a client that comes back by itself, and prints each event's id and data.
// node read.mjs event-source URL of the stream | fetch-event-source URL to POST to, BODY
import { EventSource } from "eventsource";
import { fetchEventSource } from "@microsoft/fetch-event-source";

const [how, url, body] = process.argv.slice(2);
const got = [];

// Both wait for seconds before they come back: nobody is served by a test that waits too.
const later = globalThis.setTimeout;
globalThis.setTimeout = (call, ms, ...rest) => later(call, ms / 100, ...rest);

function tell(status) {
  console.log(JSON.stringify({ status, got }));
}

if (how === "event-source") {
  const source = new EventSource(url);
  source.onmessage = (event) => got.push([event.lastEventId, event.data]);
  source.onerror = (event) => {
    if (source.readyState === EventSource.CLOSED) tell(event.code);
  };
} else {
  globalThis.window = globalThis;
  globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
  let status;
  await fetchEventSource(url, {
    method: "POST",
    openWhenHidden: true,
    headers: { "content-type": "application/json", "x-streamkit-resumable": "1" },
    body,
    onopen: async (response) => {
      status = response.status;
    },
    onmessage: (event) => got.push([event.id, event.data]),
  });
  tell(status);
}
