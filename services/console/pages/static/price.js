// A price in words, as libs/quant/ticks.py writes it.

const PLACES_MIN = 2;
const PLACES_MAX = 6;
const TICK_PLACES = 4;

/** The digits of a price on its tick: at most a ten-thousandth of it, from two decimal places to six. */
export function digits(value) {
  if (value === null || value === undefined) return "–";
  const magnitude = value ? Math.floor(Math.log10(Math.abs(value))) : 0;
  const places = Math.min(PLACES_MAX, Math.max(PLACES_MIN, TICK_PLACES - magnitude));
  return value.toLocaleString("en", { minimumFractionDigits: PLACES_MIN, maximumFractionDigits: places });
}

/** `763.81 GBX`, of `{amount, currency}`. */
export const price = (money) => `${digits(Number(money.amount))} ${money.currency}`;
