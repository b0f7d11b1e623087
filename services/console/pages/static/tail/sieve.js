// What is looked for in the events that come: words, and a span of time. Pure.

/** A sieve for a text and a span in UTC (`2026-11-25T09:30`); null where nothing is looked for. */
export function sieve({ text, from, until }) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length && !from && !until) return null;
  // Times as the desk writes them compare as texts; a minute that is named counts to its end.
  const [first, last] = [from && `${from}:00`, until && `${until}:59.999999`];
  return (event) => {
    if (event.gap) return true;
    const at = event.at.replace(/Z|[+]00:00$/, "");
    if ((first && at < first) || (last && at > last)) return false;
    if (!words.length) return true;
    const whole = `${JSON.stringify(event)}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  };
}
