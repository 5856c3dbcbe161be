import { coloured, italic, type Line } from './speech.js';

export const KEEPER_DE: readonly string[] = [
  'Der letzte Wärter unseres Leuchtturms hat ein einziges Buch hinterlassen.',
  'Einunddreißig Jahre lang schrieb er jede Nacht eine Zeile.',
  '„Wind Südwest. Lampe bei Dämmerung entzündet. Alles wohl.“',
  'In der Nacht des großen Sturms ist die Zeile nicht länger.',
];

export const KEEPER_FR: readonly string[] = [
  'Le dernier gardien de notre phare n’a laissé qu’un seul livre.',
  'Chaque nuit, pendant trente et un ans, il a écrit une ligne.',
  '« Vent de sud-ouest. Feu allumé au crépuscule. Tout va bien. »',
];

export const KEEPER_ES: readonly string[] = [
  'El último farero de nuestro faro dejó un solo libro.',
  'Cada noche, durante treinta y un años, escribió una línea.',
  '«Viento del suroeste. Luz encendida al anochecer. Todo bien.»',
];

export const PEARL_AR: readonly string[] = [
  'أهلاً بكم في ميناء المنارة الصغير.',
  'ضيفنا اليوم هو سالم، صانع القوارب من الخليج.',
  'جدّه كان يغوص بحثاً عن اللؤلؤ بحبلٍ وحجر.',
  'يقول: الخشب مثل البحر، اسمعه قبل أن تلمسه.',
  'هذا القارب اسمه "Marigold" وعمره 64 سنة.',
];

export const ROPE_HE: readonly string[] = [
  'שלום לכולם מבית המלאכה שליד המגדלור.',
  'היום אנחנו עושים חבל, בדיוק כמו לפני מאה שנה.',
  'שלושה גדילים, יד אחת מסובבת ויד אחת מחזיקה.',
  'אם תמהרו, החבל יזכור את זה.',
  'אורך החבל: 12 מטר, ומחירו כוס קפה אחת.',
];

export const FOG_JA: readonly string[] = [
  '港の灯台へようこそ。',
  '今日は霧笛のしくみを見てみましょう。',
  '空気をためるタンクは三つあります。',
  '弁が開くと、低い音が五キロ先まで届きます。',
  '「霧の日は、音で海を見る」と灯台守は言いました。',
];

export const NETS_ZH_HANS: readonly string[] = [
  '欢迎来到灯塔下的小港口。',
  '今天我们学习怎样补渔网。',
  '先把破的地方剪成整齐的方格。',
];

export const NETS_ZH_HANT: readonly string[] = [
  '歡迎來到燈塔下的小港口。',
  '今天我們學習怎樣補漁網。',
  '先把破的地方剪成整齊的方格。',
];

export const VISIT_DE: readonly string[] = [
  'Heute sind wir zu Besuch in einer Werft an der Flensburger Förde.',
  'Hier bauen sie seit vier Generationen Ruderboote aus Eiche und Lärche.',
  'Der Meister sagt, ein Boot müsse zuerst am Steg gut aussehen.',
];

export const TIMBER_PT: readonly string[] = [
  'Bom dia, viemos a uma serração no norte de Portugal.',
  'Aqui escolhem a madeira pelo som, não pela cor.',
];

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
];

export const KEEPER_EN: readonly string[] = [
  'The last keeper of our lighthouse left one book behind.',
  'Every night for thirty-one years he wrote a single line.',
  '"Wind south-west. Lamp lit at dusk. All well."',
  'On the night of the great storm the line is no longer.',
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

export const PREMIERE: readonly string[] = [
  'We said that we would sail her round the island by the end of October.',
  'It is the thirtieth, there are white horses past the point, and here we are.',
  'First reef in before we leave, because reefing later is a sort of bravado.',
  'The new garboard is dry. The old skipper is not.',
  'Seven miles to the north stack, with the tide under us.',
];
