// The chart of a ticker in every `data-ticker-chart`: candles, volume, moving averages, what an account
// held, paid and sold. All figures come from the API; `data-as-of` is a decision's session: what lies
// behind it is shaded. A table or a list beside the chart says the same in words.

import { ask } from "./ask.js";
import { groups, marks } from "./chart/marks.js";
import { Border, Levels } from "./chart/painted.js";
import { digits, price } from "./price.js";
import { colour, onTheme } from "./themed.js";
import { CandlestickSeries, createChart, createSeriesMarkers, CrosshairMode, HistogramSeries, LineSeries, PriceScaleMode, TickMarkType } from "./vendor/lightweight-charts.mjs";

const AVERAGES = {
  sma_20: { name: "SMA 20", colour: "--line-teal" },
  sma_50: { name: "SMA 50", colour: "--line-blue", on: true },
  sma_200: { name: "SMA 200", colour: "--line-violet", on: true },
  ema_12: { name: "EMA 12", colour: "--line-pink" },
  ema_26: { name: "EMA 26", colour: "--line-brown" },
};
const RULES = {
  take_profit: { name: "Take profit", colour: "--bar-good", dash: [2, 4] },
  stop_loss: { name: "Stop loss", colour: "--bar-warn", dash: [2, 4] },
};
const SPANS = { "3m": 63, "6m": 126, "1y": 252, "2y": 504, "5y": 1260, all: Infinity };
const NARROW_PX = 560;
const FILLS_SHOWN = 5;
const KEPT = "deskbus-averages";

const many = (value) => value.toLocaleString("en", { notation: "compact", maximumFractionDigits: 1 });
const faint = (name, alpha) => colour(name).replace("rgb(", "rgba(").replace(")", `, ${alpha})`);

/** A day by itself would say nothing: `2 Oct`. */
function tick(time, kind) {
  const parts = { [TickMarkType.Year]: { year: "numeric" }, [TickMarkType.Month]: { month: "short" } }[kind] ?? { day: "numeric", month: "short" };
  return new Date(time).toLocaleDateString("en-GB", { timeZone: "UTC", ...parts });
}

function element(tag, className, text = "") {
  const made = document.createElement(tag);
  made.className = className;
  made.textContent = text;
  return made;
}

