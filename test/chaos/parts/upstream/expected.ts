import { HARBOUR_LIGHT } from '../../../fake-youtube/catalogue/harbour-light.js';
import type { FaultKind } from '../../../fake-youtube/faults/fault-registry.js';
import type { HttpResponse } from '../../../harness/http-request.js';
import { brokenIdentities, codeOf, readTranscripts, type ReadTranscripts } from '../../harness/transcripts.js';
import { REPORTED_AS } from '../../../youtube/reported-codes.js';
import type { Cell } from './cells.js';

const STATUS: Readonly<Record<string, number>> = {
  upstream_blocked: 502,
  upstream_failure: 502,
  upstream_timeout: 504,
};
/** Faults that delay the response, so that a request or the call may time out. */
const SLOW: ReadonlySet<FaultKind> = new Set(['hang', 'slow-drip', 'huge', '429-retry-after']);
/** The requests that the preparation of a call needs; the others are optional or belong to a single entry. */
const ESSENTIAL: ReadonlySet<string> = new Set(['resolve', 'channel', 'uploads']);
const OF_VIDEOS: ReadonlySet<string> = new Set(['player', 'captions']);

const WITH_TOKEN = new Set(
  HARBOUR_LIGHT.uploads().flatMap(({ id, tracks }) => (tracks.some(({ tokenNeed }) => tokenNeed) ? [id] : [])),
);

/** Compares the result of a call with the results allowed under a cell's faults. */
export interface Checked {
  reported: ReadTranscripts | undefined;
  /** One line per violation. */
  wrong: string[];
  /** Entries and calls that timed out although no fault delays responses; one line per timeout. */
  late: string[];
}

/**
 * @param truth the result of each video without faults
 */
export function check(cell: Cell, response: HttpResponse, truth: ReadonlyMap<string, string>): Checked {
  if (response.status !== 200) return checkRefusal(cell, response);
  const reported = readTranscripts(response);
  if (!reported) return { reported, wrong: ['200 with a body that is not whole'], late: [] };
  const must = mustFail(cell, OF_VIDEOS);
  const slow = cell.some(({ kind }) => SLOW.has(kind));
  const wrong = brokenIdentities(reported);
  const late: string[] = [];
  if (mustFail(cell, ESSENTIAL)) wrong.push('200 although the channel cannot be read');
  for (const { videoId, end } of reported.entries) {
    const right = truth.get(videoId) ?? 'ok';
    const codes = codesOf(cell, OF_VIDEOS);
    if (end === right && !(must && right === 'ok')) continue;
    if (codes.has(end) || (codes.size > 0 && end === 'upstream_blocked' && WITH_TOKEN.has(videoId))) continue;
    if (end !== 'upstream_timeout') wrong.push(`${videoId} is reported as ${end} and is ${right}`);
    else if (!slow) late.push(`${videoId} is ${end}`);
  }
  return { reported, wrong, late };
}

function checkRefusal(cell: Cell, response: HttpResponse): Checked {
  const code = codeOf(response);
  const codes = codesOf(cell, ESSENTIAL);
  const slow = cell.some(({ kind }) => SLOW.has(kind));
  const wrong = response.status === STATUS[code] ? [] : [`${response.status} with ${code}`];
  if (!codes.has(code) && code !== 'upstream_timeout') wrong.push(`refused with ${response.status} ${code}`);
  return { reported: undefined, wrong, late: !codes.has(code) && !slow ? [`the call is ${code}`] : [] };
}

function codesOf(cell: Cell, requests: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(cell.flatMap(({ kind, request }) => (requests.has(request) ? [REPORTED_AS[kind]] : [])));
}

/** Whether all requests of one of these kinds fail. A bot check whose visitor data is adopted does not. */
function mustFail(cell: Cell, requests: ReadonlySet<string>): boolean {
  return cell.some(({ kind, request, rate }) => kind !== 'bot-check-renewed' && rate === 1 && requests.has(request));
}
