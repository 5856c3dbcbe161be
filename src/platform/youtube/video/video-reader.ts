import { Injectable } from '@nestjs/common';
import type { YoutubeClient } from '../../../config/environment.js';
import {
  NO_DETAILS,
  type Segment,
  VIDEO_FAILURES,
  type VideoDetails,
  type VideoFailureCode,
  type VideoOutcome,
} from '../../../domain/transcript.js';
import { type CaptionText, fetchCaption } from '../captions/caption-fetch.js';
import {
  concludeFailure,
  type Evidence,
  areAllRetired,
  evidenceAbout,
  evidenceOf,
  verdictOf,
  isRefusal,
  isServed,
  isUnavailable,
  stepAfter,
  type ClientCandidate,
  type UnavailableReport,
  ClientHealth,
} from './client-fallback.js';
import { report } from '../event-log.js';
import type { Attempt } from '../egress/proxy-failover.js';
import type { RequestScope } from '../egress/request-pipeline.js';
import { InnertubeClient } from '../innertube/innertube-client.js';
import { type WebProof, WebProofs } from '../po-token/web-proofs.js';
import { requestPlayer } from './player-requests.js';
import { type PlayerReading, mergeDetails } from './player-response.js';
import type { PlayerTrack } from './player-tracks.js';
import { RetiredClients, versionSupport, type VersionResult } from './retired-clients.js';
import { selectTracks } from './track-selection.js';
import { UpstreamMetrics } from '../upstream-metrics.js';

const ALL_CLIENTS_RETIRED =
  'YouTube no longer serves the client versions that this service uses. Retry later; its operator is alerted.';

/** Bot checks of different clients after which an attempt is given up when they are likely about the address. */
const BOT_CHECKS_MAX = 2;
/** Refusals of different clients after which a probe of an egress is given up. */
const PROBE_REFUSALS_MAX = 2;

/** The state of one attempt over the clients. */
interface Pass {
  readonly videoId: string;
  readonly languages: readonly string[];
  readonly scope: RequestScope;
  readonly evidence: Evidence[];
  readonly unavailableOn: UnavailableReport[];
  /** Texts by track: a text that one client returned is not fetched again by the next. */
  readonly texts: Map<string, readonly Segment[]>;
  details: VideoDetails;
  /** Of WEB, while it is tried. */
  proof: WebProof | null;
  triedWeb: boolean;
  succeeded: boolean;
  /** A client listed tracks in the requested languages, which proves that the video has captions. */
  sawTracks: boolean;
  /** The platform's. */
  retryAfterSeconds: number | null;
  /** When the pace of the egress can serve. */
  busyForSeconds: number | null;
}

/** Reads one video through one egress: client after client, until one returns the text or a final reason for having none. */
@Injectable()
export class VideoReader {
  constructor(
    private readonly innertube: InnertubeClient,
    private readonly clientHealth: ClientHealth,
    private readonly retiredClients: RetiredClients,
    private readonly webProofs: WebProofs,
    private readonly metrics: UpstreamMetrics,
  ) {}

  /** Rejects only when the scope's signal is aborted. */
  async read(videoId: string, languages: readonly string[], scope: RequestScope): Promise<Attempt<VideoOutcome>> {
    const pass: Pass = {
      videoId,
      languages,
      scope,
      evidence: [],
      unavailableOn: [],
      texts: new Map(),
      details: NO_DETAILS,
      proof: null,
      triedWeb: false,
      succeeded: false,
      sawTracks: false,
      retryAfterSeconds: null,
      busyForSeconds: null,
    };
    const answered = (result: VideoOutcome) => ({ result, verdict: 'answered', retryAfterSeconds: null }) as const;
    const disabled = this.retiredClients.admitDisabled();
    // The other clients are disabled, so that nothing confirms what this one reports.
    if (disabled) pass.evidence.push('client-retired');
    let botChecks = 0;
    for (const candidate of disabled ? [disabled] : this.candidates(scope)) {
      // One that is probed was refused before: another bot check of it says nothing about the address.
      const probed = candidate.admission?.probe === true;
      const before = pass.evidence.length;
      const outcome = await this.tryCandidate(candidate, pass);
      if (outcome) return answered(await this.checkWithWeb(outcome, candidate.client, pass));
      if (pass.evidence.includes('egress-refused') || pass.evidence.includes('busy')) break;
      if (!probed && pass.evidence.includes('refused', before)) botChecks += 1;
      if (botChecks >= BOT_CHECKS_MAX && isAddressLikelyRefused(scope)) break;
      // A probe sends as little as possible, but a client that is refused everywhere must not keep the egress blocked.
      if (scope.admission.probe && pass.evidence.filter(isRefusal).length >= PROBE_REFUSALS_MAX) break;
    }
    const outcome = this.needsWeb(pass) ? await this.tryCandidate(WEB, pass) : null;
    return outcome ? answered(outcome) : this.concludeFailure(pass);
  }

