// Daily candles of a ticker with the account's entries, exits and stops.

import { ask } from "./ask.js";
import { colour, onTheme } from "./themed.js";
import { CandlestickSeries, createChart, createSeriesMarkers, LineStyle } from "./vendor/lightweight-charts.mjs";

const box = document.getElementById("candles");
const choice = document.getElementById("ticker");
const SESSIONS = 180;
const NARROW_PX = 500;
const NARROW_SESSIONS = 100; // so many are shown there at first; the rest is there to scroll to
const kept = new Map();
let chart = null;

async function bars(ticker) {
  if (!kept.has(ticker)) {
    const query = new URLSearchParams({ ticker, as_of: box.dataset.last, sessions: SESSIONS });
    kept.set(ticker, (await ask("GET", `/market/bars?${query}`)).bars);
  }
  return kept.get(ticker);
}

/** The account's fills, and where the decision was made; a time without a candle has no mark. */
function marks(ticker, found) {
  const sessions = new Set(found.map((each) => each.session));
  const trades = JSON.parse(box.dataset.marks).filter((each) => each.ticker === ticker && each.session);
  const made = trades.filter((each) => sessions.has(each.session)).map((each) => ({
    time: each.session,
    position: each.side === "buy" ? "belowBar" : "aboveBar",
    shape: each.side === "buy" ? "arrowUp" : "arrowDown",
    color: colour(each.side === "buy" ? "--bar-good" : "--bar-bad"),
    text: `${each.side} ${Number(each.quantity)}`,
  }));
  if (sessions.has(box.dataset.asOf)) {
    made.push({ time: box.dataset.asOf, position: "aboveBar", shape: "square", color: colour("--accent") });
  }
  return made.sort((a, b) => (a.time < b.time ? -1 : 1));
}

async function draw() {
  const ticker = choice.value;
  let found;
  try {
    found = await bars(ticker);
  } catch (error) {
    found = [];
    box.textContent = error.message;
  }
  if (ticker !== choice.value) return;
  chart?.remove();
  chart = null;
  if (!found.length) return;
  box.textContent = "";
  chart = createChart(box, {
    autoSize: true,
    layout: {
      background: { color: colour("--surface") },
      textColor: colour("--soft"),
      fontFamily: getComputedStyle(document.body).fontFamily,
      // Its own logo brings an inline style, which the policy of these pages refuses; the link stands below.
      attributionLogo: false,
    },
    grid: { vertLines: { color: colour("--edge") }, horzLines: { color: colour("--edge") } },
    rightPriceScale: { borderColor: colour("--edge"), entireTextOnly: true },
    timeScale: { borderColor: colour("--edge"), rightOffset: 8 },
  });
  const up = colour("--bar-good");
  const down = colour("--bar-bad");
  const candles = chart.addSeries(CandlestickSeries, {
    upColor: up, wickUpColor: up, borderUpColor: up, downColor: down, wickDownColor: down, borderDownColor: down,
  });
  candles.setData(found.map((each) => ({ time: each.session, open: each.open, high: each.high, low: each.low, close: each.close })));
  createSeriesMarkers(candles, marks(ticker, found));
  for (const each of JSON.parse(box.dataset.marks)) {
    if (each.ticker !== ticker || each.stop === null || !["waiting", "working"].includes(each.status)) continue;
    candles.createPriceLine({ price: Number(each.stop), color: colour("--bar-warn"), lineStyle: LineStyle.Dashed, title: `stop ${Number(each.quantity)}` });
  }
  if (box.clientWidth < NARROW_PX) chart.timeScale().setVisibleLogicalRange({ from: found.length - NARROW_SESSIONS, to: found.length + 14 });
  else chart.timeScale().fitContent();
  box.dataset.drawn = ticker;
}

if (box) {
  choice.addEventListener("change", draw);
  onTheme(draw);
  draw();
}