class TickerChart {
  constructor(root) {
    this.root = root;
    this.box = root.querySelector(".chart");
    this.legend = root.querySelector("[data-legend]");
    this.day = root.querySelector("[data-day]");
    this.kept = new Map();
    this.shown = this.remembered();
    this.span = root.dataset.span || (this.box.clientWidth < NARROW_PX ? "6m" : "1y");
    this.border = root.dataset.asOf || null;
    this.isLog = this.span === "all";
    for (const button of root.querySelectorAll("[data-span-of]")) button.addEventListener("click", () => this.choose(button.dataset.spanOf));
    root.querySelector("[data-log]").addEventListener("click", () => this.scale(!this.isLog));
    // Where a page follows the desk, what was traded meanwhile is drawn too.
    if (root.dataset.follow !== undefined) document.addEventListener("deskbus:refreshed", () => this.again());
    for (const button of root.querySelectorAll("[data-average]")) button.addEventListener("click", () => this.toggle(button.dataset.average));
    onTheme(() => this.draw(this.chart?.timeScale().getVisibleLogicalRange()));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.tell(null));
    this.open(root.dataset.ticker);
  }

  remembered() {
    const kept = localStorage.getItem(KEPT);
    return new Set(kept === null ? Object.keys(AVERAGES).filter((each) => AVERAGES[each].on) : kept.split(" "));
  }

  async open(ticker, range = null) {
    this.ticker = ticker;
    try {
      if (!this.kept.has(ticker)) this.kept.set(ticker, await this.read(ticker));
    } catch (error) {
      if (ticker === this.ticker) this.fail(error.message);
      return;
    }
    if (ticker !== this.ticker) return;
    this.take(this.kept.get(ticker));
    this.draw(range);
    this.rules(this.root.dataset.account, ticker);
  }

  /** The same window with what the desk says now, where that is something new. */
  async again() {
    const before = JSON.stringify(this.data);
    const fresh = await this.read(this.ticker).catch(() => this.data);
    if (JSON.stringify(fresh) === before) return;
    this.kept.set(this.ticker, fresh);
    await this.open(this.ticker, this.chart?.timeScale().getVisibleLogicalRange());
  }

  read(ticker) {
    const { account, asOf } = this.root.dataset;
    return ask("GET", `/market/chart?${new URLSearchParams({ ticker, account, ...(asOf && { adjusted_to: asOf }) })}`);
  }

  fail(message) {
    this.chart?.remove();
    this.chart = null;
    this.box.replaceChildren(element("p", "note", message));
    this.legend.replaceChildren();
  }

  /** A trade behind the newest bar, at an open whose close is not known yet, gets a bar without prices. */
  take(data) {
    this.data = data;
    const late = data.days.map((each) => each.session).filter((each) => each > data.as_of);
    this.times = [...data.sessions, ...late];
    const at = new Map(this.times.map((time, index) => [time, index]));
    this.days = data.days.filter((each) => at.has(each.session)).map((each) => ({ ...each, at: at.get(each.session) }));
    this.at = at;
    this.levels = [];
    this.root.querySelector("[data-adjusted]").textContent = data.adjusted_to;
  }

  draw(range = null) {
    if (!this.data) return;
    this.chart?.remove();
    this.box.replaceChildren();
    this.marked = null;
    this.chart = createChart(this.box, {
      autoSize: true,
      layout: {
        background: { color: colour("--surface") },
        textColor: colour("--soft"),
        fontFamily: getComputedStyle(document.body).fontFamily,
        // Its own logo brings an inline style, which the policy of these pages refuses; the link stands below.
        attributionLogo: false,
      },
      grid: { vertLines: { visible: false }, horzLines: { color: colour("--edge") } },
      crosshair: { mode: CrosshairMode.Normal },
      // Below zero there are only the volume's bars.
      localization: { priceFormatter: (value) => (value < 0 ? "" : digits(value)) },
      rightPriceScale: { mode: this.mode, borderColor: colour("--edge"), entireTextOnly: true, scaleMargins: { top: 0.08, bottom: 0.22 } },
      timeScale: { borderColor: colour("--edge"), rightOffset: 4, minBarSpacing: 0.02, tickMarkFormatter: tick },
      handleScroll: { vertTouchDrag: false },
    });
    this.candles = this.drawPrices();
    this.lines = this.drawAverages();
    this.drawLevels();
    this.marker = createSeriesMarkers(this.candles, []);
    this.chart.timeScale().subscribeVisibleLogicalRangeChange(() => this.mark());
    this.chart.subscribeCrosshairMove(({ logical, point }) => this.hover(point ? logical : null));
    this.chart.subscribeClick(({ logical, point }) => this.pin(point ? logical : null));
    if (range) this.chart.timeScale().setVisibleLogicalRange(range);
    else this.look();
    this.scale(this.isLog);
    this.mark();
    this.say(null);
    this.box.dataset.drawn = this.ticker;
  }

  drawPrices() {
    const { open, high, low, close, volume } = this.data;
    const [up, down] = [colour("--bar-good"), colour("--bar-bad")];
    const bars = this.chart.addSeries(HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, lastValueVisible: false, priceLineVisible: false });
    bars.priceScale().applyOptions({ scaleMargins: { top: 0.84, bottom: 0 } });
    const [rose, fell] = [faint("--bar-good", 0.4), faint("--bar-bad", 0.4)];
    bars.setData(volume.map((value, index) => ({ time: this.times[index], value, color: close[index] >= open[index] ? rose : fell })));
    const candles = this.chart.addSeries(CandlestickSeries, {
      upColor: up, wickUpColor: up, borderUpColor: up, downColor: down, wickDownColor: down, borderDownColor: down, priceLineVisible: false,
    });
    candles.setData(this.times.map((time, index) => (index < close.length ? { time, open: open[index], high: high[index], low: low[index], close: close[index] } : { time })));
    return candles;
  }

  drawAverages() {
    return Object.fromEntries(
      Object.entries(AVERAGES).map(([key, { colour: paint }]) => {
        const options = { color: colour(paint), lineWidth: 1.5, lastValueVisible: false, priceLineVisible: false, crosshairMarkerVisible: false, visible: this.shown.has(key) };
        const line = this.chart.addSeries(LineSeries, options);
        line.setData(this.data.averages[key].flatMap((value, index) => (value === null ? [] : [{ time: this.times[index], value }])));
        return [key, line];
      }),
    );
  }

  drawLevels() {
    this.painted = new Levels([]);
    this.known = new Border({ line: colour("--accent"), shade: faint("--quiet", 0.09), text: colour("--accent") });
    this.candles.attachPrimitive(this.known);
    this.candles.attachPrimitive(this.painted);
    this.paint();
    this.bound(this.border);
  }

  paint() {
    this.painted.put([
      { values: this.data.average_cost, colour: colour("--text"), dash: [], scales: true },
      { values: this.data.stop, colour: colour("--bar-bad"), dash: [6, 4], scales: true },
      ...this.levels.map((each) => ({ ...each, colour: colour(RULES[each.rule].colour), dash: RULES[each.rule].dash })),
    ]);
  }

  /** Behind `session` nothing was known; null takes the border away. */
  bound(session) {
    this.border = session;
    this.known.put(this.at.get(session) ?? null, session ? `decided at ${session}` : "");
    this.say(null);
  }

  /** Where today's exit rules would sell: as far from the average cost as they are now, while it is held. */
  async rules(account, ticker) {
    const cost = this.data.average_cost;
    if (cost.at(-1) === null || cost.at(-1) === undefined) return;
    const began = cost.lastIndexOf(null) + 1;
    try {
      const { positions } = await ask("GET", `/exit-signals?${new URLSearchParams({ account })}`);
      const own = positions.find((each) => each.ticker === ticker);
      if (!own || ticker !== this.ticker) return;
      this.levels = own.triggers.filter((each) => each.rule in RULES && each.at).map(({ rule, at }) => {
        const part = Number(at.amount) / Number(own.average_cost.amount);
        return { rule, values: cost.map((value, index) => (index < began || value === null ? null : value * part)) };
      });
    } catch {
      this.root.querySelector("[data-rules]").textContent = "The exit rules do not answer: their lines are missing.";
      return;
    }
    this.paint();
    this.say(null);
  }

  // --- what is looked at

  look() {
    const [last, span] = [this.times.length - 1, SPANS[this.span]];
    const known = this.at.get(this.border);
    // Around a decision a fifth of the window is what came of it.
    const to = known === undefined || !Number.isFinite(span) ? last : Math.min(last, known + Math.round(span / 5));
    this.chart.timeScale().setVisibleLogicalRange({ from: Math.max(-1, to - span), to: to + 3 });
    for (const button of this.root.querySelectorAll("[data-span-of]")) button.setAttribute("aria-pressed", String(button.dataset.spanOf === this.span));
  }

  choose(span) {
    this.span = span;
    if (this.chart) this.look();
  }

  get mode() {
    return this.isLog ? PriceScaleMode.Logarithmic : PriceScaleMode.Normal;
  }

  scale(isLog) {
    this.isLog = isLog;
    this.chart?.priceScale("right").applyOptions({ mode: this.mode });
    this.root.querySelector("[data-log]").setAttribute("aria-pressed", String(isLog));
  }

  toggle(key) {
    if (!this.shown.delete(key)) this.shown.add(key);
    localStorage.setItem(KEPT, [...this.shown].join(" "));
    this.lines?.[key].applyOptions({ visible: this.shown.has(key) });
    this.say(null);
  }

  /** A day with trades in the middle of the window, with what was known when it was decided. */
  show(session) {
    const at = this.at?.get(session);
    if (at === undefined || !this.chart) return;
    const range = this.chart.timeScale().getVisibleLogicalRange();
    const half = Math.min((range.to - range.from) / 2, SPANS["1y"] / 2);
    this.chart.timeScale().setVisibleLogicalRange({ from: at - half, to: at + half });
    this.bound(this.days.find((each) => each.at === at).fills[0].decided_on);
    this.box.scrollIntoView({ block: "center" });
    requestAnimationFrame(() => this.pin(at));
  }

  mark() {
    const px = this.chart.timeScale().options().barSpacing;
    if (px === this.marked) return;
    this.marked = px;
    this.groups = groups(this.days, px);
    const paint = { buy: colour("--bar-good"), sell: colour("--bar-bad"), both: colour("--accent") };
    this.marker.setMarkers(marks(this.groups, this.times, px, paint));
  }

  group(logical) {
    return logical === null ? undefined : this.groups?.find((each) => each.at <= logical && logical <= each.last);
  }

  hover(logical) {
    this.say(logical);
    if (!this.pinned) this.tell(this.group(logical) ?? null);
  }

  pin(logical) {
    this.pinned = this.group(logical) ?? null;
    this.tell(this.pinned);
  }

  // --- words

  say(logical) {
    const { sessions, currency, open, high, low, close, volume, averages, average_cost: cost, stop } = this.data;
    // Where the pointer is elsewhere it is the bar of the decision, or the newest one.
    const rest = Math.min(this.at.get(this.border) ?? Infinity, close.length - 1);
    const at = logical === null || logical === undefined || logical < 0 || logical >= close.length ? rest : logical;
    for (const button of this.root.querySelectorAll("[data-average]")) {
      const isOn = this.shown.has(button.dataset.average);
      button.setAttribute("aria-pressed", String(isOn));
      button.querySelector("b").textContent = digits(averages[button.dataset.average][at]);
    }
    if (at < 0) return;
    const moved = at > 0 ? ((close[at] / close[at - 1] - 1) * 100).toFixed(2) : null;
    const parts = [["", sessions[at]], ["", currency], ["O", digits(open[at])], ["H", digits(high[at])], ["L", digits(low[at])], ["C", digits(close[at])]];
    if (moved !== null) parts.push(["", `${moved > 0 ? "+" : ""}${moved}%`, moved > 0 ? "gain" : moved < 0 ? "loss" : ""]);
    parts.push(["Vol", many(volume[at])]);
    const levels = [["Cost", cost[at], "cost"], ["Stop", stop[at], "stop"], ...this.levels.map((each) => [RULES[each.rule].name, each.values[at], each.rule])];
    for (const [name, value, key] of levels) if (value !== null && value !== undefined) parts.push([name, digits(value), "", key]);
    this.legend.replaceChildren(...parts.map(([name, text, tone = "", key = ""]) => {
      const part = element("span", key ? `pen ${key}` : "");
      part.append(element("span", "soft", name), element("b", tone, text));
      return part;
    }));
  }

  /** What was traded at a mark, each with its decision. */
  tell(group) {
    if (!group) this.pinned = null;
    this.day.hidden = !group;
    if (!group) return;
    const fills = group.days.flatMap((day) => day.fills.map((fill) => ({ ...fill, session: day.session })));
    const lines = fills.slice(0, FILLS_SHOWN).map((fill) => {
      const line = element("li", "");
      const what = element("span", `trade ${fill.side}`, `${fill.side === "buy" ? "bought" : "sold"} ${Number(fill.quantity).toLocaleString("en")} at ${price(fill.price)}`);
      const link = element("a", "", "why");
      link.href = `/decisions/${fill.cycle_id}/${fill.pipeline}`;
      const gain = Number(fill.gain.amount);
      line.append(element("span", "soft", fill.session), what);
      if (fill.side === "sell") line.append(element("b", gain < 0 ? "loss" : "gain", `${gain < 0 ? "" : "+"}${price(fill.gain)}`));
      line.append(link);
      if (fill.why) line.append(element("p", "detail", fill.why));
      return line;
    });
    if (fills.length > FILLS_SHOWN) lines.push(element("li", "soft", `${fills.length - FILLS_SHOWN} more: zoom in, or see the table`));
    this.day.querySelector("ul").replaceChildren(...lines);
    const [x, width] = [this.chart.timeScale().logicalToCoordinate(group.at), this.box.clientWidth];
    const isRight = x > width / 2;
    Object.assign(this.day.style, isRight ? { left: "auto", right: `${width - x + 14}px` } : { left: `${x + 14}px`, right: "auto" });
  }
}

for (const root of document.querySelectorAll("[data-ticker-chart]")) {
  const chart = new TickerChart(root);
  root.querySelector("select")?.addEventListener("change", (event) => chart.open(event.target.value));
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-show]");
    if (button) chart.show(button.dataset.show);
  });
}
