import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { countField, dateTime, objectOrNull, textOrNull } from '../../../http/routes/response-docs.js';
import {
  CONTROL_RESULTS,
  type EgressState,
  type EgressUseState,
  type LastControl,
} from '../../../platform/egress-states.js';

@ApiSchema({ name: 'EgressPace' })
class PaceDto {
  @ApiProperty({ description: 'The kind of request.' })
  kind: string;

  @ApiProperty({ type: Number, nullable: true, description: 'Requests per minute. Null: no limit is known.' })
  perMinute: number | null;
}

const CONTROL_PROPERTIES = {
  at: dateTime('When the platform was asked.'),
  kind: { type: 'string' as const, description: 'The kind of request that was doubted.' },
  result: {
    type: 'string' as const,
    enum: [...CONTROL_RESULTS],
    description:
      '`served`: the egress is not refused. `refused`: the platform refuses its address. `client_refused`: it refuses the client that ' +
      'was asked with, and serves another. `unreached`: no response arrived. `unknown`: the response said nothing.',
  },
} satisfies Record<keyof LastControl, object>;

@ApiSchema({ name: 'EgressUse' })
class EgressUseDto implements EgressUseState {
  @ApiProperty({ description: '`channel`: lists of videos. `video`: players and captions.' })
  use: string;

  @ApiProperty(textOrNull('The kind of request that the platform refuses. Null while the use is not paused.'))
  refusedKind: string | null;

  @ApiProperty({
    type: 'integer',
    minimum: 0,
    nullable: true,
    description:
      'Seconds until a control is asked, which ends the pause or prolongs it. Null while the use is not paused.',
  })
  pauseSeconds: number | null;

  @ApiProperty(countField('Channels or videos that wait for their turn.'))
  waiting: number;

  @ApiProperty(countField('Requests in flight.'))
  running: number;

  @ApiProperty({ type: [PaceDto], description: 'What may be sent, by kind of request.' })
  pace: PaceDto[];

  @ApiProperty(
    objectOrNull(
      'The last request for something that is known to be served. Null when none was needed.',
      CONTROL_PROPERTIES,
    ),
  )
  lastControl: LastControl | null;
}

@ApiSchema({ name: 'Egress' })
class EgressDto implements EgressState {
  @ApiProperty({
    description: 'The name in logs and metrics: `direct`, or `proxy-` and its place in the configuration.',
  })
  name: string;

  @ApiProperty({ description: 'Whether it comes last because no response arrived through it.' })
  resting: boolean;

  @ApiProperty({ type: [EgressUseDto], description: 'Its uses: the platform may refuse one and not the other.' })
  uses: EgressUseDto[];
}

@ApiSchema({ name: 'Egresses' })
export class EgressesDto {
  @ApiProperty({ type: [EgressDto], description: 'In the order of the configuration.' })
  egresses: EgressDto[];
}

/** The example of the OpenAPI document. */
export const EGRESSES: EgressesDto = {
  egresses: [
    {
      name: 'proxy-1',
      resting: false,
      uses: [
        {
          ...{ use: 'video', refusedKind: 'player', pauseSeconds: 42, waiting: 3, running: 0 },
          pace: [{ kind: 'player', perMinute: 12 }],
          lastControl: { at: new Date('2026-11-20T16:00:00Z'), kind: 'player', result: 'refused' },
        },
      ],
    },
  ],
};
