// What the chart library has no series for: lines that end where a position does, and the border of
// what was known. Both are drawn on the pane of the candles, a value a bar.

/** A line a level: [{values, colour, dash, scales}], `values` by bar with null where there is none. */
export class Levels {
  constructor(lines) {
    this.lines = lines;
  }

  attached({ chart, series, requestUpdate }) {
    Object.assign(this, { chart, series, requestUpdate });
  }

  put(lines) {
    this.lines = lines;
    this.requestUpdate?.();
  }

  updateAllViews() {}

  paneViews() {
    return [{ zOrder: () => "top", renderer: () => ({ draw: (target) => target.useMediaCoordinateSpace(({ context }) => this.draw(context)) }) }];
  }

  /** The candles' scale makes room for what a position cost and where it is stopped. */
  autoscaleInfo(first, last) {
    const seen = this.lines.filter((line) => line.scales).flatMap((line) => line.values.slice(Math.max(0, first), last + 1)).filter((each) => each !== null);
    return seen.length ? { priceRange: { minValue: Math.min(...seen), maxValue: Math.max(...seen) } } : null;
  }

  draw(context) {
    const time = this.chart.timeScale();
    const range = time.getVisibleLogicalRange();
    if (!range) return;
    const half = Math.max(time.options().barSpacing / 2, 0.5);
    for (const { values, colour, dash } of this.lines) {
      context.beginPath();
      context.strokeStyle = colour;
      context.lineWidth = 1.6;
      context.setLineDash(dash);
      let before = null;
      const end = Math.min(values.length - 1, Math.ceil(range.to));
      for (let index = Math.max(0, Math.floor(range.from)); index <= end; index += 1) {
        const value = values[index];
        if (value !== null) {
          const [x, y] = [time.logicalToCoordinate(index), this.series.priceToCoordinate(value)];
          if (before === null) context.moveTo(x - half, y);
          else context.lineTo(x - half, y);
          context.lineTo(x + half, y);
        }
        before = value;
      }
      context.stroke();
    }
    context.setLineDash([]);
  }
}

/** A line behind the bar `at`, and what lies right of it shaded: nobody knew it then. */
export class Border {
  constructor({ line, shade, text }) {
    Object.assign(this, { line, shade, text, at: null, words: "" });
  }

  attached({ chart, requestUpdate }) {
    Object.assign(this, { chart, requestUpdate });
  }

  put(at, words) {
    Object.assign(this, { at, words });
    this.requestUpdate?.();
  }

  updateAllViews() {}

  paneViews() {
    return [{ zOrder: () => "bottom", renderer: () => ({ draw: (target) => target.useMediaCoordinateSpace((scope) => this.draw(scope)) }) }];
  }

  draw({ context, mediaSize }) {
    if (this.at === null) return;
    const time = this.chart.timeScale();
    const x = time.logicalToCoordinate(this.at) + time.options().barSpacing / 2;
    if (x > mediaSize.width) return;
    context.fillStyle = this.shade;
    context.fillRect(Math.max(x, 0), 0, mediaSize.width, mediaSize.height);
    if (x < 0) return;
    context.strokeStyle = this.line;
    context.lineWidth = 1;
    context.setLineDash([2, 3]);
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, mediaSize.height);
    context.stroke();
    context.setLineDash([]);
    context.fillStyle = this.text;
    context.font = "11.5px system-ui";
    const isRoom = x + 8 + context.measureText(this.words).width < mediaSize.width;
    context.textAlign = isRoom ? "left" : "right";
    context.fillText(this.words, isRoom ? x + 8 : x - 8, 14);
  }
}
