import { describe, expect, it } from '@jest/globals';
import { CallerConnection } from './message-transport.js';

describe('CallerConnection', () => {
  it('disconnects running messages, and no ended ones, when the connection closes', () => {
    const connection = new CallerConnection();
    const disconnected: string[] = [];
    connection.begin(() => disconnected.push('running'));
    connection.begin(() => disconnected.push('ended'))();
    connection.close();
    connection.close();
    expect(disconnected).toEqual(['running']);
  });

  it('disconnects a message at once when the connection is already closed', () => {
    const connection = new CallerConnection();
    connection.close();
    let disconnected = false;
    connection.begin(() => (disconnected = true));
    expect(disconnected).toBe(true);
  });
});