  /**
   * A probe of the egress tries the clients that are probed themselves after those that were served last, and of these the
   * one first that has waited longest: it tries few, and those that are always refused must not keep it from the others.
   */
  private *candidates({ egress, admission }: RequestScope): Generator<ClientCandidate, void, undefined> {
    const probed: ClientCandidate[] = [];
    try {
      for (const candidate of this.clientHealth.candidates(egress)) {
        if (admission.probe && candidate.admission?.probe) {
          probed.push(candidate);
          continue;
        }
        // Those that cool down come last.
        if (candidate.admission === null) yield* takeInOrder(probed);
        yield candidate;
      }
      yield* takeInOrder(probed);
    } finally {
      for (const unused of probed) unused.admission?.abandoned();
    }
  }

  /** Whether WEB, which is not in the fallback order, is the last resort for this video. */
  private needsWeb({ scope, evidence, sawTracks }: Pass): boolean {
    if (this.webProofs.use !== 'last-resort' || scope.admission.probe) return false;
    // The egress cannot serve WEB either.
    if (evidence.includes('egress-refused') || evidence.includes('busy')) return false;
    return sawTracks || areAllRetired(evidence);
  }

  /**
   * Manual tracks with styling are listed for WEB only (reported), so that the other clients cannot report for certain that
   * captions are missing while WEB is configured. Without an answer of WEB the failure is unconfirmed.
   */
  private async checkWithWeb(outcome: VideoOutcome, client: YoutubeClient, pass: Pass): Promise<VideoOutcome> {
    if (this.webProofs.use !== 'listed' || client === 'WEB' || !lacksCaptions(outcome)) return outcome;
    const skipped = pass.triedWeb || pass.scope.admission.probe;
    const checked = skipped ? null : await this.tryCandidate(WEB, pass);
    if (checked && (checked.ok || lacksCaptions(checked))) return checked;
    // WEB listed tracks, so the video has captions: their text failed.
    if (checked === null && pass.sawTracks) return this.concludeFailure(pass).result;
    return { ...outcome, confirmed: false };
  }

  private async tryCandidate(candidate: Candidate, pass: Pass): Promise<VideoOutcome | null> {
    const { client, admission, version = this.retiredClients.admit(client) } = candidate;
    const before = pass.evidence.length;
    try {
      if (!version) {
        pass.evidence.push('client-retired');
        return null;
      }
      // Checked for each client, because the deadline changes when a later caller joins.
      if (performance.now() >= pass.scope.context.deadlineAtMs) {
        pass.evidence.push('timeout');
        return null;
      }
      const outcome = await this.tryClient(client, version, pass);
      if (outcome) admission?.succeeded();
      else if (pass.evidence.slice(before).some(isRefusal)) admission?.blocked(pass.videoId);
      return outcome;
    } finally {
      admission?.abandoned();
      version?.abandoned();
    }
  }

