import type { Line } from './speech.js';
import { coloured, italic } from './speech.js';

export const DINGHY: readonly string[] = [
  'Good morning from the slip below the lighthouse.',
  'This is the Marigold, a dinghy built here in 1962.',
  'She has spent the last eleven winters under a tarpaulin,',
  'and the tarpaulin, I am afraid, gave up before she did.',
  'The first job is to find out what is still wood.',
  'You tap along the planks with the handle of a screwdriver.',
  'A bright knock is sound timber. A dull one is a Saturday gone.',
  'The garboard on this side is finished, so it comes out whole.',
  'We keep the old plank, because the old plank is the pattern.',
  'New larch, two summers dry, from the mill up the valley.',
  'It goes into the steam box for an hour, one hour for each inch.',
  'Then you have perhaps forty seconds before it stops listening.',
  'Clamp at the stem first, and walk the bend towards the stern.',
  'Do not hurry it. Wood that is pushed remembers.',
  'Copper nails, roves on the inside, and a friend with a hammer.',
  'By the evening tide she had her shape back.',
  'Next week: the keel bolts, which nobody has seen since 1962.',
];

export const BOWLINE: readonly string[] = [
  'Make a small loop, that is the well.',
  'The end comes up out of the well,',
  'round behind the mast,',
  'and back down the way it came.',
  'Pull, and it holds a boat all night.',
];

export const SHARPENING: readonly string[] = [
  'today we sharpen every chisel in the shop with nothing but sandpaper and glass',
  'the glass is an offcut from the boathouse window so it cost us nothing',
  'three sheets, one hundred and twenty, four hundred and one thousand',
  'a little water holds the paper flat, you do not need glue',
  'flatten the back first because a chisel is two surfaces that meet',
  'you are done when the scratches run all one way',
  'now the bevel, find it by rocking until it sits',
  'lock your wrists and move from the hips like you are polishing a table',
  'feel for the burr along the whole edge, all of it or none of it',
  'then the next paper, and half the pressure',
  'strop it on the back of an old belt, twenty times',
  'and try it on end grain, pine is the honest test',
  'if it crumbles you go back, if it shines you put the kettle on',
];

export const KEEPER_EN: readonly string[] = [
  'The last keeper of our lighthouse left one book behind.',
  'Every night for thirty-one years he wrote a single line.',
  '"Wind south-west. Lamp lit at dusk. All well."',
  'On the night of the great storm the line is no longer.',
  '"Wind south-west. Lamp lit at dusk. All well, except the roof."',
  'He came down on the first of March, when the lamp went electric.',
  'His last line says: "Lamp lit by itself. Walked home."',
];

/** Captions with entities, markup, emoji, an empty line, and text that looks like code. */
export const SIGNS: readonly Line[] = [
  'Salt & vinegar, nuts & bolts, rope & tar: today we paint signs.',
  [italic('(gulls crying)')],
  ['The rule is ', italic('thick down'), ', ', italic('thin up'), '.'],
  'If width < height, the letter leans; if width > height, it sleeps.',
  [coloured('NINA:', '#FFFF00'), ' Is that "sea-green" or \'sea\' green?'],
  [coloured('OWEN:', '#00FFFF'), ' It’s the colour of the tin: 50% sea, 50% green.'],
  '',
  'We write <b>FRESH CRAB</b> on the board, brackets and all.',
  'The customer wanted &amp; in the name. Not "&", but "&amp;".',
  'Five stars from the cat. ⭐⭐⭐⭐⭐ 🐈‍⬛',
  'The flag goes up when the kettle is on. 🏴‍☠️☕',
  '♪ Haul away the bowline, the bowline haul ♪',
  'Two lines on one sign:\nMIND THE STEP\nMIND THE DOG',
  'Price per metre: £3.50 — or 4 €, or a good story…',
];

export const PLANKS: readonly string[] = [
  'A boat is mostly holes that somebody has closed.',
  'So this is a film about closing them.',
  'Cotton first, rolled in the palm until it is the width of the seam.',
  'Tap it in with the iron. You are tucking in a child, not driving a fence post.',
  'Then putty, red lead in the old days, linseed and chalk today.',
  'Smooth it proud of the plank, because the wood will swell.',
  'When she goes in, she will leak for two days.',
  'Do not pump in a panic. She is drinking.',
  'On the third day the bilge is dry, and so are your boots.',
];

export const HARBOUR_WALK: readonly string[] = [
  'If you come by bus, get out at the chapel and walk towards the smell of tar.',
  'On the left is the rope walk, four hundred feet long and one person wide.',
  'They still make net twine there on Thursdays.',
  'Past the ice house you come to our door, which is blue, mostly.',
  'Ring the bell. It came off a trawler and it is louder than you think.',
  'Upstairs is the sail loft, and in the corner the cat, who is in charge.',
  'From the window you see the light, two flashes every ten seconds.',
  'Count to ten. There. And there.',
];

export const PREMIERE: readonly string[] = [
  'We said that we would sail her round the island by the end of October.',
  'It is the thirtieth, there are white horses past the point, and here we are.',
  'First reef in before we leave, because reefing later is a sort of bravado.',
  'The new garboard is dry. The old skipper is not.',
  'Seven miles to the north stack, with the tide under us.',
  'There is a seal who thinks that the rudder is a toy.',
  'You look for the house with two chimneys, and keep them in line.',
  'That is the whole of our navigation, and it has worked since 1962.',
  'Home at dusk. Lamp lit. All well.',
];

export const GLUE: readonly string[] = [
  'Four glues, four joints, one bucket of sea water, ninety days.',
  'The hide glue let go on the second night, which surprised nobody.',
  'The white glue went soft like a biscuit in tea.',
  'The resin held, and the wood beside it broke first.',
  'But look at the fourth one, the casein, made from milk by my grandmother’s recipe.',
  'It held for eighty-one days. Eighty-one!',
  'So if your boat only sails in summer, buy a cow.',
];

export const OARS: readonly string[] = [
  'An oar is a spoon, a spring and a lever, and you carve it in that order.',
  'Spruce for the loom, a strip of ash along the back.',
  'Draw the centre line and never lose it, not even when the shavings are lovely.',
  'Eight sides, then sixteen, then you stop counting and use your hands.',
  'The leather goes on wet, stitched with a herringbone.',
  'Row a mile before you varnish. The blisters tell you where to sand.',
];
