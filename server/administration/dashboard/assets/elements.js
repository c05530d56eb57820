// Elements of the page, and lists and tables that are updated in place.
//
// Text is set as textContent, because paths, names and backtraces are what clients and applications have chosen.
// Nodes are reused, so that focus and open details survive an update.

export const $ = (selector, root = document) => root.querySelector(selector);

export function element(name, properties = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
}

export function shape(name, attributes) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  return node;
}

export const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
export const setState = (node, state) => { if (node.dataset.state !== state) node.dataset.state = state; };

/** Makes the children of `parent` those of `items`, by their keys. */
export function reconcile(parent, items, key, create, update) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const name = String(key(item));
    let node = known.get(name);
    if (node) known.delete(name);
    else {
      node = create(item);
      node.dataset.key = name;
    }
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
    update(node, item);
  }
  for (const node of known.values()) node.remove();
}

/** A table in `parent`. A column has a heading, classes, and a function to text or [text, state]. */
export function table(parent, name, columns, items, key) {
  let node = $(':scope > table', parent);
  if (!node) {
    const heads = columns.map(([heading, classes]) => element('th', { scope: 'col', className: classes, textContent: heading }));
    node = element('table', { ariaLabel: name }, element('thead', {}, element('tr', {}, ...heads)), element('tbody'));
    parent.replaceChildren(node);
  }
  const create = () => element('tr', {}, ...columns.map(([, classes]) => element('td', { className: classes })));
  reconcile(node.tBodies[0], items, key, create, (row, item) => {
    columns.forEach(([, , value], index) => {
      const found = value(item);
      const [text, state] = Array.isArray(found) ? found : [found, ''];
      setText(row.cells[index], text);
      setState(row.cells[index], state);
    });
  });
}

export function empty(parent, text) {
  const node = $(':scope > .empty', parent);
  if (node) setText(node, text); else parent.replaceChildren(element('p', { className: 'empty', textContent: text }));
}

export function radios(fieldset, name, options, chosen, change) {
  for (const [value, text] of options) {
    const input = element('input', { type: 'radio', name, value, checked: value === chosen });
    input.addEventListener('change', () => change(value));
    fieldset.append(element('label', {}, input, text));
  }
}
