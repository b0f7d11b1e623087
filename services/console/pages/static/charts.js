// Draws every figure with `data-plot`: {x, unit, axis, lines: [{name, values}]}. x is in seconds where
// no `axis` names it. With `data-more` a further line comes from the API: {points: [{session, worth}]}.
// What a chart says stands in words beside it; its canvas is hidden from readers.

import { ask } from "./ask.js";
import { colour, onTheme } from "./themed.js";
import uPlot from "./vendor/uplot.mjs";

const HEIGHT = { wide: 260, small: 150 };
// Each line has its own dash, so that they can be told apart without their colours.
const PENS = [
  { colour: "--accent", width: 2 },
  { colour: "--warn", width: 1.6, dash: [6, 4] },
  { colour: "--good", width: 1.6, dash: [2, 3] },
  { colour: "--bad", width: 1.6, dash: [10, 4] },
  { colour: "--busy", width: 1.6, dash: [8, 3, 2, 3] },
  { colour: "--soft", width: 1.6, dash: [1, 4] },
];

const DAY = 86_400;
const [MONTH, YEAR] = [30 * DAY, 365 * DAY]; // as uPlot counts them: then it goes by the calendar
const STEPS = [...[1, 2, 3, 4, 5, 7, 10, 14].map((each) => each * DAY), ...[1, 2, 3, 6].map((each) => each * MONTH), ...[1, 2, 5, 10].map((each) => each * YEAR)];
// By the least step: the tick's words, and those below it where a year begins.
const YEAR_BELOW = "\n{YYYY}";
const DATES = [
  [YEAR, "{YYYY}", null, null, null, null, null, null, 1],
  [MONTH, "{MMM}", YEAR_BELOW, null, null, null, null, null, 1],
  [DAY, "{D} {MMM}", YEAR_BELOW, null, null, null, null, null, 1],
];

function shown(value, unit) {
  if (value === null || value === undefined) return "–";
  const places = Math.abs(value) < 10 ? 4 : Math.abs(value) < 1000 ? 2 : 0;
  const text = value.toLocaleString("en", { minimumFractionDigits: 0, maximumFractionDigits: unit ? 1 : places });
  return unit ? `${text}${unit}` : text;
}

class Chart {
  constructor(figure) {
    this.canvas = figure.querySelector(".canvas");
    this.plot = JSON.parse(figure.dataset.plot);
    this.height = figure.classList.contains("small") ? HEIGHT.small : HEIGHT.wide;
    this.draw();
    onTheme(() => this.draw());
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    if (figure.dataset.more) this.more(figure);
  }

  get size() {
    return { width: Math.max(this.canvas.clientWidth, 120), height: this.height };
  }

  resize() {
    if (this.made && this.made.width !== this.size.width) this.made.setSize(this.size);
  }

  draw() {
    const { x, axis, unit, lines } = this.plot;
    const [soft, edge] = [colour("--soft"), colour("--edge")];
    const look = { stroke: soft, grid: { stroke: edge, width: 1 }, ticks: { stroke: edge, width: 1 }, font: "12px system-ui" };
    this.made?.destroy();
    this.made = new uPlot(
      {
        ...this.size,
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC"),
        scales: { x: { time: !axis } },
        // The charts of a page that share an axis share the pointer's place on it.
        cursor: { sync: { key: axis ?? "sessions", scales: ["x", null] } },
        axes: [
          { ...look, ...(axis ? { label: axis, labelSize: 18, labelFont: "12px system-ui" } : { incrs: STEPS, values: DATES }) },
          { ...look, size: 64, space: this.height === HEIGHT.small ? 20 : 36, values: (_, ticks) => ticks.map((each) => shown(each, unit)) },
        ],
        // Where the pointer is elsewhere the newest values stand below.
        hooks: { setLegend: [(made) => made.legend.idx ?? made.setLegend({ idx: x.length - 1 }, false)] },
        series: [
          axis ? { label: axis } : { label: "Session", value: (_, at) => (at ? new Date(at * 1000).toISOString().slice(0, 10) : "–") },
          ...lines.map((line, index) => ({
            label: line.name,
            stroke: colour(PENS[index % PENS.length].colour),
            width: PENS[index % PENS.length].width,
            dash: PENS[index % PENS.length].dash,
            spanGaps: true,
            points: { show: x.length === 1 },
            value: (_, value) => shown(value, unit),
          })),
        ],
      },
      [x, ...lines.map((line) => line.values)],
      this.canvas,
    );
  }

  async more(figure) {
    const note = figure.querySelector("[data-note]");
    try {
      const { points, tickers, message } = await ask("GET", figure.dataset.more);
      if (!points.length) {
        note.textContent = `Without buy-and-hold: ${message}.`;
        return;
      }
      const worth = new Map(points.map((each) => [each.session, Number(each.worth)]));
      const days = this.plot.x.map((at) => new Date(at * 1000).toISOString().slice(0, 10));
      this.plot.lines.push({ name: "Buy-and-hold", values: days.map((day) => worth.get(day) ?? null) });
      this.draw();
      const last = shown(Number(points.at(-1).worth));
      note.textContent = `Buy-and-hold (equal parts of ${tickers.join(", ")}): ${last}.`;
    } catch (error) {
      note.textContent = `Buy-and-hold is unknown: ${error.message}`;
    }
  }
}

for (const figure of document.querySelectorAll("figure[data-plot]")) new Chart(figure);
