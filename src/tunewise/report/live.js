// Keeps the page up to date: puts values that the server sends into elements that are there already, and nothing else.
"use strict";

const ATTRIBUTES = new Set(["class", "d", "points", "transform", "width", "y"]);
const SILENT_MS = 20000; // the server speaks at least every few seconds: after so long the connection is dead
const RETRY_MS = 2000;
const version = document.body.dataset.version;
const status = document.getElementById("status");
const moment = document.getElementById("moment");
let source = null;
let heard = Date.now();

function say(text, look) {
  if (status.textContent !== text) status.textContent = text;
  document.body.className = look;
}

function put(values) {
  for (const [key, value] of Object.entries(values)) {
    const cut = key.lastIndexOf(".");
    const element = document.getElementById(key.slice(0, cut));
    const part = key.slice(cut + 1);
    if (element === null) continue;
    if (part === "text") element.textContent = value;
    else if (part === "hidden") element.toggleAttribute("hidden", value);
    else if (ATTRIBUTES.has(part)) element.setAttribute(part, value);
  }
}

function hear(event) {
  const said = JSON.parse(event.data);
  heard = Date.now();
  if (said.version !== undefined && said.version !== version) {
    location.reload(); // the server is of another release: its page has other elements
    return;
  }
  if (said.silent_s !== undefined) {
    say("The store has not answered for " + said.silent_s + " s, trying again", "lost");
    return;
  }
  put(said.values);
  moment.textContent = ", as of " + new Date(said.at * 1000).toLocaleTimeString();
  say("Live", "on");
}

function connect() {
  if (source !== null) source.close();
  source = new EventSource("events");
  source.onmessage = hear;
  source.onerror = lost;
}

async function lost() {
  say("Connection lost, trying again", "lost");
  if (source.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
  let isRefused = false;
  try {
    isRefused = (await fetch("version", { cache: "no-store" })).status === 401;
  } catch {
    // nobody there: it may be back soon
  }
  if (isRefused) say("The session has ended, or the server has another token now: open the address that `tunewise live` printed", "lost");
  setTimeout(connect, RETRY_MS);
}

setInterval(() => {
  if (Date.now() - heard > SILENT_MS) {
    heard = Date.now();
    say("Connection lost, trying again", "lost");
    connect();
  }
}, 1000);

connect();
