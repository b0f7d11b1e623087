// One mark a day with trades; days that would touch at this zoom share one. Pure.

/** A mark stands so far from the next one, in pixels. */
const APART_PX = 15;
/** From here on there is room for how many shares, beside the mark. */
const WORDS_PX = 52;

/**
 * Days with trades as groups whose marks do not touch: [{at, last, days}], from the bar `at`, which
 * bears the mark, to the bar `last`. `days` have the bar they are `at` and come oldest first.
 */
export function groups(days, barPx) {
  const made = [];
  for (const day of days) {
    const group = made.at(-1);
    if (group && (day.at - group.at) * barPx < APART_PX) {
      group.days.push(day);
      group.last = day.at;
    } else made.push({ at: day.at, last: day.at, days: [day] });
  }
  return made;
}

/** `+39`, `−12`, `+39 −12`, or of several days how many: what stands beside a mark, where there is room. */
function words(group, before, after, barPx) {
  const room = Math.min(before ? group.at - before.at : Infinity, after ? after.at - group.at : Infinity) * barPx;
  if (room < WORDS_PX) return "";
  if (group.days.length > 1) return `${group.days.length}×`;
  const [{ bought, sold }] = group.days;
  return [Number(bought) ? `+${Number(bought)}` : "", Number(sold) ? `−${Number(sold)}` : ""].join(" ").trim();
}

/** The groups as the chart library draws marks. `paint` has a colour for buy, sell and both. */
export function marks(made, times, barPx, paint) {
  return made.map((group, index) => {
    const buys = group.days.some((day) => Number(day.bought));
    const sells = group.days.some((day) => Number(day.sold));
    const way = buys && sells ? "both" : buys ? "buy" : "sell";
    return {
      time: times[group.at],
      position: way === "buy" ? "belowBar" : "aboveBar",
      shape: { buy: "arrowUp", sell: "arrowDown", both: "circle" }[way],
      color: paint[way],
      text: words(group, made[index - 1], made[index + 1], barPx),
      size: 1,
    };
  });
}
