import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { REPORTED_BUDGETS as budgets } from '../../../dist-tools/test/fake-youtube/budgets.js';
import { BENCH } from '../processes.mjs';
import { goal } from '../figures.mjs';
import { allowedVideos, perHourOf } from '../survival/day.mjs';

/** Hours of one egress. The loop sends dozens of requests for a video. */
const HOURS = { service: 24, loop: 2 };
/** For a gateway nothing is learned. */
const HOURS_OF_GATEWAY = 3;
const READERS = { service: 'the service', loop: 'a retry loop' };
const EGRESSES = [1, 4, 16];
const DEMANDS = [0.5, 1, 2];
const BAD_SHARES = [0, 0.3, 0.6];
const DEMAND_NAMES = { 0.5: 'half', 1: 'once', 2: 'twice' };
const GATEWAY = 'http://operator-session-{session}:secret@gateway:80';
const AT_ONCE = 2;
/** That share the addresses and nothing else. */
const REPLICAS = 3;

/** One day under the budgets that are reported of the platform, in simulated time, beside a plain retry loop. */
export async function survival(bench) {
  const scenarios = scenariosOf(bench.quick);
  const days = new Array(scenarios.length);
  const next = scenarios.entries();
  const work = async () => {
    for (const [index, scenario] of next) {
      const allowed = allowedVideos({ ...scenario, budgets });
      days[index] = { ...scenario, ...(await simulate(scenario)), allowed };
      bench.say(`survival: ${nameOf(scenario)}: ${(100 * shareOf(days[index])).toFixed(1)} % of the allowed videos`);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return report(days);
}

function scenariosOf(quick) {
  const egresses = quick ? [1] : EGRESSES;
  const badShares = quick ? [0.3] : BAD_SHARES;
  const demands = quick ? [1] : DEMANDS;
  const networks = [
    ...egresses.map((count) => ({ egresses: count, badShare: 0 })),
    ...egresses.map((count) => ({ egresses: count, badShare: 0, replicas: REPLICAS })),
    ...badShares.map((badShare) => ({ egresses: 1, gateway: GATEWAY, badShare })),
  ];
  return networks.flatMap((network) =>
    demands.flatMap((demand) =>
      (network.replicas ? ['service'] : Object.keys(READERS)).map((reader) => {
        const hours = quick ? 2 : hoursOf(network, reader);
        return { ...network, demand, reader, hours, perHour: perHourOf({ ...network, demand, budgets }) };
      }),
    ),
  );
}

function hoursOf({ gateway }, reader) {
  return Math.min(HOURS[reader], gateway ? HOURS_OF_GATEWAY : HOURS.service);
}

/** Runs one day in a process of its own, whose clocks are replaced. */
async function simulate(scenario) {
  const child = spawn(process.execPath, [join(BENCH, 'survival/run-day.mjs'), JSON.stringify(scenario)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const chunks = [];
  child.stdout.on('data', (chunk) => chunks.push(chunk));
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`The simulation of ${nameOf(scenario)} failed`);
  return JSON.parse(Buffer.concat(chunks).toString());
}

function networkOf({ egresses, gateway, badShare, replicas }) {
  if (gateway) return `gateway, ${badShare * 100} % bad`;
  return `${egresses} egress${egresses === 1 ? '' : 'es'}${replicas ? `, ${replicas} replicas` : ''}`;
}

function nameOf(scenario) {
  return `${READERS[scenario.reader]}, ${networkOf(scenario)}, ${DEMAND_NAMES[scenario.demand]}`;
}

/** Videos that were served within the day, of those that demand and budgets allow. */
function shareOf({ served, allowed }) {
  return served / allowed;
}

function refusedOf({ refused, player, timedtext }) {
  return refused / Math.max(1, player + timedtext);
}

function row(day) {
  return [
    networkOf(day),
    DEMAND_NAMES[day.demand],
    READERS[day.reader],
    day.hours,
    `${(100 * shareOf(day)).toFixed(1)} %`,
    `${((100 * day.servedAtFirst) / day.asked).toFixed(1)} %`,
    `${(100 * refusedOf(day)).toFixed(1)} %`,
    day.wrong,
  ];
}

function report(days) {
  const services = days.filter(({ reader }) => reader === 'service');
  const plain = services.filter((day) => !day.gateway);
  const loaded = plain.filter(({ demand }) => demand >= 1);
  const worst = (of, list, choose) => choose(...list.map(of));
  const gatewayGoals = (badShare, atLeast) => {
    const of = services.filter((day) => day.gateway && day.badShare === badShare);
    if (of.length === 0) return [];
    const name = `gateway with ${badShare * 100} % bad addresses: videos`;
    const atFirst = worst(({ servedAtFirst, asked }) => servedAtFirst / asked, of, Math.min);
    return [
      goal(name, worst(shareOf, of, Math.min), { atLeast }),
      goal(`${name} at the first call`, atFirst, { atLeast }),
    ];
  };
  return {
    title: 'Survival: a day under budgets',
    tables: [
      {
        title: 'Videos and requests',
        columns: [
          'egresses',
          'demand',
          '',
          'hours',
          'served of allowed',
          'at the first call',
          'requests refused',
          'wrong codes',
        ],
        rows: days.map(row),
      },
    ],
    goals: [
      goal('videos served of those allowed, at demand once and twice, the worst', worst(shareOf, loaded, Math.min), {
        atLeast: 0.95,
      }),
      goal('share of requests refused, the worst', worst(refusedOf, plain, Math.max), { atMost: 0.05 }),
      ...gatewayGoals(0.3, 0.99),
      ...gatewayGoals(0.6, 0.95),
      goal(
        'wrong codes',
        worst(({ wrong }) => wrong, services, Math.max),
        { atMost: 0 },
      ),
    ],
  };
}
