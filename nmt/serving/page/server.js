// Questions to the server. A newer question of the same kind makes the older one stop.

const underWay = new Map();

export async function ask(path, body) {
  underWay.get(path)?.abort();
  const controller = new AbortController();
  underWay.set(path, controller);
  const answer = await fetch(path, body && {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), signal: controller.signal,
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error);
  return found;
}

export const isOutdated = (error) => error.name === "AbortError";
