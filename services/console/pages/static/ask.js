// Calls of the documented API. Whatever a page does goes through here.

/** A refusal, as the desk told it (RFC 9457). */
export class Refused extends Error {
  constructor(problem) {
    super(problem.detail || problem.title || "the desk refused without a reason");
    this.code = problem.code;
    this.status = problem.status;
    this.field = problem.field;
  }
}

/** The answer to a call below /api/v1, as JSON; null where it has no body. Throws `Refused`. */
export async function ask(method, path, body, headers = {}) {
  const said = body === undefined ? {} : { "Content-Type": "application/json" };
  let answer;
  try {
    answer = await fetch(`/api/v1${path}`, {
      method,
      headers: { ...said, ...headers },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refused({ status: 0, code: "away", detail: "The desk does not answer; try again once it does." });
  }
  const text = await answer.text();
  if (answer.ok) return text ? JSON.parse(text) : null;
  if (answer.status === 401 && path !== "/session") toLogin();
  let problem;
  try {
    problem = JSON.parse(text);
  } catch {
    problem = { status: answer.status, detail: `${answer.status} ${answer.statusText}` };
  }
  throw new Refused(problem);
}

/** To the login page, and back here afterwards. */
export function toLogin() {
  location.assign(`/login?next=${encodeURIComponent(location.pathname + location.search)}`);
}

/** Tell what came of something, with a page that says more; tones are those of the style sheet. */
export function tell(text, tone = "good", page = "") {
  const toast = document.createElement(page ? "a" : "div");
  toast.className = `toast ${tone}`;
  toast.textContent = text;
  if (page) toast.href = page;
  document.getElementById("toasts").append(toast);
  setTimeout(() => toast.remove(), 8000);
}
