// The flame graph that the page takes on demand.

import { call } from './connection.js';
import { $, element, setText } from './elements.js';
import { percent, plural } from './text.js';

const FLAME_S = 5;
const FRAME_PX = 25;

export function flameSection(isOffered) {
  const parent = $('#flame > div');
  if (parent.dataset.offered === String(isOffered)) return;
  parent.dataset.offered = isOffered;
  if (!isOffered) {
    return parent.replaceChildren(element('p', { className: 'empty' }, 'Here the dashboard only reads. ', element('code', { textContent: 'outboard dashboard' }),
      ' and ', element('code', { textContent: 'outboard profile' }), ' on the machine draw flame graphs of PHP.'));
  }
  const button = element('button', { type: 'button', textContent: `Sample PHP for ${FLAME_S} seconds` });
  const whole = element('button', { type: 'button', textContent: 'Whole graph', hidden: true });
  const words = element('p', { className: 'note', role: 'status', textContent: 'Workers are sampled from outside; requests are not slowed down.' });
  const frames = element('div', { id: 'frames' });
  parent.replaceChildren(element('div', { className: 'tools' }, button, whole, words), frames);
  button.addEventListener('click', async () => {
    button.disabled = true;
    setText(words, 'Sampling …');
    try {
      const response = await call(`dashboard/profile?seconds=${FLAME_S}`, 'POST', (FLAME_S + 15) * 1000);
      const reply = await response.json();
      if (!response.ok) throw new Error(reply.error);
      const root = flameTree(reply.folded);
      const draw = (node) => { whole.hidden = node === root; drawFlame(frames, words, root, node, draw); };
      whole.onclick = () => { draw(root); button.focus(); };
      draw(root);
      setText(words, root.count ? `${plural(root.count, 'sample')}. A frame is as wide as its share of time; select one to see what is below it.`
        : 'No samples: PHP was not running.');
    } catch (error) {
      setText(words, `No flame graph: ${error.message}`);
    }
    button.disabled = false;
  });
}

/** From lines `a;b;c count`. */
function flameTree(folded) {
  const root = { name: 'all', count: 0, children: new Map() };
  for (const line of folded.split('\n').filter(Boolean)) {
    const cut = line.lastIndexOf(' ');
    const count = Number(line.slice(cut + 1));
    let node = root;
    root.count += count;
    for (const name of line.slice(0, cut).split(';').slice(0, 64)) {
      if (!node.children.has(name)) node.children.set(name, { name, count: 0, children: new Map() });
      node = node.children.get(name);
      node.count += count;
    }
  }
  return root;
}

function drawFlame(frames, words, root, top, zoom) {
  const nodes = [];
  let depth = 0;
  const place = (node, level, from) => {
    depth = Math.max(depth, level + 1);
    const wide = node.count / top.count;
    const text = `${node.name} ${percent(node.count / root.count)}`;
    let hash = 0;
    for (const letter of node.name) hash = (hash * 31 + letter.codePointAt(0)) % 65521;
    const button = element('button', { type: 'button', className: `f${hash % 6}`, textContent: node.name, title: text, ariaLabel: text });
    button.style.left = `${from * 100}%`;
    button.style.width = `${wide * 100}%`;
    button.style.top = `${level * FRAME_PX}px`;
    button.addEventListener('click', () => zoom(node));
    for (const event of ['focus', 'pointerenter']) button.addEventListener(event, () => setText(words, text));
    nodes.push(button);
    for (const child of [...node.children.values()].sort((a, b) => b.count - a.count)) {
      if (child.count / top.count >= 0.004 && nodes.length < 1500) place(child, level + 1, from);
      from += child.count / top.count;
    }
  };
  if (top.count) place(top, 0, 0);
  frames.replaceChildren(...nodes);
  frames.style.height = `${depth * FRAME_PX}px`;
}
