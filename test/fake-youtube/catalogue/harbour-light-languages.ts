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
