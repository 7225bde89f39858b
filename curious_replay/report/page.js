"use strict";
for (const box of document.querySelectorAll(".explorer")) {
  const data = JSON.parse(box.querySelector('script[type="application/json"]').textContent);
  const line = box.querySelector(".line"), cursor = box.querySelector(".cursor");
  const list = box.querySelector("dl"), thumb = box.querySelector(".thumb");
  const count = data.frame.length;
  let at = count - 1;
  const show = (index) => {
    at = Math.max(0, Math.min(count - 1, index));
    const rows = [
      ["frame", data.frame[at].toLocaleString("en")],
      ["phase", data.phase[at]],
      ["trained on", data.visits[at] + (data.visits[at] === 1 ? " time" : " times")],
      ["chance to be drawn", data.relative[at] ? data.relative[at] + " × uniform" : "not yet"],
      ["priority", String(data.priority[at])],
    ];
    if (data.count) rows.push(["of it, seldom seen", String(data.count[at])]);
    if (data.surprise) rows.push(["of it, surprise", String(data.surprise[at])]);
    list.replaceChildren(...rows.flatMap(([name, value]) => {
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      return [term, text];
    }));
    cursor.style.display = "block";
    cursor.style.left = `calc(${(100 * (at + 0.5)) / count}% - 1px)`;
    line.setAttribute("aria-valuenow", at + 1);
    line.setAttribute("aria-valuetext", rows.slice(0, 3).map((row) => row.join(" ")).join(", "));
    if (thumb) {
      const columns = +thumb.dataset.columns, high = +thumb.dataset.rows;
      thumb.style.backgroundSize = `${100 * columns}% ${100 * high}%`;
      const x = columns > 1 ? (100 * (at % columns)) / (columns - 1) : 0;
      const y = high > 1 ? (100 * Math.floor(at / columns)) / (high - 1) : 0;
      thumb.style.backgroundPosition = `${x}% ${y}%`;
    }
  };
  const point = (event) => {
    const place = line.getBoundingClientRect();
    show(Math.floor(((event.clientX - place.left) / place.width) * count));
  };
  line.addEventListener("pointermove", point);
  line.addEventListener("pointerdown", point);
  line.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -10,
      PageUp: 10, Home: -count, End: count };
    if (event.key in moves) {
      show(at + moves[event.key]);
      event.preventDefault();
    }
  });
  show(at);
}
