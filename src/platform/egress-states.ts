import { z } from 'zod';
import { count, textOrNull } from '../domain/schema-fields.js';

// What an operator is shown. The name is that of logs and metrics: never the URL of a proxy, which can contain a password.

const Pace = z
  .object({
    kind: z.string().describe('The kind of request.'),
    perMinute: z.number().nullable().describe('Requests per minute. Null: no limit is known.'),
  })
  .meta({ id: 'EgressPace' });

/** How the last doubt about an egress was settled. */
const LastControl = z.object({
  at: z.date().describe('When the platform was asked.'),
  kind: z.string().describe('The kind of request that was doubted.'),
  result: z
    .enum(['served', 'refused', 'client_refused', 'unreached', 'unknown'])
    .describe(
      '`served`: the egress is not refused. `refused`: the platform refuses its address. `client_refused`: it refuses the client that ' +
        'was asked with, and serves another. `unreached`: no response arrived. `unknown`: the response said nothing.',
    ),
});
export type LastControl = z.infer<typeof LastControl>;
export type ControlResult = LastControl['result'];

const EgressUse = z
  .object({
    use: z.string().describe('`channel`: lists of videos. `video`: players and captions.'),
    refusedKind: textOrNull('The kind of request that the platform refuses. Null while the use is not paused.'),
    pauseSeconds: count(
      'Seconds until a control is asked, which ends the pause or prolongs it. Null while the use is not paused.',
    ).nullable(),
    waiting: count('Channels or videos that wait for their turn.'),
    running: count('Requests in flight.'),
    pace: z.array(Pace).describe('What may be sent, by kind of request.'),
    lastControl: LastControl.nullable().describe(
      'The last request for something that is known to be served. Null when none was needed.',
    ),
  })
  .meta({ id: 'EgressUse' });
export type EgressUseState = z.infer<typeof EgressUse>;

const Egress = z
  .object({
    name: z
      .string()
      .describe('The name in logs and metrics: `direct`, or `proxy-` and its place in the configuration.'),
    resting: z.boolean().describe('Whether it comes last because no response arrived through it.'),
    uses: z.array(EgressUse).describe('Its uses: the platform may refuse one and not the other.'),
  })
  .meta({ id: 'Egress' });
export type EgressState = z.infer<typeof Egress>;

export const EgressesDto = z
  .object({ egresses: z.array(Egress).describe('In the order of the configuration.') })
  .meta({ id: 'Egresses' });
export type EgressesDto = z.infer<typeof EgressesDto>;

/** The port to the state of the network paths that this process reaches the platform through. */
export abstract class EgressStates {
  abstract states(): EgressState[];
}
