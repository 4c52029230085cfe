// The drawings of goods: 64 by 64, standing on y = 60. `words` are the nouns that call for one.
// `hue` is the colour of what has one by nature; the others take theirs from the item's name.
//
// Fills: a, b tint and its shade; w, v wood; m, n metal; y gold; p, q paper; k ink; g glass; f flame.
// Strokes: A, W, M, K of the same, and Y of gold. Their colours are in glyphs.css.

export const GLYPHS = {
  lantern: {
    words: "lantern headlamp beacon flashlight",
    svg: `<path class="M" d="M23 19c0-15 18-15 18 0"/><path class="n" d="M20 24l6-7h12l6 7z"/><rect class="b" x="21" y="24" width="22" height="28" rx="2"/><rect class="g" x="25" y="27" width="14" height="22" rx="1"/><path class="f" d="M32 29c6 7 6 10 6 13a6 6 0 0 1-12 0c0-3 3-6 6-13z"/><path class="M" d="M32 24v28" opacity=".5"/><rect class="n" x="17" y="52" width="30" height="8" rx="2"/>`,
  },
  lamp: {
    words: "lamp light",
    svg: `<path class="y" d="M14 46c4-10 12-12 20-12 6 0 10-4 20-7-2 13-9 23-22 25H22c-4 0-7-3-8-6z"/><path class="Y" d="M16 42c-10-2-10-14 0-12"/><path class="f" d="M54 10c5 6 5 9 5 11a4 4 0 0 1-9 0c0-3 2-6 4-11z"/><path class="b" d="M22 52h18l4 8H18z"/><circle class="a" cx="29" cy="32" r="4"/>`,
  },
  candle: {
    words: "candle torch taper wick flare match fuse",
    svg: `<rect class="p" x="24" y="26" width="16" height="28" rx="2"/><path class="q" d="M34 26h6v28h-6z"/><path class="K" d="M32 26v-6"/><path class="f" d="M32 4c7 8 7 11 7 14a7 7 0 0 1-14 0c0-4 4-7 7-14z"/><path class="a" d="M14 52h36l-4 8H18z"/>`,
  },
  rope: {
    words: "rope line cord twine string tether cable hawser lasso leash",
    svg: `<ellipse class="w" cx="32" cy="42" rx="24" ry="17"/><ellipse class="v" cx="32" cy="41" rx="11" ry="7"/><ellipse class="W" cx="32" cy="42" rx="20" ry="13.5"/><ellipse class="W" cx="32" cy="41.5" rx="15.5" ry="10"/><path class="W" d="M12 34l5 4M20 27l3 6M32 24v7M43 27l-3 6M52 34l-6 4M54 45l-7-1M46 55l-4-6M32 59v-6M19 55l4-6M10 45l7-1"/><path class="u" d="M50 32c8-8 2-18-8-20"/>`,
  },
  map: {
    words: "map chart plan atlas",
    svg: `<path class="p" d="M6 20l17-7v39L6 59zM41 20l17-7v39l-17 7z"/><path class="q" d="M23 13l18 7v39l-18-7z"/><path class="A" d="M11 46c8-14 16-2 22-12s10-4 16-10" stroke-dasharray="3 4"/><path class="K" d="M46 22l7 7M53 22l-7 7"/><path class="b" d="M13 29l4-7 4 7z"/>`,
  },
  compass: {
    words: "compass dial clock watch sextant barometer chronometer gauge sonar astrolabe radar pinger",
    svg: `<rect class="y" x="27" y="5" width="10" height="9" rx="3"/><circle class="y" cx="32" cy="37" r="23"/><circle class="p" cx="32" cy="37" r="18"/><path class="a" d="M32 22l5 15H27z"/><path class="n" d="M32 52l5-15H27z"/><circle class="k" cx="32" cy="37" r="2.5"/><path class="K" d="M32 20.500v2M32 51.500v2M15.500 37h2M46.500 37h2"/>`,
  },
  sword: {
    words: "sword longsword blade sabre saber rapier scimitar katana cutlass greatsword",
    svg: `<path class="m" d="M53 5l-2 13-25 26-6-6L46 8z"/><path class="n" d="M53 5l-2 13-25 26-3-3z"/><path class="y" d="M13 34l4-3 16 16-3 4z"/><path class="b" d="M19 40l5 5-11 12-6-6z"/><circle class="y" cx="9" cy="55" r="5"/>`,
  },
  knife: {
    words: "knife dagger dirk razor dart machete scalpel shiv kris",
    svg: `<path class="m" d="M56 8c0 14-10 25-24 31l-6-6C34 21 44 10 56 8z"/><path class="n" d="M56 8c0 14-10 25-24 31l-3-3C42 28 50 19 56 8z"/><path class="y" d="M22 31l11 11-4 3-10-10z"/><path class="a" d="M20 37l8 8-14 14c-5 3-12-4-8-9z"/>`,
  },
  axe: {
    words: "axe hatchet tomahawk halberd",
    svg: `<path class="w" d="M44 6l8 5-34 51-8-6z"/><path class="m" d="M50 16l-9-9C30 2 16 8 8 26c10-2 20 1 26 9z"/><path class="n" d="M8 26c10-2 20 1 26 9l3-4C30 23 20 20 11 21z"/><path class="m" d="M48 10l8 5-5 8-7-5z"/>`,
  },
  pickaxe: {
    words: "pickaxe pick mattock drill corer hoe shovel spade scythe rake",
    svg: `<path class="w" d="M38 16l7 6-32 38-7-6z"/><path class="n" d="M14 9c20-5 40 10 44 34l-4 1C48 28 34 16 14 13z"/><path class="m" d="M14 9c20-5 40 10 44 34C48 22 32 12 14 9z"/>`,
  },
  bow: {
    words: "bow longbow crossbow arrow quiver arrows harpoon sling",
    svg: `<path class="u" d="M15 6c38 2 44 24 40 52" stroke-width="5"/><path class="K" d="M15 6l40 52" stroke-width="1.500"/><path class="M" d="M10 54l34-34"/><path class="m" d="M50 14l-2 11-9-9z"/><path class="a" d="M4 52l8-2 2 8-6 4z"/>`,
  },
  shield: {
    words: "shield buckler seal badge crest",
    svg: `<path class="m" d="M8 10c10 0 18-3 24-6 6 3 14 6 24 6 2 26-7 42-24 50C15 52 6 36 8 10z"/><path class="a" d="M13 14c8 0 14-2 19-5v44C19 46 12 34 13 14z"/><path class="b" d="M51 14c-8 0-14-2-19-5v44c13-7 20-19 19-39z"/><circle class="y" cx="32" cy="29" r="7"/>`,
  },
  helmet: {
    words: "helmet helm visor mask goggles casque hood",
    svg: `<path class="m" d="M10 40C10 18 20 8 32 8s22 10 22 32v18H40V42H24v16H10z"/><path class="n" d="M32 8c12 0 22 10 22 32v18H40V42h-8z"/><path class="k" d="M16 34h32v6H16z"/><path class="a" d="M29 2h6v24h-6z"/>`,
  },
  armor: {
    words: "armor armour mail chainmail cuirass suit vest breastplate undersuit jerkin plate",
    svg: `<path class="a" d="M16 10l9-4c2 6 12 6 14 0l9 4 10 14-8 6-3-5v33c-10 4-20 4-30 0V25l-3 5-8-6z"/><path class="b" d="M32 11c3 0 6-2 7-5l9 4 10 14-8 6-3-5v33c-5 2-10 3-15 3z"/><path class="Y" d="M18 38h28M32 14v44" opacity=".6"/>`,
  },
  robe: {
    words: "robe shirt coat cloak dress tunic jacket cape gown smock kilt trousers poncho shawl",
    svg: `<path class="a" d="M24 6h16l14 16-7 8-5-5 5 35H17l5-35-5 5-7-8z"/><path class="b" d="M32 6h8l14 16-7 8-5-5 5 35H32z"/><path class="Y" d="M25 7l7 12 7-12M32 19v40"/>`,
  },
  boots: {
    words: "boot shoe sandal slipper sock fin skate stocking clog flipper",
    svg: `<path class="a" d="M12 6h17v30c6 6 15 6 20 10 5 3 5 8 4 10H12z"/><path class="b" d="M10 6h21v9H10zM10 54h44v6H10z"/><path class="Y" d="M24 26h6M24 33h7" />`,
  },
  glove: {
    words: "glove gauntlet mitten hand",
    svg: `<path class="a" d="M18 60V40L9 29c-3-4 3-8 6-5l7 7V11c0-5 6-5 6 0v14-18c0-5 7-5 7 0v18-16c0-5 6-5 6 0v18-12c0-5 6-5 6 0v27c0 8-3 12-4 18z"/><path class="b" d="M16 50h29v10H16z"/>`,
  },
  hat: {
    words: "hat cap bonnet wig turban crown tiara veil scarf",
    svg: `<path class="a" d="M16 42c0-20 4-34 16-30 12-4 16 10 16 30z"/><path class="b" d="M16 36h32v8H16z"/><ellipse class="a" cx="32" cy="48" rx="29" ry="9"/><ellipse class="b" cx="32" cy="51" rx="22" ry="4"/>`,
  },
  potion: {
    words: "potion elixir antidote tonic philtre brew venom poison medicine cordial",
    svg: `<path class="g" d="M25 10h14v16c10 5 14 12 14 19 0 10-9 15-21 15S11 55 11 45c0-7 4-14 14-19z"/><path class="a" d="M13 41h38c3 11-7 17-19 17s-22-6-19-17z"/><ellipse class="b" cx="32" cy="41" rx="19" ry="4"/><circle class="g" cx="25" cy="49" r="3"/><circle class="g" cx="36" cy="52" r="2"/><rect class="w" x="23" y="4" width="18" height="8" rx="2"/>`,
  },
  bottle: {
    words: "bottle wine rum oil vial flask spirit vinegar syrup perfume milk juice whisky gin fizz ink serum",
    svg: `<path class="a" d="M26 6h12v15c8 5 10 9 10 15v20c0 3-2 4-4 4H20c-2 0-4-1-4-4V36c0-6 2-10 10-15z"/><path class="b" d="M38 21c8 5 10 9 10 15v20c0 3-2 4-4 4H36c4-12 4-28 2-39z"/><rect class="w" x="25" y="3" width="14" height="8" rx="2"/><rect class="p" x="16" y="38" width="32" height="13"/><path class="K" d="M21 43h22M21 47h14" opacity=".5"/>`,
  },
  mug: {
    words: "ale beer mead mug tankard cup stein tea coffee cocoa cider drink soup pint",
    svg: `<path class="W" d="M44 28h8c6 0 6 20 0 20h-8" stroke-width="5"/><path class="w" d="M12 20h34v36c0 3-2 4-4 4H16c-2 0-4-1-4-4z"/><path class="W" d="M20 24v35M29 24v36M38 24v35"/><path class="p" d="M10 22c-3-9 7-13 11-8 4-7 14-6 16 0 8-3 13 4 10 10-3 4-8 0-10 2-4 3-9 2-11 0-4 3-14 3-16-4z"/>`,
  },
  barrel: {
    words: "barrel keg cask tank cylinder tun canister can tin bucket battery cell pot cauldron kettle",
    svg: `<path class="w" d="M16 8h32c8 15 8 33 0 52H16C8 41 8 23 16 8z"/><path class="v" d="M40 8h8c8 15 8 33 0 52h-8c5-18 5-34 0-52z"/><path class="M" d="M12 21h40M11 47h42" stroke-width="4"/><ellipse class="v" cx="32" cy="8" rx="16" ry="4"/><circle class="k" cx="32" cy="34" r="3"/>`,
  },
  waterskin: {
    words: "waterskin canteen skin waterbag",
    svg: `<path class="a" d="M25 10c0 10-15 16-15 32 0 12 10 18 23 18s21-7 21-18c0-15-13-20-13-32z"/><path class="b" d="M33 10h8c0 12 13 17 13 32 0 11-8 18-21 18 12-12 12-34 0-50z"/><rect class="w" x="26" y="3" width="14" height="9" rx="2"/><path class="Y" d="M25 16h16M13 30c-8-8 6-20 12-14"/>`,
  },
  bread: {
    words: "bread loaf bun cake pie pasty tart biscuit ration cookie dumpling pastry cracker roll hardtack food meal noodle brick soap chocolate",
    svg: `<path class="w" d="M8 40c-4-12 8-20 24-20s28 8 24 20v14c0 4-2 6-6 6H14c-4 0-6-2-6-6z"/><path class="v" d="M8 46h48v8c0 4-2 6-6 6H14c-4 0-6-2-6-6z"/><path class="p" d="M19 26l7 10M30 24l6 10M41 26l6 9" opacity=".7"/><path class="P" d="M18 27l6 11M30 25l5 11M41 27l5 10"/>`,
  },
  fruit: {
    hue: 352,
    words: "apple fruit date berry pear orange lemon plum fig peach grape pomegranate mango nut olive onion cabbage",
    svg: `<path class="a" d="M32 22c6-6 24-4 24 14S42 60 32 58C22 60 8 54 8 36s18-20 24-14z"/><path class="b" d="M44 19c8 2 12 8 12 17 0 18-14 24-24 22 14-6 18-20 12-39z"/><path class="u" d="M32 24c0-8 2-12 5-16"/><path class="L" d="M36 15c4-9 14-9 18-6-3 7-11 10-18 6z"/>`,
  },
  meat: {
    hue: 8,
    words: "meat ham jerky sausage bacon chicken steak beef",
    svg: `<path class="p" d="M46 42l10 8c5-2 8 4 4 7 0 5-7 5-8 0l-9-9z"/><path class="a" d="M8 26C8 12 26 4 40 12s16 26 6 34-22 6-30-2S8 32 8 26z"/><path class="b" d="M46 46c-8 8-22 6-30-2 16 2 30-8 32-24 5 10 5 20-2 26z"/><ellipse class="p" cx="24" cy="24" rx="8" ry="6"/><circle class="b" cx="24" cy="24" r="2.500"/>`,
  },
  fish: {
    words: "fish eel herring cod trout salmon squid shark tuna bait",
    svg: `<path class="a" d="M4 38c8-14 26-18 40-6l14-9c-3 10-3 20 0 30l-14-9C30 56 12 52 4 38z"/><path class="b" d="M4 38c14 4 28 2 40-6l14 9v12l-14-9C30 56 12 52 4 38z"/><circle class="p" cx="16" cy="35" r="4"/><circle class="k" cx="16" cy="35" r="2"/><path class="K" d="M24 30c4 5 4 11 0 16" opacity=".5"/>`,
  },
  cheese: {
    words: "cheese butter wax",
    svg: `<path class="y" d="M4 40L46 14c8 4 12 12 12 22v4z"/><path class="Yf" d="M4 40h54v20H4z"/><circle class="b" cx="16" cy="50" r="4"/><circle class="b" cx="34" cy="47" r="3"/><circle class="b" cx="46" cy="53" r="4"/><circle class="b" cx="42" cy="29" r="4"/>`,
  },
  egg: {
    hue: 38,
    words: "egg pearl ball stone orb globe marble pebble bead eye",
    svg: `<path class="a" d="M32 10c12 0 20 17 20 30s-8 20-20 20-20-7-20-20 8-30 20-30z"/><path class="b" d="M42 15c6 6 10 16 10 25 0 13-8 20-20 20 14-8 18-26 10-45z"/><ellipse class="g" cx="25" cy="27" rx="5" ry="8"/>`,
  },
  herb: {
    hue: 12,
    words: "herb leaf flower plant root moss tea seed grass rose bouquet kelp mushroom saffron spice spices pepper",
    svg: `<path class="L" d="M32 58C30 40 32 26 34 10" fill="none"/><path class="l" d="M33 36C16 36 9 26 8 14c14 0 24 8 25 22zM34 28C36 14 46 8 57 8c0 12-9 20-23 20zM32 52c-12 2-20-4-23-12 10-3 20 0 23 12zM33 46c4-10 12-14 21-13-1 10-10 15-21 13z"/><path class="a" d="M22 54h20l-3 6H25z"/>`,
  },
  sack: {
    hue: 36,
    words: "sack purse pouch powder flour grain rice salt sugar sand bean dust salts satchel",
    svg: `<path class="a" d="M23 18c-12 10-17 22-15 34 1 6 5 8 9 8h30c4 0 8-2 9-8 2-12-3-24-15-34z"/><path class="b" d="M41 18c12 10 17 22 15 34-1 6-5 8-9 8H34c12-8 14-28 7-42z"/><path class="a" d="M20 5c7 4 17 4 24 0l-4 13H24z"/><path class="Y" d="M23 19h18" stroke-width="4"/>`,
  },
  backpack: {
    words: "backpack rucksack pack bag saddlebag saddle knapsack haversack basket case kit medkit",
    svg: `<path class="W" d="M22 14c0-12 20-12 20 0" stroke-width="4"/><rect class="a" x="12" y="12" width="40" height="48" rx="10"/><path class="b" d="M12 24c0-8 5-12 10-12h20c6 0 10 4 10 12v8c-12 6-28 6-40 0z"/><rect class="w" x="18" y="42" width="28" height="14" rx="4"/><rect class="y" x="29" y="30" width="6" height="10" rx="1"/><rect class="v" x="5" y="34" width="8" height="20" rx="4"/><rect class="v" x="51" y="34" width="8" height="20" rx="4"/>`,
  },
  bedroll: {
    words: "bedroll blanket rug carpet cloth tent mat quilt towel silk bandage fabric wool linen hammock felt",
    svg: `<path class="a" d="M20 20h34c6 0 6 40 0 40H20z"/><path class="b" d="M20 50h37c-1 6-2 10-3 10H20z"/><circle class="b" cx="20" cy="40" r="19"/><circle class="p" cx="20" cy="40" r="14"/><circle class="b" cx="20" cy="40" r="10"/><circle class="p" cx="20" cy="40" r="6"/><path class="Y" d="M36 20v40M48 20v40" stroke-width="4"/>`,
  },
  scroll: {
    words: "scroll letter contract ticket pass manual recipe deed permit lesson paper note poster card deck stamp tape",
    svg: `<path class="p" d="M14 10h36v42H14z"/><path class="q" d="M10 6h44c4 0 4 9 0 9H10c-4 0-4-9 0-9zM10 50h44c4 0 4 10 0 10H10c-4 0-4-10 0-10z"/><path class="K" d="M20 23h24M20 30h24M20 37h15" opacity=".55"/><circle class="a" cx="42" cy="43" r="6"/>`,
  },
  book: {
    words: "book tome grimoire diary journal almanac bible ledger novel notebook",
    svg: `<path class="b" d="M12 8h38c3 0 4 2 4 4v44H18c-4 0-8-2-8-6V12z"/><path class="p" d="M16 48h36v8H18c-6 0-6-8-2-8z"/><path class="a" d="M12 8h38c2 0 3 1 3 3v35H16c-3 0-5 1-6 3V12c0-2 1-4 2-4z"/><path class="Y" d="M22 18h20M26 25h12"/>`,
  },
  gem: {
    words: "gem crystal ruby diamond emerald sapphire jewel opal shard amber quartz prism",
    svg: `<path class="a" d="M18 14h28l14 16-28 30L4 30z"/><path class="b" d="M46 14l14 16-28 30 12-30z"/><path class="g" d="M18 14h14L20 30H4z"/><path class="K" d="M4 30h56M20 30l12 30 12-30-12-16z" opacity=".25"/>`,
  },
  ring: {
    words: "ring band earring bracelet wheel gear",
    svg: `<circle class="Y" cx="32" cy="41" r="17" stroke-width="6"/><path class="a" d="M22 6h20l7 8-17 16L15 14z"/><path class="g" d="M22 6h10l-6 8H15z"/><path class="b" d="M42 6l7 8-17 16 6-16z"/>`,
  },
  amulet: {
    words: "amulet necklace pendant charm talisman brooch medal locket idol token rattle chain trinket relic",
    svg: `<path class="Y" d="M10 6c0 24 12 32 22 34M54 6c0 24-12 32-22 34" stroke-dasharray="4 3"/><circle class="y" cx="32" cy="46" r="14"/><circle class="a" cx="32" cy="46" r="9"/><ellipse class="g" cx="29" cy="42" rx="3" ry="4"/>`,
  },
  key: {
    words: "key lock padlock lockpick",
    svg: `<circle class="Y" cx="20" cy="20" r="12" stroke-width="7"/><path class="Y" d="M29 29l26 26M44 44l7-7M51 51l6-6" stroke-width="6"/>`,
  },
  wand: {
    words: "wand staff rod stick cane pole lance spear torpedo baton crook broom",
    svg: `<path class="w" d="M40 18l6 6-34 36-6-6z"/><path class="f" d="M48 2l4 10 10 4-10 4-4 10-4-10-10-4 10-4z"/><circle class="a" cx="48" cy="16" r="5"/><circle class="f" cx="24" cy="10" r="2"/><circle class="f" cx="58" cy="38" r="2"/>`,
  },
  hammer: {
    words: "hammer mace mallet maul club bat gavel",
    svg: `<path class="w" d="M34 24l7 6-26 32-8-7z"/><path class="m" d="M24 6l34 28-9 11L15 17z"/><path class="n" d="M58 34l-9 11-34-28 4-5z"/>`,
  },
  tool: {
    words: "tool wrench spanner pliers bar crowbar saw chisel file screwdriver clamp steel flint lever gadget engine pump drone torch",
    svg: `<path class="m" d="M44 6c-8 2-11 9-9 16L10 47c-4 4 3 12 8 8l24-26c8 2 15-3 16-11l-8 4-8-6z"/><path class="n" d="M58 18c-1 8-8 13-16 11L18 55c-2 2-6 1-8-2l26-28c6 2 14 0 14-3z"/><circle class="k" cx="15" cy="52" r="2.500"/>`,
  },
  trap: {
    words: "trap net hook anchor snare cage grapple reel",
    svg: `<path class="n" d="M6 44c0-34 52-34 52 0l-5 5-4-8-5 6-4-9-4 8-4-9-4 9-4-8-4 9-5-6-4 8z"/><path class="m" d="M4 52h56v8H4z"/><circle class="a" cx="32" cy="54" r="6"/>`,
  },
  bomb: {
    words: "bomb grenade mine explosive firework dynamite cannon rocket shell",
    svg: `<circle class="k" cx="29" cy="40" r="20"/><path class="n" d="M34 14l12 8-5 8-12-8z"/><path class="u" d="M41 17c4-9 10-9 14-5"/><path class="f" d="M56 2l2 6 6 2-6 2-2 6-3-6-5-2 5-2z"/><ellipse class="g" cx="22" cy="33" rx="5" ry="7"/>`,
  },
  gun: {
    words: "gun pistol rifle blaster revolver musket carbine shotgun laser flamer taser",
    svg: `<path class="n" d="M4 18h54v11H34l-3 6H20z"/><path class="m" d="M4 18h54v5H4z"/><path class="w" d="M8 27h14l-3 29c0 3-14 3-14 0z"/><path class="Y" d="M22 38c9 2 10-4 9-8"/>`,
  },
  instrument: {
    words: "drum flute fiddle lute harp guitar violin song music",
    svg: `<path class="w" d="M8 46c-6-14 10-16 14-20l8 8c4 4-2 10 2 14 2 12-18 14-24-2z"/><path class="v" d="M24 26L52 4l6 6-24 28z"/><circle class="k" cx="21" cy="44" r="5"/><path class="P" d="M14 52L54 8" stroke-width="1.500"/>`,
  },
  bell: {
    words: "bell whistle horn alarm gong trumpet bugle",
    svg: `<path class="y" d="M32 8c14 0 17 14 17 26 0 8 5 10 7 16H8c2-6 7-8 7-16C15 22 18 8 32 8z"/><path class="Yf" d="M38 9c9 4 11 14 11 25 0 8 5 10 7 16H38c4-12 4-28 0-41z"/><circle class="n" cx="32" cy="54" r="6"/><circle class="Y" cx="32" cy="7" r="4"/>`,
  },
  mirror: {
    words: "mirror glass lens telescope spyglass spectacles window binoculars picture painting portrait",
    svg: `<ellipse class="y" cx="32" cy="26" rx="21" ry="24"/><ellipse class="g2" cx="32" cy="26" rx="16" ry="19"/><path class="P" d="M22 30L36 12M28 36l14-18" opacity=".8"/><path class="y" d="M28 48h8l3 12H25z"/>`,
  },
  animal: {
    hue: 28,
    words: "camel horse goat dog cat mule donkey pony sheep cow griffin bird hawk owl parrot hen rat dragon pet",
    svg: `<path class="a" d="M8 58V38c0-8 6-12 12-12h16c4 0 4-12 10-16l2-5 4 5c6 2 8 6 8 10l-7 3c-3 4-3 10-5 14v21h-8V44H20v14z"/><path class="b" d="M20 44h20v6H20zM8 38c-4 2-5 8-4 14"/><circle class="k" cx="51" cy="14" r="2"/>`,
  },
  toy: {
    words: "toy kite doll puppet game dice puzzle balloon",
    svg: `<path class="a" d="M32 4l20 20-20 24-20-24z"/><path class="b" d="M32 4l20 20H32zM12 24h20v24z"/><path class="Y" d="M32 48c-6 4 6 6 0 12"/>`,
  },
  tablet: {
    words: "tablet pill balm salve ointment cream cartridge capsule glue epoxy paint stim patch gum",
    svg: `<path class="p" d="M14 28h36v28c0 3-2 4-4 4H18c-2 0-4-1-4-4z"/><path class="q" d="M40 28h10v28c0 3-2 4-4 4h-6z"/><rect class="a" x="10" y="16" width="44" height="13" rx="3"/><path class="A" d="M32 36v16M24 44h16" stroke-width="5"/>`,
  },
  furniture: {
    words: "chair table stool seat ladder bench door board shelf bed",
    svg: `<path class="w" d="M16 4h6v56h-6zM42 30h6v30h-6z"/><path class="v" d="M16 30h32v8H16z"/><path class="w" d="M16 8h22v6H16zM16 18h22v6H16z"/>`,
  },
  vessel: {
    hue: 8,
    words: "boat ship pod raft canoe vehicle cart wagon sledge submarine",
    svg: `<path class="w" d="M4 44h56l-8 16H12z"/><path class="v" d="M4 44h56l-3 6H7z"/><path class="u" d="M30 44V6"/><path class="a" d="M33 8c14 6 20 18 20 32H33z"/><path class="p" d="M27 14v26H10c3-12 9-20 17-26z"/>`,
  },
  chest: {
    words: "chest box crate bundle set parcel package coffer jar",
    svg: `<path class="w" d="M6 30c0-14 6-20 14-20h24c8 0 14 6 14 20z"/><path class="v" d="M6 30h52v30H6z"/><path class="Y" d="M6 30h52M16 11v48M48 11v48" stroke-width="3.500"/><rect class="y" x="26" y="26" width="12" height="14" rx="2"/><circle class="k" cx="32" cy="32" r="2.500"/>`,
  },
};

// Words that hold something else: what they hold is drawn, where a drawing of it is known.
export const CONTAINERS = new Set(
  "bag bar bolt bottle box brick bundle can case crate deck flask jar keg kit pack pair piece roll sack set tin tub".split(" "),
);
export const FALLBACK = "chest";