  private async tryClient(client: YoutubeClient, version: VersionResult, pass: Pass): Promise<VideoOutcome | null> {
    pass.proof = null;
    if (client === 'WEB') {
      pass.triedWeb = true;
      pass.proof = await this.webProofs.get(pass.videoId, pass.scope);
      // Skipped: whether the provider works does not change the outcome without WEB.
      if (!pass.proof) return null;
    }
    const { videoId, scope, proof } = pass;
    const response = await requestPlayer(this.innertube, { client, videoId, scope, proof }, (kind) =>
      this.metrics.notice('playability', client, kind),
    );
    const support = versionSupport(response);
    if (support === 'served') version.succeeded();
    if (support === 'retired') version.blocked(pass.videoId);
    if (response.kind === 'parsed') return this.follow(client, response.value, pass);
    if (support === 'retired') {
      pass.evidence.push('client-retired');
      return null;
    }
    if (response.kind === 'unparsable' || response.kind === 'unreadable')
      this.reportUnreadable(client, pass, response.expected);
    if (response.kind === 'blocked') pass.retryAfterSeconds ??= response.retryAfterSeconds;
    if (response.kind === 'busy') pass.busyForSeconds = response.retryAfterSeconds;
    this.addEvidence(client, response.kind === 'unparsable' ? 'failure' : evidenceOf(response), pass);
    return null;
  }

  private async follow(client: YoutubeClient, reading: PlayerReading, pass: Pass): Promise<VideoOutcome | null> {
    this.metrics.notice('playability', client, reading.kind);
    if (isServed(reading)) pass.scope.egress.pacer?.recordServed();
    if ('details' in reading) {
      pass.details = mergeDetails(pass.details, reading.details);
      pass.succeeded = true;
    }
    if (reading.kind === 'tracks') return this.readTracks(client, reading, pass);
    if (reading.kind === 'unknown-status') {
      const { status, reason } = reading;
      report('warn', 'youtube_unknown_playability', { client, videoId: pass.videoId, status, reason });
    }
    const step = stepAfter(reading, pass.sawTracks);
    if (step.go === 'stop') return failure(pass, step.code);
    if (step.go === 'next') this.addEvidence(client, step.evidence, pass);
    const { kind } = reading;
    if (kind === 'unavailable' || kind === 'unplayable')
      pass.unavailableOn.push({ client, kind, served: this.retiredClients.isServed(client) });
    return isUnavailable(pass) ? failure(pass, 'video_unavailable') : null;
  }

  private async readTracks(
    client: YoutubeClient,
    reading: Extract<PlayerReading, { kind: 'tracks' }>,
    pass: Pass,
  ): Promise<VideoOutcome | null> {
    const selection = selectTracks(reading.tracks, reading.defaults, pass.languages);
    if ('none' in selection) {
      // An earlier client listed the tracks: their text is withheld, not missing.
      if (pass.sawTracks) return null;
      const message = `This video has no captions in the requested languages. Available: ${selection.available.join(', ')}.`;
      return failure(pass, selection.none, message);
    }
    pass.sawTracks = true;
    const missing = selection.chosen.filter((chosen) => !pass.texts.has(trackKey(chosen)));
    await Promise.all(missing.map((chosen) => this.fetchTrack(client, chosen, pass)));
    // A withheld track is never replaced by one that was not requested: the next client may return all of them.
    if (selection.chosen.some((chosen) => !pass.texts.has(trackKey(chosen)))) return null;
    const texts = selection.chosen.map(
      (chosen) => [chosen.track.languageCode, pass.texts.get(trackKey(chosen)) ?? []] as const,
    );
    const transcript = new Map(texts.filter(([, segments]) => segments.length > 0));
    return transcript.size > 0
      ? { ok: true, details: pass.details, transcript }
      : failure(pass, 'transcript_unavailable', 'The captions of this video contain no text.');
  }

