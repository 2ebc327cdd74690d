// Runs inside a page and returns what is wrong with it, as a list of sentences.
(() => {
  const faults = [];
  const shown = (element) => element.checkVisibility() && element.getClientRects().length > 0;
  const named = (element) => {
    const figure = element.closest("figure");
    const title = figure ? figure.querySelector("figcaption b")?.textContent : "the page";
    return `"${title}"`;
  };

  // A word that would fit into the narrowest column of names and yet stands on two lines.
  const torn_word = (cell) => {
    const node = cell?.firstChild;
    for (const word of node?.data?.matchAll(/[\p{L}\d_.]{4,14}/gu) ?? []) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].map((its) => Math.round(its.top))).size > 1) return word[0];
    }
    return null;
  };

  // Accessible: language, headings that descend by one, captions, titles.
  if (!document.documentElement.lang) faults.push("it has no language");
  if (!document.title) faults.push("it has no title");
  let level = 0;
  for (const heading of document.querySelectorAll("h1,h2,h3,h4,h5,h6")) {
    const next = Number(heading.tagName[1]);
    if (next > level + 1) faults.push(`heading "${heading.textContent}" skips a level`);
    level = next;
  }
  if (document.querySelectorAll("h1").length !== 1) faults.push("it has not exactly one h1");
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption?.textContent.trim()) faults.push("a table has no caption");
    if (!table.querySelector("th[scope]")) faults.push("a table has no header cells");
  }
  for (const svg of document.querySelectorAll("svg")) {
    for (const part of ["title", "desc"]) {
      if (!svg.querySelector(`:scope > ${part}`)?.textContent.trim()) faults.push(`${named(svg)} has no ${part}`);
    }
  }
  for (const figure of document.querySelectorAll("figure")) {
    const drawings = [...figure.querySelectorAll("svg")].filter(shown).length;
    if (drawings !== 1) faults.push(`${named(figure)} shows ${drawings} drawings`);
  }

  // The plots come before the tables, but for what is folded.
  const first = document.querySelector("figure");
  for (const table of first ? document.querySelectorAll("table") : []) {
    const before = first.compareDocumentPosition(table) & Node.DOCUMENT_POSITION_PRECEDING;
    if (before && !table.closest("details")) faults.push(`table "${table.caption?.textContent}" is before the first plot`);
  }

  // Tables: no empty column; all columns seen where there is room, and where there is none, the first one stays, figures
  // have room beside it, and a line says that there are more. What is folded is looked at unfolded.
  const folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((details) => { details.open = true; });
  const paper_is = matchMedia("print").matches;
  for (const table of document.querySelectorAll("table")) {
    const name = `table "${table.caption?.textContent.trim()}"`;
    const head = [...(table.tHead?.rows[0]?.cells ?? [])];
    const rows = [...table.tBodies].flatMap((body) => [...body.rows]);
    head.forEach((title, at) => {
      if (at > 0 && !title.textContent.trim()) faults.push(`${name}: column ${at + 1} has no title`);
      if (rows.length > 0 && rows.every((row) => !row.cells[at]?.textContent.trim())) {
        faults.push(`${name}: column ${at + 1}, "${title.textContent}", is empty`);
      }
    });
    if (!shown(table)) continue;
    const box = table.parentElement.getBoundingClientRect();
    const cut = head.filter((title) => title.getBoundingClientRect().right > box.right + 1);
    if (cut.length === 0) continue;
    const cut_is = `${name}: column "${cut[0].textContent}" is cut`;
    if (innerWidth >= 1400 || paper_is) {
      faults.push(cut_is);
      continue;
    }
    if (getComputedStyle(table.parentElement).overflowX !== "auto") faults.push(`${cut_is} and cannot be scrolled to`);
    if (getComputedStyle(head[0]).position !== "sticky") faults.push(`${cut_is} and the first column does not stay`);
    if (head[0].getBoundingClientRect().width > box.width * 0.6) faults.push(`${cut_is} and the first leaves no room for it`);
    const torn = rows.map((row) => torn_word(row.cells[0])).find((word) => word);
    if (torn) faults.push(`${name}: "${torn}" is broken inside`);
    const hint = table.parentElement.nextElementSibling;
    if (!hint?.classList.contains("hint") || !shown(hint)) faults.push(`${cut_is} and nothing says so`);
  }
  folded.forEach((details) => { details.open = false; });

  // An option is one word, to the reader who copies it too: no line ends between its hyphens.
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!shown(node.parentElement)) continue;
    for (const found of node.data.matchAll(/--[a-z]+/g)) {
      const range = document.createRange();
      range.setStart(node, found.index);
      range.setEnd(node, found.index + found[0].length);
      const lines = new Set([...range.getClientRects()].map((its) => Math.round(its.top)));
      if (lines.size > 1) faults.push(`"${found[0]}" is broken into ${lines.size} lines`);
    }
  }

  // What was computed of nothing is no figure, and a sign before zero says nothing. A note is whole sentences.
  for (const element of document.querySelectorAll("p,td,dd,text")) {
    const found = element.textContent.match(/\bNaN\b|\binf\b|(?<!\S)[-\u2212+]0(\.0+)?(?= ?%)/);
    if (found) faults.push(`"${element.textContent.trim().slice(0, 40)}": ${found[0]} is no figure`);
    const ends = element.matches("p.note") && !element.querySelector("a") && !/[.!?:)]$/.test(element.textContent.trim());
    if (ends) faults.push(`note "${element.textContent.slice(-30)}" ends in the middle of a sentence`);
  }

  // A name of a program's that heads a table or a column is explained on the page.
  const explained = document.querySelector("dl.words")?.textContent;
  for (const element of explained ? document.querySelectorAll("caption,th") : []) {
    const unknown = element.textContent.match(/\w+_\w+/g)?.find((name) => !explained.includes(name));
    if (unknown && !element.closest("details")) faults.push(`${unknown} is not explained`);
  }

  // On paper what belongs together stays together.
  for (const element of paper_is ? document.querySelectorAll("tr,figure,dl div,.scroll") : []) {
    const long = element.matches(".scroll") && element.querySelectorAll("tbody tr").length > 15;
    if (!long && shown(element) && getComputedStyle(element).breakInside !== "avoid") {
      faults.push(`<${element.tagName.toLowerCase()}> "${element.textContent.trim().slice(0, 20)}" may be cut by the page's end`);
      break;
    }
  }

  // What is one below the other to be compared, of one title but for the last name in it, over one axis, has one scale.
  const scales = new Map();
  for (const figure of document.querySelectorAll("figure")) {
    const [stem, ...of] = figure.querySelector("figcaption b")?.textContent.split(": ") ?? [];
    const drawing = [...figure.querySelectorAll("svg")].find(shown);
    if (of.length === 0 || !drawing?.querySelector(".line,.dots")) continue;
    const texts = (which) => [...drawing.querySelectorAll(which)].map((text) => text.textContent).join(" ");
    const ticks = texts("text.tick[text-anchor=end]");
    const what = `${stem}: ${texts("text.label")}: ${texts("text.tick[text-anchor=middle]")}`;
    if (scales.has(what) && scales.get(what) !== ticks) faults.push(`"${stem}: ${of[0]}" has another scale than the one before it`);
    scales.set(what, ticks);
  }

  // Nothing wider than the window, but for what scrolls by itself.
  if (document.documentElement.scrollWidth > innerWidth) {
    faults.push(`it is ${document.documentElement.scrollWidth} px wide in a window of ${innerWidth}`);
  }

  // Drawings: all parts inside, no text over another, none too small, none cut where there is room.
  const inside = (inner, outer) =>
    inner.left >= outer.left - 1 && inner.right <= outer.right + 1 &&
    inner.top >= outer.top - 1 && inner.bottom <= outer.bottom + 1;
  const over = (a, b) =>
    Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 &&
    Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5;
  for (const svg of [...document.querySelectorAll("svg")].filter(shown)) {
    const box = svg.getBoundingClientRect();
    if (box.width < 250) faults.push(`${named(svg)} is only ${box.width} px wide`);
    for (const part of svg.querySelectorAll("text,path,rect")) {
      if (part.tagName === "path" && !part.getAttribute("d")) continue;
      if (!inside(part.getBoundingClientRect(), box)) {
        faults.push(`${named(svg)}: <${part.tagName} class="${part.getAttribute("class")}"> ${part.textContent} is outside`);
      }
    }
    const texts = [...svg.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    texts.forEach(([text, rectangle], at) => {
      for (const [other, its] of texts.slice(at + 1)) {
        // Line boxes are taller than letters.
        const slim = (r) => ({ left: r.left, right: r.right, top: r.top + r.height * 0.2, bottom: r.bottom - r.height * 0.2 });
        if (over(slim(rectangle), slim(its))) faults.push(`${named(svg)}: "${text.textContent}" is over "${other.textContent}"`);
      }
      if (innerWidth >= 1000 && text.textContent.endsWith("…")) faults.push(`${named(svg)}: "${text.textContent}" is cut`);
      const size = parseFloat(getComputedStyle(text).fontSize) * (box.width / svg.viewBox.baseVal.width);
      if (size < 9) faults.push(`${named(svg)}: "${text.textContent}" is ${size.toFixed(1)} px high`);
    });
  }

  // Contrast: 4.5 for text, 3 for what else must be seen (WCAG 2.2, 1.4.3 and 1.4.11).
  const channels = (colour) => colour.match(/[\d.]+/g)?.slice(0, 3).map(Number);
  const luminance = (colour) => {
    const [r, g, b] = channels(colour).map((c) => {
      const s = c / 255;
      return s <= 0.04045 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = luminance(getComputedStyle(document.body).backgroundColor);
  const contrast = (colour) => {
    const ink = luminance(colour);
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const seen = new Set();
  const demand = (colour, least, what) => {
    if (!channels(colour) || seen.has(colour + least)) return;
    seen.add(colour + least);
    if (contrast(colour) < least) faults.push(`${what}: contrast of ${colour} is only ${contrast(colour).toFixed(2)}`);
  };
  for (const element of document.querySelectorAll("h1,h2,p,pre,summary,td,th,dt,dd,caption,figcaption,figcaption span,footer,.origin")) {
    if (shown(element)) demand(getComputedStyle(element).color, 4.5, element.tagName);
  }
  for (const text of document.querySelectorAll("svg text")) demand(getComputedStyle(text).fill, 4.5, "text in a drawing");
  for (const path of document.querySelectorAll("svg .line,svg .dots,svg .bar,svg .reference")) {
    demand(getComputedStyle(path).stroke, 3, path.getAttribute("class"));
  }
  return faults;
})()
