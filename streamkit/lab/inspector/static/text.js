// Text from the wire, as it may be shown: what Unicode calls unprintable becomes an escape (streamkit/text/quoting.py has
// the same set). Nothing here makes markup: nodes get their text by textContent.

const HIDDEN = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const HALVES = /[^]/g;

const escaped = (half) => {
  const short = JSON.stringify(half).slice(1, -1);
  return short !== half ? short : `\\u${half.charCodeAt(0).toString(16).padStart(4, "0")}`;
};

/** A text without marks of direction and control characters, but for line ends and tabs. */
export const visible = (text) => text.replace(HIDDEN, (letter) => letter.replace(HALVES, escaped));

/** Bytes as they are in a stream: each line end is seen, and ends a line. */
export const visibleBytes = (text) => visible(text).replaceAll("\t", "\\t").replaceAll("\n", "\\n\n");

/** A text on one line. */
export const visibleLine = (text) => visible(text).replaceAll("\t", "\\t").replaceAll("\n", "\\n");

/** An element with a class and a text, or with other nodes in it. */
export function element(name, className, ...content) {
  const made = document.createElement(name);
  if (className) made.className = className;
  for (const each of content) {
    if (typeof each === "string") made.append(document.createTextNode(each));
    else if (each) made.append(each);
  }
  return made;
}

const NUMBERS = new Intl.NumberFormat("en");

export const count = (number) => NUMBERS.format(number);

/** Seconds with as many digits as they deserve. */
export function seconds(value) {
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  return value < 100 ? `${value.toFixed(2)} s` : `${value.toFixed(0)} s`;
}

export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;