  private async fetchTrack(client: YoutubeClient, chosen: PlayerTrack, pass: Pass): Promise<void> {
    // The URL requires a PO token: a request would only return an empty body.
    if (chosen.needsToken && !pass.proof) {
      pass.evidence.push('token-required');
      return;
    }
    const { videoId, scope, proof } = pass;
    const text: CaptionText = await fetchCaption(this.innertube, client, chosen, videoId, scope, proof?.poToken);
    if (text.kind === 'text') {
      pass.texts.set(trackKey(chosen), text.segments);
      return;
    }
    if (text.kind === 'unreadable') this.reportUnreadable(client, pass, text.expected);
    if (text.kind === 'blocked') pass.retryAfterSeconds ??= text.retryAfterSeconds;
    if (text.kind === 'busy') pass.busyForSeconds = text.retryAfterSeconds;
    this.addEvidence(client, text.kind === 'withheld' ? 'enforced' : evidenceOf(text), pass);
  }

  private addEvidence(client: YoutubeClient, evidence: Evidence, pass: Pass): void {
    pass.evidence.push(evidenceAbout(client, evidence));
    if (pass.proof && (evidence === 'refused' || evidence === 'enforced'))
      this.webProofs.reject(pass.videoId, pass.proof);
  }

  private concludeFailure(pass: Pass): Attempt<VideoOutcome> {
    const { evidence, succeeded, texts, retryAfterSeconds } = pass;
    const code = concludeFailure(evidence);
    const attempt = { verdict: verdictOf(evidence, succeeded), retryAfterSeconds };
    // Two clients that agree for certain end the attempt earlier.
    if (code === 'video_unavailable') return { ...attempt, result: { ...failure(pass, code), confirmed: false } };
    if (areAllRetired(evidence)) return { ...attempt, result: failure(pass, code, ALL_CLIENTS_RETIRED) };
    // When several languages were requested, a withheld one does not hide that others are available.
    const readable = [...texts].filter(([, segments]) => segments.length > 0).map(([key]) => key.split('\n', 1)[0]);
    const message = `${VIDEO_FAILURES[code].message} Not all requested languages are available at the moment. Request ${readable.join(', ')} only.`;
    return { ...attempt, result: readable.length > 0 ? failure(pass, code, message) : failure(pass, code) };
  }

  private reportUnreadable(client: YoutubeClient, pass: Pass, expected: string): void {
    report('warn', 'youtube_unreadable', { client, videoId: pass.videoId, expected });
  }
}

/** A client to try, with the permission for its version unless that is still to be requested. */
interface Candidate extends Pick<ClientCandidate, 'client' | 'admission'> {
  version?: VersionResult;
}

/**
 * Whether bot checks are likelier about the address than about the clients: many addresses of a gateway are bad, and another
 * egress may have used up its budget. Further requests would be refused, too, and prolong the block.
 */
function isAddressLikelyRefused({ egress }: RequestScope): boolean {
  return egress.gateway !== undefined || egress.pacer?.answeredMany('player') === true;
}

/** Removes each candidate when it is reached; those that remain are the caller's to release. */
function* takeInOrder(probed: ClientCandidate[]): Generator<ClientCandidate, void, undefined> {
  probed.sort((one, other) => one.coolingDownUntilMs - other.coolingDownUntilMs);
  for (let next = probed.shift(); next; next = probed.shift()) yield next;
}

const WEB: Candidate = { client: 'WEB', admission: null };

function lacksCaptions(outcome: VideoOutcome): outcome is Extract<VideoOutcome, { ok: false }> {
  return !outcome.ok && ['transcript_unavailable', 'language_unavailable'].includes(outcome.failure.code);
}

/** Identifies a track across clients, whose URLs for it differ. */
function trackKey({ track }: PlayerTrack): string {
  return `${track.languageCode}\n${track.generated}\n${track.name}`;
}

function failure(pass: Pass, code: VideoFailureCode, message?: string): Extract<VideoOutcome, { ok: false }> {
  const waitSeconds = { upstream_busy: pass.busyForSeconds, upstream_blocked: pass.retryAfterSeconds };
  const retryAfterSeconds = code === 'upstream_busy' || code === 'upstream_blocked' ? waitSeconds[code] : null;
  const optional = {
    ...(message !== undefined && { message }),
    ...(retryAfterSeconds !== null && { retryAfterSeconds }),
  };
  return { ok: false, details: pass.details, failure: { code, ...optional } };
}
