// A face drawn from a name: the same name has the same face. Words of the persona lend it grey hair
// or a beard. No two of the choices below hang on the same bits.

import { hashed } from "./dom.js";

const SKIN = ["#f0cfae", "#e2b48c", "#c98f62", "#a86f45", "#7d4e30", "#5a3826"];
const HAIR = ["#2b2320", "#4a3024", "#7a4a26", "#a8662d", "#c9a05a", "#8a2f22"];
const GREY = ["#d9d6cf", "#b4b1ab", "#8d8b88"];
const HUES = [12, 34, 150, 178, 205, 232, 275, 338];

const HAIR_BEHIND = {
  none: "", short: "", cap: "", crop: "",
  long: `<path class="hair" d="M50 74C40 150 60 176 58 190h84c-2-14 18-40 8-116C146 38 54 38 50 74z"/>`,
  bun: `<circle class="hair" cx="100" cy="28" r="18"/>`,
  hood: `<path class="cloth2" d="M100 20c-44 0-62 36-58 84 3 38 8 60 4 80h108c-4-20 1-42 4-80 4-48-14-84-58-84z"/>`,
};
const HAIR_FRONT = {
  none: "",
  crop: `<path class="hair" d="M55 84c-4-34 18-50 45-50s49 16 45 50c-3-12-8-20-14-24-20 4-42 4-62 0-6 4-11 12-14 24z"/>`,
  short: `<path class="hair" d="M54 96c-8-48 22-62 46-62s56 14 46 62c-4-16-8-22-12-32-22 4-44-4-58-14-4 18-18 22-22 46z"/>`,
  long: `<path class="hair" d="M52 100c-8-46 16-66 48-66s56 20 48 66c-4-20-14-38-30-46-20 14-50 16-66 46z"/>`,
  bun: `<path class="hair" d="M54 92c-4-42 18-58 46-58s50 16 46 58c-8-22-24-34-46-34S62 70 54 92z"/>`,
  hood: `<path class="cloth" d="M48 120c-10-60 14-88 52-88s62 28 52 88c-2-44-18-66-52-66s-50 22-52 66z"/>`,
  cap: `<path class="cloth" d="M50 74c0-32 20-48 50-48s50 16 50 48c-30-10-70-10-100 0z"/><path class="cloth2" d="M46 72c30-12 78-12 108 0l-4 12c-32-10-68-10-100 0z"/>`,
};
const BEARD = {
  none: "",
  full: `<path class="hair" d="M57 112c2 42 18 64 43 64s41-22 43-64c-5 10-12 13-20 12-8-4-38-4-46 0-8 1-15-2-20-12z"/>`,
  short: `<path class="hair" d="M60 116c3 30 18 43 40 43s37-13 40-43c-6 9-12 12-20 11-10-4-30-4-40 0-8 1-14-2-20-11z"/>`,
  goatee: `<path class="hair" d="M84 136c4 26 28 26 32 0-8 8-24 8-32 0z"/>`,
  moustache: `<path class="hair" d="M100 122c-10-6-22-2-28 8 12 2 22 2 28-2 6 4 16 4 28 2-6-10-18-14-28-8z"/>`,
};

function picker(name) {
  let seed = hashed(name) || 1;
  return (choices) => {
    seed = Math.imul(seed ^ (seed >>> 15), 2246822519) >>> 0;
    seed = (seed ^ (seed >>> 13)) >>> 0;
    return choices[seed % choices.length];
  };
}

function features(name, persona) {
  const pick = picker(name);
  const words = ` ${persona.toLowerCase()} `;
  const woman = /\b(she|her|herself|woman|widow|grandmother|mother|sister|witch|lady)\b/.test(words);
  const man = /\b(he|his|him|himself|man|widower|grandfather|father|brother)\b/.test(words);
  const old = /\b(old|elder|elderly|aged|grey|gray|grand\w+|ancient|weathered|burnt|retired)\b/.test(` ${name.toLowerCase()}${words}`);
  const beard = pick(["full", "short", "goatee", "moustache", "none", "none"]);
  const skin = pick(SKIN);
  const dark = SKIN.indexOf(skin) > 3; // no fair hair here
  const bearded = beard === "none" && man ? "short" : beard;
  return {
    skin,
    hair: pick(old ? GREY : dark ? HAIR.slice(0, 2) : HAIR),
    style: pick(woman ? ["long", "bun", "hood", "long"] : ["crop", "short", "cap", "hood", "none", "long"]),
    beard: woman ? "none" : bearded,
    hue: pick(HUES),
    old,
    brow: pick([-3, 0, 3]),
    eyes: pick(["#3b2a1d", "#32566b", "#3c5a36", "#5a4a2c"]),
  };
}

const WRINKLES = `<path class="line" d="M60 104c4 3 6 4 10 4M140 104c-4 3-6 4-10 4M80 68c12-4 28-4 40 0" opacity=".35"/>`;

function face(f) {
  return `<svg viewBox="0 0 200 200" focusable="false">
    ${HAIR_BEHIND[f.style]}
    <path class="cloth" d="M14 204c4-34 36-46 62-52h48c26 6 58 18 62 52z"/>
    <path class="cloth2" d="M76 152l24 34 24-34 14 4-38 50-38-50z"/>
    <path class="skin2" d="M80 136h40v22c-8 14-32 14-40 0z"/>
    <path class="skin" d="M56 90c0-34 18-52 44-52s44 18 44 52c0 40-18 66-44 66s-44-26-44-66z"/>
    <ellipse class="skin" cx="54" cy="102" rx="8" ry="12"/><ellipse class="skin" cx="146" cy="102" rx="8" ry="12"/>
    ${BEARD[f.beard]}
    ${HAIR_FRONT[f.style]}
    <g class="eyes"><ellipse class="white" cx="80" cy="97" rx="9" ry="6.500"/><ellipse class="white" cx="120" cy="97" rx="9" ry="6.500"/>
    <circle class="iris" cx="81" cy="97" r="5"/><circle class="iris" cx="119" cy="97" r="5"/>
    <circle class="pupil" cx="81" cy="97" r="2.500"/><circle class="pupil" cx="119" cy="97" r="2.500"/></g>
    <path class="brow" d="M68 ${86 + f.brow}c8-6 16-6 24 0M108 86c8-6 16-6 24 ${f.brow}"/>
    <path class="line" d="M100 98c-2 8-8 14-6 18 3 3 9 3 12 1"/>
    ${f.old ? WRINKLES : ""}
    <g class="mouth"><path class="lips" d="M86 134c8 6 20 6 28 0-6 14-22 14-28 0z"/></g>
  </svg>`;
}

// Draws the face of `name` into an element. Only numbers and parts from above become markup.
export function portray(element, name, persona = "") {
  const f = features(name, persona);
  element.style.setProperty("--skin", f.skin);
  element.style.setProperty("--hair", f.hair);
  element.style.setProperty("--iris", f.eyes);
  element.style.setProperty("--cloth", `hsl(${f.hue} 32% 40%)`);
  element.style.setProperty("--cloth2", `hsl(${f.hue} 34% 27%)`);
  element.innerHTML = face(f);
}
