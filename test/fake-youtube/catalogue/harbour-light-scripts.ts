import { coloured, italic, type Line } from './speech.js';

export const KEEPER_DE: readonly string[] = [
  'Der letzte Wärter unseres Leuchtturms hat ein einziges Buch hinterlassen.',
  'Einunddreißig Jahre lang schrieb er jede Nacht eine Zeile.',
  '„Wind Südwest. Lampe bei Dämmerung entzündet. Alles wohl.“',
  'In der Nacht des großen Sturms ist die Zeile nicht länger.',
  '„Wind Südwest. Lampe entzündet. Alles wohl, außer dem Dach.“',
  'Am ersten März kam er herunter, als die Lampe elektrisch wurde.',
  'Seine letzte Zeile: „Lampe brennt von selbst. Nach Hause gegangen.“',
];

export const KEEPER_FR: readonly string[] = [
  'Le dernier gardien de notre phare n’a laissé qu’un seul livre.',
  'Chaque nuit, pendant trente et un ans, il a écrit une ligne.',
  '« Vent de sud-ouest. Feu allumé au crépuscule. Tout va bien. »',
  'La nuit de la grande tempête, la ligne n’est pas plus longue.',
  '« Vent de sud-ouest. Feu allumé. Tout va bien, sauf le toit. »',
  'Il est descendu le premier mars, quand la lampe devint électrique.',
  'Sa dernière ligne : « Le feu s’allume seul. Rentré à pied. »',
];

export const KEEPER_ES: readonly string[] = [
  'El último farero de nuestro faro dejó un solo libro.',
  'Cada noche, durante treinta y un años, escribió una línea.',
  '«Viento del suroeste. Luz encendida al anochecer. Todo bien.»',
  'La noche de la gran tormenta la línea no es más larga.',
  '«Viento del suroeste. Luz encendida. Todo bien, menos el tejado.»',
  'Bajó el primero de marzo, cuando la lámpara se hizo eléctrica.',
  'Su última línea: «La luz se enciende sola. A casa, andando.»',
];

export const PEARL_AR: readonly string[] = [
  'أهلاً بكم في ميناء المنارة الصغير.',
  'ضيفنا اليوم هو سالم، صانع القوارب من الخليج.',
  'جدّه كان يغوص بحثاً عن اللؤلؤ بحبلٍ وحجر.',
  'يقول: الخشب مثل البحر، اسمعه قبل أن تلمسه.',
  'هذا القارب اسمه "Marigold" وعمره 64 سنة.',
  'نخيط الألواح بليف جوز الهند، بلا مسمار واحد.',
  'وفي المساء نشرب الشاي وننتظر المدّ.',
];

export const ROPE_HE: readonly string[] = [
  'שלום לכולם מבית המלאכה שליד המגדלור.',
  'היום אנחנו עושים חבל, בדיוק כמו לפני מאה שנה.',
  'שלושה גדילים, יד אחת מסובבת ויד אחת מחזיקה.',
  'אם תמהרו, החבל יזכור את זה.',
  'אורך החבל: 12 מטר, ומחירו כוס קפה אחת.',
  'עכשיו קושרים, מושכים, ושומעים אותו "שר".',
];

export const FOG_JA: readonly string[] = [
  '港の灯台へようこそ。',
  '今日は霧笛のしくみを見てみましょう。',
  '空気をためるタンクは三つあります。',
  '弁が開くと、低い音が五キロ先まで届きます。',
  '「霧の日は、音で海を見る」と灯台守は言いました。',
  'それでは、耳をふさいでください。',
  '…いい音でしたね。',
];

export const NETS_ZH_HANS: readonly string[] = [
  '欢迎来到灯塔下的小港口。',
  '今天我们学习怎样补渔网。',
  '先把破的地方剪成整齐的方格。',
  '梭子从左边穿进去，从右边出来。',
  '每个结都要一样紧，不然鱼会笑话你。',
  '老渔民说：“网补得好，心就静。”',
];

export const NETS_ZH_HANT: readonly string[] = [
  '歡迎來到燈塔下的小港口。',
  '今天我們學習怎樣補漁網。',
  '先把破的地方剪成整齊的方格。',
  '梭子從左邊穿進去，從右邊出來。',
  '每個結都要一樣緊，不然魚會笑話你。',
  '老漁民說：「網補得好，心就靜。」',
];

export const VISIT_DE: readonly string[] = [
  'Heute sind wir zu Besuch in einer Werft an der Flensburger Förde.',
  'Hier bauen sie seit vier Generationen Ruderboote aus Eiche und Lärche.',
  'Der Meister sagt, ein Boot müsse zuerst am Steg gut aussehen.',
  'Schwimmen lerne es dann von allein.',
  'Wir haben gefragt, was das Geheimnis der dichten Naht ist.',
  'Er hat gelacht und auf die Kaffeekanne gezeigt.',
];

export const TIMBER_PT: readonly string[] = [
  'Bom dia, viemos a uma serração no norte de Portugal.',
  'Aqui escolhem a madeira pelo som, não pela cor.',
  'Batem com o nó dos dedos e ficam à escuta.',
  'Se cantar, vai para um barco. Se calar, vai para o forno.',
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
