import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { generateSecret, messageBody, secretText, signedHeaders } from './webhook-signature.js';

describe('signedHeaders', () => {
  it('are accepted by the reference library with each of the secrets, and with no other', () => {
    const [current, previous, other] = [generateSecret(), generateSecret(), generateSecret()];
    fc.assert(
      fc.property(fc.jsonValue(), (data) => {
        const body = messageBody('job.completed', new Date('2026-11-20T16:00:00Z'), JSON.stringify(data));
        const headers = signedHeaders({ id: 'msg_1', body }, [current, previous], Date.now());
        const expected = { type: 'job.completed', timestamp: '2026-11-20T16:00:00.000Z', data };
        for (const secret of [current, previous]) {
          const verified: unknown = new Webhook(secretText(secret)).verify(body, headers);
          expect(JSON.stringify(verified)).toBe(JSON.stringify(expected));
        }
        expect(() => new Webhook(secretText(other)).verify(body, headers)).toThrow('No matching signature found');
        expect(() => new Webhook(secretText(current)).verify(`${body} `, headers)).toThrow();
      }),
      { numRuns: 50 },
    );
  });

  it('matches the example of the specification', () => {
    const secret = Buffer.from('MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw', 'base64');
    const message = { id: 'msg_p5jXN8AQM9LWM0D4loKWxJek', body: '{"test": 2432232314}' };
    expect(signedHeaders(message, [secret], 1_614_265_330_999)).toEqual({
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    });
  });
});
