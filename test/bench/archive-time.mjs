import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { BENCH, PROJECT } from './processes.mjs';

/*
 * How long an archive takes, computed from what the platform sustains and measured in simulated time: the service's own
 * adapter with its clocks replaced, against the fake YouTube with the budgets that are reported of the platform.
 * docs/jobs.md quotes it.
 */
const HELP = `Usage: npm run archive-time -- [options]

  --videos N       of the archive; default 10000
  --egresses LIST  numbers of egresses; default 1,4,16
  --player N       player requests a minute that the platform sustains for each egress; default: as reported
  --captions N     caption requests; default: as reported
  --ceilings       limit the service to these paces, so that it is never refused, instead of letting it learn them
  --quick          fewer scenarios
`;
/**
 * Player requests for a video of the archive: of a hundred, two are deleted, which two clients have to confirm, and two are
 * for members, which the list states.
 */
const PLAYERS_PER_VIDEO = 1;
/** 92 of a hundred have a text. */
const TEXTS_PER_VIDEO = 0.92;
/** A quarter of UPSTREAM_CONCURRENCY is for calls. */
const PLACES = 12;
const ROUND_TRIP_SECONDS = 0.15;
const CALL_MINUTES = 20;
/** A platform that refuses nothing. */
const UNLIMITED = { burst: 1e9, perMinute: 1e9, blockSeconds: 1 };

function readSettings(reported) {
  const { values } = parseArgs({
    options: {
      ...{ help: { type: 'boolean' }, quick: { type: 'boolean' }, ceilings: { type: 'boolean' } },
      ...{ videos: { type: 'string' }, egresses: { type: 'string' } },
      ...{ player: { type: 'string' }, captions: { type: 'string' } },
    },
  });
  const settings = {
    videos: Number(values.videos ?? 10_000),
    egresses: (values.egresses ?? '1,4,16').split(',').map(Number),
    player: Number(values.player ?? reported.player.perMinute),
    captions: Number(values.captions ?? reported.timedtext.perMinute),
  };
  const numbers = [settings.videos, settings.player, settings.captions, ...settings.egresses];
  if (values.help || !numbers.every((number) => number > 0) || settings.videos > 20_000) {
    process.stdout.write(HELP);
    process.exit(values.help ? 0 : 2);
  }
  return { ...settings, quick: values.quick ?? false, ceilings: values.ceilings ?? false };
}

/** Hours by the slower of the two paces, once they are known. */
function hoursAtPace({ videos, egresses, player, captions }) {
  const players = (videos * PLAYERS_PER_VIDEO) / (60 * egresses * player);
  const texts = (videos * TEXTS_PER_VIDEO) / (60 * egresses * captions);
  return Math.max(players, texts);
}

/** Hours when nothing is refused: two round trips a video in the places that jobs may use. */
function hoursUnlimited(videos) {
  return (videos * (PLAYERS_PER_VIDEO + TEXTS_PER_VIDEO) * ROUND_TRIP_SECONDS) / PLACES / 3_600;
}

async function simulate(scenario) {
  const child = spawn(process.execPath, [join(BENCH, 'survival/run-day.mjs'), JSON.stringify(scenario)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`The simulation of ${JSON.stringify(scenario)} failed`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function scenariosOf({ videos, egresses, player, captions, quick, ceilings }, reported) {
  const environment = ceilings ? { UPSTREAM_PLAYER_PER_MINUTE: player, UPSTREAM_TIMEDTEXT_PER_MINUTE: captions } : {};
  const budgets = {
    player: { ...reported.player, perMinute: player },
    timedtext: { ...reported.timedtext, perMinute: captions },
  };
  const common = { reader: 'service', badShare: 0, environment };
  const paced = egresses.map((count) => ({
    ...common,
    ...{ name: `${count} ${count === 1 ? 'egress' : 'egresses'}`, egresses: count, budgets, archive: { videos } },
    hours: hoursAtPace({ videos, egresses: count, player, captions }),
  }));
  if (quick) return paced;
  const [first] = paced;
  const withCalls = (name, background) => ({
    ...first,
    ...{ name: `${first.name}, ${name}`, archive: { videos, background, callMinutes: CALL_MINUTES } },
  });
  const free = { ...common, environment: {}, egresses: 1, budgets: { player: UNLIMITED, timedtext: UNLIMITED } };
  return [
    { ...free, name: 'nothing refused', archive: { videos }, hours: hoursUnlimited(videos) },
    ...paced,
    withCalls('and calls', true),
    withCalls('and calls, without their priority', false),
  ];
}

const { REPORTED_BUDGETS: reported } = await import(join(PROJECT, 'dist-tools/test/fake-youtube/budgets.js'));
const settings = readSettings(reported);
process.stdout.write(
  '| egresses | computed | measured | listing | requests | refused | videos of calls served at once |\n',
);
process.stdout.write('| --- | --- | --- | --- | --- | --- | --- |\n');
for (const { name, hours, ...scenario } of scenariosOf(settings, reported)) {
  const { listed, listedMs, readMs, calls, player, timedtext, refused, codes } = await simulate(scenario);
  if (listed !== settings.videos) throw new Error(`${listed} of ${settings.videos} uploads were listed`);
  const sent = player + timedtext;
  const cells = [
    ...[name, hoursText(hours), hoursText(readMs / 3_600_000), `${(listedMs / 1_000).toFixed(0)} s`, sent],
    `${((100 * refused) / sent).toFixed(1)} %`,
    calls === null ? '' : servedText(calls),
  ];
  process.stdout.write(`| ${cells.join(' | ')} |\n`);
  process.stderr.write(`${name}: ${JSON.stringify({ codes, calls })}\n`);
}

function hoursText(hours) {
  return hours < 1 ? `${(hours * 60).toFixed(1)} min` : `${hours.toFixed(1)} h`;
}

function servedText(ends) {
  const asked = Object.values(ends).reduce((sum, count) => sum + count, 0);
  return asked === 0 ? '' : `${((100 * (ends.ok ?? 0)) / asked).toFixed(0)} % of ${asked}`;
}
