import type { YoutubeClient } from '../../config/environment.js';
import {
  NO_DETAILS,
  type Segment,
  type VideoDetails,
  type VideoFailureCode,
  type VideoOutcome,
} from '../../domain/transcript.js';
import { type CaptionText, fetchCaption } from './caption-fetch.js';
import { conclude, type Evidence, evidenceOf, stepAfter } from './client-ladder.js';
import { type EventLog, report } from './event-log.js';
import type { Attempt } from './exit-rotation.js';
import type { InnertubeClient, Work } from './innertube-client.js';
import type { PartialResponses } from './partial-responses.js';
import { askPlayer } from './player-requests.js';
import type { PlayerReading } from './player-response.js';
import type { PlayerTrack } from './player-tracks.js';
import { chooseTracks } from './track-choice.js';
import { mergeDetails } from './video-details.js';

/** What is known so far in one pass over the clients. */
interface Pass {
  readonly videoId: string;
  readonly languages: readonly string[];
  readonly work: Work;
  readonly evidence: Evidence[];
  /** Texts by language code and kind of track: what one client gave need not be fetched from the next. */
  readonly texts: Map<string, readonly Segment[]>;
  details: VideoDetails;
  answered: boolean;
  retryAfterSeconds: number | null;
}

/** Reads one video through one exit: client after client, until one brings the text or says why there can be none. */
export class VideoReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly partial: PartialResponses,
    private readonly clients: readonly YoutubeClient[],
    private readonly log: EventLog,
  ) {}

  /** Rejects only when the work's signal is aborted. */
  async read(videoId: string, languages: readonly string[], work: Work): Promise<Attempt<VideoOutcome>> {
    const pass: Pass = {
      ...{ videoId, languages, work, evidence: [], texts: new Map(), details: NO_DETAILS },
      ...{ answered: false, retryAfterSeconds: null },
    };
    for (const client of this.clients) {
      if (pass.evidence.includes('exit-refused')) break;
      // Read afresh for each client: the deadline moves when a later caller joins.
      if (performance.now() >= work.context.deadlineAtMs) {
        pass.evidence.push('timeout');
        break;
      }
      const outcome = await this.tryClient(client, pass);
      if (outcome) return { result: outcome, finding: 'answered', retryAfterSeconds: null };
    }
    return this.conclude(pass);
  }

  private async tryClient(client: YoutubeClient, pass: Pass): Promise<VideoOutcome | null> {
    const answer = await askPlayer(this.innertube, this.partial, client, pass.videoId, pass.work);
    if (answer.kind === 'reading') return this.follow(client, answer.reading, pass);
    if (answer.kind === 'misread' || answer.kind === 'unreadable') this.reportUnreadable(client, pass, answer.expected);
    if (answer.kind === 'blocked') pass.retryAfterSeconds ??= answer.retryAfterSeconds;
    pass.evidence.push(answer.kind === 'misread' ? 'failure' : evidenceOf(answer));
    return null;
  }

  private async follow(client: YoutubeClient, reading: PlayerReading, pass: Pass): Promise<VideoOutcome | null> {
    if ('details' in reading) {
      pass.details = mergeDetails(pass.details, reading.details);
      pass.answered = true;
    }
    if (reading.kind === 'tracks') return this.readTracks(client, reading, pass);
    if (reading.kind === 'bot-check') this.innertube.renewVisitor(pass.work.exit, client);
    if (reading.kind === 'unknown-status') {
      const { status, reason } = reading;
      report(this.log, 'warn', 'youtube_unknown_playability', { client, videoId: pass.videoId, status, reason });
    }
    const step = stepAfter(reading, pass.evidence);
    if (step.go === 'next') pass.evidence.push(step.evidence);
    return step.go === 'stop' ? failure(pass, step.code) : null;
  }

  private async readTracks(
    client: YoutubeClient,
    reading: Extract<PlayerReading, { kind: 'tracks' }>,
    pass: Pass,
  ): Promise<VideoOutcome | null> {
    const choice = chooseTracks(reading.tracks, reading.defaults, pass.languages);
    if ('none' in choice) {
      const message = `This video has no captions in the languages asked for; it has ${choice.available.join(', ')}.`;
      return failure(pass, choice.none, message);
    }
    const missing = choice.chosen.filter((chosen) => !pass.texts.has(trackKey(chosen)));
    await Promise.all(missing.map((chosen) => this.fetchTrack(client, chosen, pass)));
    const transcript = new Map<string, readonly Segment[]>();
    for (const chosen of choice.chosen) {
      const segments = pass.texts.get(trackKey(chosen));
      // What was asked for and is withheld is never replaced by what was not: the next client may have all of it.
      if (!segments) return null;
      if (segments.length > 0) transcript.set(chosen.track.languageCode, segments);
    }
    return transcript.size > 0
      ? { ok: true, details: pass.details, transcript }
      : failure(pass, 'transcript_unavailable', 'The captions of this video have no words.');
  }

  private async fetchTrack(client: YoutubeClient, chosen: PlayerTrack, pass: Pass): Promise<void> {
    // The URL says beforehand that it needs a PO token: asking would only bring an empty body.
    const text: CaptionText = chosen.needsToken
      ? { kind: 'withheld' }
      : await fetchCaption(this.innertube, client, chosen, pass.videoId, pass.work);
    if (text.kind === 'text') {
      pass.texts.set(trackKey(chosen), text.segments);
      return;
    }
    if (text.kind === 'unreadable') this.reportUnreadable(client, pass, text.expected);
    if (text.kind === 'blocked') pass.retryAfterSeconds ??= text.retryAfterSeconds;
    pass.evidence.push(text.kind === 'withheld' ? 'withheld' : evidenceOf(text));
  }

  private conclude({ evidence, answered, retryAfterSeconds, ...pass }: Pass): Attempt<VideoOutcome> {
    const result: VideoOutcome = { ok: false, details: pass.details, failure: { code: conclude(evidence) } };
    // A text that is withheld is about the video and the client; it does not make the exit a refused one.
    const refused = evidence.some((kind) => kind === 'refused' || kind === 'exit-refused');
    if (refused) return { result, finding: 'refused', retryAfterSeconds };
    if (answered) return { result, finding: 'answered', retryAfterSeconds: null };
    const unreached = evidence.every((kind) => kind === 'unreached');
    return { result, finding: unreached ? 'unreached' : 'nothing', retryAfterSeconds: null };
  }

  private reportUnreadable(client: YoutubeClient, pass: Pass, expected: string): void {
    report(this.log, 'warn', 'youtube_unreadable', { client, videoId: pass.videoId, expected });
  }
}

/** The same track has another URL on each client; its language and kind are what it is known by. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function failure(pass: Pass, code: VideoFailureCode, message?: string): VideoOutcome {
  return { ok: false, details: pass.details, failure: message === undefined ? { code } : { code, message } };
}
