// Runs the curl lines that the demo printed and checks their responses.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';

const lines = readFileSync(process.argv[2], 'utf8').split('\n');
const run = (line) => execFileSync('bash', ['-c', line], { encoding: 'utf8', maxBuffer: 100_000_000 });

const curls = lines.map((line) => line.trim()).filter((line) => line.startsWith('curl '));
const [main] = curls;
assert(main, 'The demo printed no curl line.');
const first = JSON.parse(run(main)).summary;
const second = JSON.parse(run(main)).summary;
assert(first.fetched > 0 && first.failed > 0, `The first response: ${JSON.stringify(first)}`);
assert.deepEqual([second.cached, second.fetched], [first.fetched, 0], `The second response: ${JSON.stringify(second)}`);

for (const [index, line] of lines.entries()) {
  const status = /^\s*# (\d{3}),/.exec(line)?.[1];
  if (status) assert.equal(/^HTTP\/1.1 (\d{3})/.exec(run(lines[index + 1].trim()))?.[1], status, line);
}
const usage = lines.find((line) => line.includes(' usage org_'));
assert(usage, 'The demo printed no command for the usage.');
const [header, ...days] = run(usage.trim()).trim().split('\n');
const sum = days.reduce((total, day) => total + Number(day.split(',')[header.split(',').indexOf('charged')]), 0);
assert(sum >= first.fetched, `The usage of the Pro organization: ${header} ${days.join(' ')}`);
const [subscribe, publish, check, read] = lines.slice(
  lines.findIndex((line) => line.includes('# follow a channel')) + 1,
);
const subscribed = run(`${subscribe.trim()}; echo "$SUBSCRIPTION"`).trim();
const following = `SUBSCRIPTION=${subscribed}; `;
const [published] = JSON.parse(run(publish.trim())).videoIds;
assert(published, 'The fake YouTube published no video.');
run(following + check.trim());
const deadlineMs = Date.now() + 60_000;
while (!JSON.parse(run(following + read.trim())).results.some(({ videoId }) => videoId === published)) {
  assert(Date.now() < deadlineMs, `The feed has no entry of ${published}.`);
  await setTimeout(500);
}
const [by, search, answer] = lines.slice(lines.findIndex((line) => line.includes('# search what')));
const { title, url, text } = JSON.parse(run(search.trim())).results[0];
assert.deepEqual(JSON.parse(answer), { title, url, text });
const page = /http\S+\/library\/ui/.exec(by)?.[0];
assert.match(run(`curl -s ${page}`), /<title>Channel Transcripts: library/);
console.log(
  `${curls.length} curl lines, the export of the usage, the search and the commands of following did what they promise.`,
);
