// One mark a day with trades; days that would touch at this zoom share one. Pure.

/** A mark stands so far from the next one, in pixels. */
const APART_PX = 15;
/** From here on there is room for how many shares, beside the mark. */
const WORDS_PX = 52;

/**
 * Days with trades as groups that do not collide: [{at, days}], `at` the bar of the last of them.
 * `days` have the bar they are `at` and come oldest first.
 */
export function groups(days, barPx) {
  const made = [];
  for (const day of days) {
    const last = made.at(-1);
    if (last && (day.at - last.first) * barPx < APART_PX) {
      last.days.push(day);
      last.at = day.at;
    } else made.push({ first: day.at, at: day.at, days: [day] });
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
