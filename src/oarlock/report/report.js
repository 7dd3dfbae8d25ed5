// The values of a chart under the pointer. All text goes in as text.
for (const chart of document.querySelectorAll("svg[data-chart]")) {
  const held = JSON.parse(chart.dataset.chart);
  const space = "http://www.w3.org/2000/svg";
  const cursor = document.createElementNS(space, "path");
  const dots = document.createElementNS(space, "g");
  const tip = document.createElement("div");
  cursor.setAttribute("class", "cursor");
  tip.className = "tip";
  const nearest = (steps, step) => {
    let low = 0, high = steps.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (steps[middle] < step) low = middle; else high = middle;
    }
    return Math.abs(steps[low] - step) <= Math.abs(steps[high] - step) ? low : high;
  };
  const place = (step) => held.left + (step - held.low) / (held.high - held.low) * (held.right - held.left);
  const hide = () => { cursor.remove(); dots.remove(); tip.remove(); };
  const show = (event) => {
    const box = chart.getBoundingClientRect(), scale = chart.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    if (x < held.left - 12 || x > held.right + 12) { hide(); return; }
    const asked = held.low + (x - held.left) / (held.right - held.left) * (held.high - held.low);
    const found = held.curves.filter((curve) => curve.steps.length).map((curve) => [curve, nearest(curve.steps, asked)]);
    if (!found.length) return;
    found.sort((one, other) => Math.abs(one[0].steps[one[1]] - asked) - Math.abs(other[0].steps[other[1]] - asked));
    const at = place(found[0][0].steps[found[0][1]]);
    cursor.setAttribute("d", `M${at} ${held.top}V${held.bottom}`);
    dots.replaceChildren();
    tip.replaceChildren();
    for (const curve of held.curves) {
      const pair = found.find((each) => each[0] === curve);
      if (!pair) continue;
      const number = pair[1], height = curve.heights[number];
      if (height !== null) {
        const dot = document.createElementNS(space, "circle");
        dot.setAttribute("class", `dot-${curve.tone}`);
        dot.setAttribute("cx", place(curve.steps[number]));
        dot.setAttribute("cy", height);
        dot.setAttribute("r", "3.5");
        dots.append(dot);
      }
      const line = document.createElement("div"), value = document.createElement("b");
      value.textContent = curve.values[number];
      line.append(`${curve.name} `, value, ` at step ${curve.steps[number].toLocaleString("en")}`);
      tip.append(line);
    }
    chart.append(cursor, dots);
    chart.parentElement.append(tip);
    const frame = chart.parentElement.getBoundingClientRect(), wide = frame.width;
    const left = at / scale + box.left - frame.left;
    tip.style.top = `${held.top / scale + 8}px`;
    tip.style.left = `${Math.max(4, left + tip.offsetWidth + 20 < wide ? left + 14 : left - tip.offsetWidth - 14)}px`;
  };
  chart.addEventListener("pointermove", show);
  chart.addEventListener("pointerdown", show);
  chart.addEventListener("pointerleave", hide);
}
