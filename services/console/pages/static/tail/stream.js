// The stream of events: connects, and connects again right behind the last frame that came.

import { toLogin } from "../ask.js";

const PATH = "/api/v1/events/stream";
const SILENCE_MS = 25_000; // the desk says something every 10 s
const WAIT_MS = 1_000;
const WAIT_MS_MAX = 10_000;

/** Follows the desk's events, from `back` before now on. */
export class Stream {
  #asked;
  #takes;
  #source = null;
  #position = "";
  #timer = 0;
  #silence = 0;
  #waitMs = WAIT_MS;

  /**
   * @param {URLSearchParams} asked the stream's filter, with `back`
   * @param {{events: (found: object[]) => void, gap: (told: object) => void,
   *   state: (state: "live" | "lost" | "off") => void, refused: (why: string) => void}} takes
   */
  constructor(asked, takes) {
    this.#asked = asked;
    this.#takes = takes;
  }

  /** Connect, right behind what came last. */
  open() {
    if (this.#source) return;
    clearTimeout(this.#timer);
    const url = this.#url();
    const source = new EventSource(url);
    this.#source = source;
    source.addEventListener("events", (frame) => this.#hear(frame, this.#takes.events));
    source.addEventListener("gap", (frame) => this.#hear(frame, this.#takes.gap));
    // A refusal ends a source for good; a lost connection it takes up again by itself.
    source.addEventListener("error", () => {
      if (this.#source !== source) return;
      this.#takes.state("lost");
      if (source.readyState === EventSource.CLOSED) this.#ended(url);
    });
    this.#listen();
  }

  /** Rest; `open` goes on where this left. */
  close(state = "off") {
    clearTimeout(this.#timer);
    clearTimeout(this.#silence);
    this.#source?.close();
    this.#source = null;
    this.#takes.state(state);
  }

  #url() {
    const asked = new URLSearchParams(this.#asked);
    if (this.#position) asked.set("after", this.#position);
    return `${PATH}?${asked}`;
  }

  #hear(frame, takes) {
    this.#position = frame.lastEventId;
    this.#waitMs = WAIT_MS;
    this.#takes.state("live");
    this.#listen();
    takes(JSON.parse(frame.data));
  }

  async #ended(url) {
    this.close("lost");
    const problem = await refusal(url);
    if (problem?.status === 401) toLogin();
    else if (problem?.status === 422 || problem?.status === 404) this.#takes.refused(problem.detail);
    else if (!this.#source) this.#again();
  }

  #again() {
    this.#timer = setTimeout(() => this.open(), this.#waitMs);
    this.#waitMs = Math.min(this.#waitMs * 2, WAIT_MS_MAX);
  }

  #listen() {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      this.close("lost");
      this.#again();
    }, SILENCE_MS);
  }
}

/** Why the stream is refused, which an EventSource does not tell; null where it is not. */
async function refusal(url) {
  const asking = new AbortController();
  try {
    const answer = await fetch(url, { signal: asking.signal });
    return answer.ok ? null : await answer.json();
  } catch {
    return null;
  } finally {
    asking.abort();
  }
}
